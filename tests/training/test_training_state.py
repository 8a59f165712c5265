"""A folder is written completely or not at all."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors import SafetensorError

from cse.errors import ArtefactError
from cse.storage.writing import write_folder


def old_folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("old")
    return tmp_path / "out"


def test_a_new_folder_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    write_folder(folder, lambda target: (target / "other").write_text("new"))
    assert [path.name for path in folder.iterdir()] == ["other"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


FULL = (OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EDQUOT, "Disk quota exceeded"))


def failing(error: BaseException) -> Callable[[Path], None]:
    def fill(target: Path) -> None:
        (target / "half").write_text("x")
        raise error

    return fill


@pytest.mark.parametrize("error", [*FULL, SafetensorError("Error while serializing: I/O error: No space left")])
def test_a_full_disk_leaves_the_old_folder_and_names_it(tmp_path: Path, error: Exception) -> None:
    folder = old_folder(tmp_path)
    with pytest.raises(OSError, match=r"out: cannot be written .*(No space left|quota).*free some space"):
        write_folder(folder, failing(error))
    assert (folder / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "vocab.txt"),
        OSError("the hub cannot be reached"),
        ArtefactError("damaged checkpoint"),
        SafetensorError("Error while deserializing header: header too large"),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_fails_for_another_reason_than_the_folder_comes_through_as_it_is(
    tmp_path: Path, error: BaseException
) -> None:
    folder = old_folder(tmp_path)
    with pytest.raises(type(error)) as caught:
        write_folder(folder, failing(error))
    assert caught.value is error
    assert (folder / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_cannot_be_made_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    for folder in (tmp_path / "file", tmp_path / "file" / "out", tmp_path / "file" / "deep" / "out"):
        with pytest.raises(OSError, match=rf"{folder}: cannot be written \(.*\); give another folder") as caught:
            write_folder(folder, failing(AssertionError("never asked")))
        assert "space" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_failed_swap_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old_folder(tmp_path)
    rename = os.rename

    def broken(source: Path, target: Path) -> None:
        if ".new-" in source.name:
            raise OSError("gone")
        rename(source, target)

    monkeypatch.setattr("cse.storage.replace._exchange", lambda one, other: False)
    monkeypatch.setattr("os.rename", broken)
    with pytest.raises(OSError, match=r"cannot be written \(gone\); give another folder"):
        write_folder(folder, lambda target: (target / "other").write_text("new"))
    assert (folder / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
