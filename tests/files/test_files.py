"""A folder is replaced only where it is absent, empty or made of exactly what this project writes, and says so."""

import errno
import json
from pathlib import Path

import pytest
from killed_write import leave_killed_write
from safetensors import SafetensorError

from cse.files.writing import FolderKind, write_file, write_folder, write_json


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "page-1.txt").write_text("mine")
    return folder


def test_what_came_into_a_folder_while_it_was_written_anew_is_kept(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()

    def slow(target: Path) -> None:
        (target / "about.json").write_text("{}")
        (folder / "thesis.tex").write_text("years of work")

    with pytest.raises(ValueError, match=r"holds thesis\.tex"):
        write_folder(folder, slow, FolderKind("a notebook", "about.json", ("pages",), ("about.json",)))
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


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No room"),
        Exception(f"No room (os error {errno.ENOSPC})"),  # all that the library `tokenizers` raises
        SafetensorError("Error while serializing: I/O error: No room"),
    ],
)
def test_a_full_disk_leaves_the_old_folder_and_names_it(notebook, error):
    def fill(target: Path) -> None:
        (target / "half").write_text("x")
        raise error

    with pytest.raises(OSError, match=r"out: cannot be written .*No room.*free some space"):
        write_folder(notebook, fill)
    assert (notebook / "page-1.txt").read_text() == "mine"
    assert [path.name for path in notebook.parent.iterdir()] == ["out"]
