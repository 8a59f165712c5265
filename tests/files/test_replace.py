"""A folder is replaced at once: a kill at any moment leaves the old one or the new one, and litter only until later."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import filelock
import pytest
from conftest import ROOT
from encoders import make
from index_corpus import build

from cse.files import replace as swap
from cse.files.writing import replacing, reserved, write_file, write_folder
from cse.models.checkpoint import save
from cse.models.loading import load
from index import VectorIndex

# Replaces `out/place` again and again, killed before its first, second, ... audited call (which are all that reach the
# system for a file), until one comes through; after each kill the folder is opened. Run alone: it forks.
KILLS = """
import json, os, shutil, sys
from pathlib import Path

exchange = sys.argv[1] == "exchange"
folder = Path(sys.argv[2]) / "place"
from cse.files import replace as swap
from cse.files.writing import write_folder
if not exchange:
    swap._exchange = lambda one, other: False

def write(text, folder=folder):
    write_folder(folder, lambda fresh: (fresh / "manifest.json").write_text(text))

def content():
    swap.recover(folder)
    return json.loads((folder / "manifest.json").read_text())["say"] if folder.exists() else "nothing"

def text(say):
    return json.dumps({"say": say})

def killed(number):
    child = os.fork()
    if not child:
        calls = []
        def count(event, arguments):
            if event.split(".")[0] in ("open", "os", "shutil", "fcntl", "ctypes"):
                calls.append(event)
                if len(calls) > number:
                    os._exit(9)
        sys.addaudithook(count)
        write(text("new"))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

write(text("warm up"), folder.with_name("other"))  # so that no import is counted
kills, gaps, contents, number = 0, 0, [], 0
while True:
    shutil.rmtree(folder.parent)
    folder.parent.mkdir()
    write(text("old"))
    over = not killed(number)
    gaps += not folder.exists()
    contents.append(content())
    if over:
        break
    write(text("last"))
    assert content() == "last"
    assert os.listdir(folder.parent) == ["place"], os.listdir(folder.parent)
    number += 1
print(json.dumps({"kills": number, "gaps": gaps, "contents": contents}))
"""


@pytest.mark.skipif(os.name != "posix", reason="forks, 2026-11-22")
@pytest.mark.parametrize("way", ["exchange", "renames"])
def test_a_kill_before_any_system_call_leaves_the_old_folder_or_the_new_one(way, tmp_path):
    """And the next write leaves nothing beside it. Old ones come first: what was swapped in is never taken back."""
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", KILLS, way, str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    old = result["contents"].count("old")
    assert result["contents"] == ["old"] * old + ["new"] * (result["kills"] + 1 - old)
    assert old > 8
    assert result["kills"] - old > 4
    if way == "renames":
        assert result["gaps"] >= 1  # there is a moment without the name, and it was hit
    elif sys.platform == "linux":
        assert result["gaps"] == 0


def broken_off(folder: Path, new: Path) -> None:
    """The state that a kill between the two renames leaves of `folder`, which `new` was to replace."""
    folder.rename(swap.beside(folder, "old"))
    new.rename(swap.beside(folder, "new"))


def test_models_and_indexes_broken_off_between_two_names_open(bert_folder, tmp_path):
    for name in ("simcse", "dcpcse"):
        save(make(str(bert_folder), name), tmp_path / name, {})
    broken_off(tmp_path / "simcse", tmp_path / "dcpcse")
    assert load(str(tmp_path / "simcse")).method.name == "dcpcse"
    build(tmp_path / "x", count=9)
    build(tmp_path / "y", count=5)
    broken_off(tmp_path / "x", tmp_path / "y")
    assert len(VectorIndex.load(tmp_path / "x")) == 5


def test_a_folder_that_was_deleted_does_not_come_back(tmp_path):
    """Beside it lies what a kill leaves after a swap, then before one."""
    for left in ("old", "new"):
        (tmp_path / f".x.{left}").mkdir()
        swap.recover(tmp_path / "x")
        assert not (tmp_path / "x").exists()
        (tmp_path / f".x.{left}").rmdir()


WRITER = """
import sys, time
from pathlib import Path
from cse.files.replace import replacement
with replacement(Path(sys.argv[1])) as fresh:
    (fresh / "half").write_text("x")
    print(fresh.name, flush=True)
    time.sleep(60)
"""


def test_a_second_writer_of_a_folder_is_refused_in_one_line_and_the_lock_goes_with_its_process(tmp_path, monkeypatch):
    monkeypatch.setattr(swap, "WAIT_SECONDS", 0.0)
    command = [sys.executable, "-c", WRITER, str(tmp_path / "x")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        fresh = process.stdout.readline().strip()
        for write in (write_folder, write_file):
            with pytest.raises(ValueError, match=r"x: another run is writing there; give another `output`"):
                write(tmp_path / "x", lambda path: None)
        swap.sweep(tmp_path / "x")  # nothing of the living
        assert (tmp_path / fresh / "half").read_text() == "x"
        process.kill()
    (tmp_path / ".x.new-thing").mkdir()  # another name's
    write_folder(tmp_path / "x", lambda path: (path / "file").touch())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.new-thing", "x"]


def test_a_file_system_without_locks_is_written_without(tmp_path, monkeypatch):
    def refuse(lock: filelock.FileLock, **options: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with reserved(tmp_path / "x"):
        write_folder(tmp_path / "x", lambda fresh: (fresh / "file").touch())
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["x", "x/file"]


@pytest.mark.skipif(os.name != "posix", reason="fsync of folders, 2026-11-23")
def test_all_of_a_folder_is_stored_before_it_gets_the_name(tmp_path, monkeypatch):
    stored: list[int] = []
    fsync, exchange = os.fsync, swap._exchange
    monkeypatch.setattr("os.fsync", lambda descriptor: (stored.append(os.fstat(descriptor).st_ino), fsync(descriptor)))
    monkeypatch.setattr(swap, "_exchange", lambda one, other: (stored.append(0), exchange(one, other))[1])
    (tmp_path / "x").mkdir()
    with replacing(tmp_path / "x") as fresh:
        (fresh / "deep").mkdir()
        (fresh / "deep" / "file").write_text("new")
        inodes = {path.stat().st_ino for path in (fresh, *fresh.rglob("*"))}
    assert (set(stored[:-1]), stored[-1]) == (inodes, 0)


def test_an_index_that_is_replaced_all_the_time_is_opened_whole():
    """`tests.races` reports what it finds; here for a second, by hand for as long as one likes."""
    command = [sys.executable, "-m", "tests.races", "--seconds", "1", "--only", "index"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == 0, report
    assert report.keys() == {"seconds", "index right", "index replaced"}
    assert min(report.values()) > 0
