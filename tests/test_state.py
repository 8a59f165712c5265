"""A folder is written as a whole or not at all."""

from pathlib import Path

import pytest
from safetensors import SafetensorError

from cse.state import write_folder


def old_folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("old")
    return tmp_path / "out"


def test_a_new_folder_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    write_folder(folder, lambda target: (target / "other").write_text("new"))
    assert [path.name for path in folder.iterdir()] == ["other"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("error", [OSError("No space left on device"), SafetensorError("No space left on device")])
def test_a_failed_write_leaves_the_old_folder_and_names_it(tmp_path: Path, error: Exception) -> None:
    folder = old_folder(tmp_path)

    def fail(target: Path) -> None:
        (target / "half").write_text("x")
        raise error

    with pytest.raises(OSError, match=r"out: cannot be written .*No space left"):
        write_folder(folder, fail)
    assert (folder / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failed_swap_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old_folder(tmp_path)
    rename = Path.rename

    def broken(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise OSError("gone")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(OSError, match="cannot be written"):
        write_folder(folder, lambda target: (target / "other").write_text("new"))
    assert (folder / "file").read_text() == "old"
