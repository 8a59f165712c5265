"""A folder is replaced only where it is absent, empty or made of exactly what this project writes, and says so."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from killed_write import leave_killed_write
from safetensors import SafetensorError

from cse.errors import ArtefactError
from cse.files.writing import DISK_FULL_ERRORS, FolderKind, check_writable, write_file, write_folder, write_json

KIND = FolderKind(
    "a notebook", "about.json", ("pages", "format"), ("about.json", "page-*.txt", "drawings", "drawings/*.png")
)


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    (folder / "drawings").mkdir(parents=True)
    (folder / "about.json").write_text('{"pages": 2, "format": 1}')
    for name in ("page-1.txt", "page-2.txt", "drawings/sun.png"):
        (folder / name).write_text("mine")
    return folder


def test_what_came_into_a_folder_while_it_was_written_anew_is_kept(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()

    def slow(target: Path) -> None:
        (target / "about.json").write_text("{}")
        (folder / "thesis.tex").write_text("years of work")

    with pytest.raises(ValueError, match=r"holds thesis\.tex"):
        write_folder(folder, slow, KIND)
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_link_keeps_pointing_at_the_folder_that_is_written_anew(notebook, tmp_path):
    (tmp_path / "link").symlink_to(notebook)
    write_folder(tmp_path / "link", lambda target: (target / "file").write_text("new"))
    assert (tmp_path / "link").is_symlink()
    assert [(path.name, path.read_text()) for path in notebook.iterdir()] == [("file", "new")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]


def test_a_write_of_a_file_removes_what_a_killed_one_left_beside_it(tmp_path):
    leave_killed_write(tmp_path / "results.json")
    write_json(tmp_path / "results.json", {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert json.loads((tmp_path / "results.json").read_text()) == {"a": 1}


def test_a_failed_write_of_a_file_leaves_the_old_one_and_nothing_beside_it(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def fail(fresh: Path) -> None:
        fresh.write_text("half")
        raise RuntimeError("of the filler")

    with pytest.raises(RuntimeError, match="of the filler"):
        write_file(tmp_path / "a.txt", fail)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "old")]


def failing(error: BaseException) -> Callable[[Path], None]:
    def fill(target: Path) -> None:
        (target / "half").write_text("x")
        raise error

    return fill


def test_a_file_is_known_to_be_writable_without_a_change_of_it(tmp_path):
    (tmp_path / "old").write_text("mine")
    for path in (tmp_path / "old", tmp_path / "deep" / "new"):
        check_writable(path)
    assert (tmp_path / "old").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["deep", "old"]
    for path in (tmp_path / "deep", tmp_path / "old" / "new"):
        with pytest.raises(OSError, match=rf"{path}: cannot be written \(.*\); give another file"):
            check_writable(path)


@pytest.mark.parametrize(
    "error",
    [
        *(OSError(number, "No room") for number in DISK_FULL_ERRORS),
        *(
            Exception(f"No room (os error {number})") for number in DISK_FULL_ERRORS
        ),  # all that the library `tokenizers` raises
        SafetensorError("Error while serializing: I/O error: No room"),
    ],
)
def test_a_full_disk_leaves_the_old_folder_and_names_it(notebook, error):
    assert errno.ENOSPC in DISK_FULL_ERRORS
    with pytest.raises(OSError, match=r"out: cannot be written .*No room.*free some space"):
        write_folder(notebook, failing(error))
    assert (notebook / "page-1.txt").read_text() == "mine"
    assert [path.name for path in notebook.parent.iterdir()] == ["out"]


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "vocab.txt"),
        OSError("the hub cannot be reached"),
        ArtefactError("damaged checkpoint"),
        SafetensorError("Error while deserializing header: header too large"),
        KeyboardInterrupt(),
        Exception("other"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_fails_for_another_reason_than_the_folder_comes_through_as_it_is(notebook, error):
    with pytest.raises(type(error)) as caught:
        write_folder(notebook, failing(error))
    assert caught.value is error


def test_a_folder_that_cannot_be_made_is_named_with_the_cure(tmp_path):
    (tmp_path / "file").write_text("old")
    for folder in (tmp_path / "file", tmp_path / "file" / "out", tmp_path / "file" / "deep" / "out"):
        with pytest.raises(OSError, match=rf"{folder}: cannot be written \(.*\); give another folder") as caught:
            write_folder(folder, failing(AssertionError("never asked")))
        assert "space" not in str(caught.value)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


def test_a_failed_swap_puts_the_old_folder_back(notebook, monkeypatch):
    rename = os.rename

    def broken(source: Path, target: Path) -> None:
        if source.name.endswith(".new"):
            raise OSError("gone")
        rename(source, target)

    monkeypatch.setattr("cse.files.replace._exchange", lambda one, other: False)
    monkeypatch.setattr("os.rename", broken)
    with pytest.raises(OSError, match=r"cannot be written \(gone\); give another folder"):
        write_folder(notebook, lambda target: (target / "other").write_text("new"))
    assert (notebook / "page-1.txt").read_text() == "mine"
    assert [path.name for path in notebook.parent.iterdir()] == ["out"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere (2026-11)")
@pytest.mark.parametrize("there", [True, False])
def test_a_file_is_written_through_a_link_which_stays(tmp_path, there):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "vectors", tmp_path / "link.npy"
    if there:
        target.write_text("old")
    link.symlink_to(Path("far") / "vectors")
    write_file(link, lambda fresh: fresh.with_suffix(".npy").write_text("new"))  # a suffix that np.save would append
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link.npy", "vectors"]


@pytest.mark.skipif(os.name != "posix", reason="pipes (2026-11)")
@pytest.mark.parametrize("what", ["pipe", "link", "circle", "circle of folders"])
def test_what_is_no_file_is_not_replaced_by_one(tmp_path, what):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "circle of folders").symlink_to("circle of folders")
    before = sorted(path.name for path in tmp_path.iterdir())
    write = write_folder if "folders" in what else write_file
    with pytest.raises(OSError, match=rf"{what}: cannot be written \(.*\); give another f"):
        write(tmp_path / what, lambda fresh: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "pipe").is_fifo()
