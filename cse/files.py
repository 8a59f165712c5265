"""Folders that this project writes: recognised by their mark and their file names before one is replaced."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder: `noun` with its article, the JSON file `mark`, whose object holds `keys`, and its `files`.

    `files` are patterns of all paths that belong into it, relative and with "/"; a `*` reaches into subfolders.
    """

    noun: str
    mark: str
    keys: tuple[str, ...]
    files: tuple[str, ...]

    def check_replaceable(self, folder: Path) -> None:
        """Raise ValueError unless `folder` is absent, empty, or holds this kind and nothing else."""
        if not folder.exists():
            return
        if not folder.is_dir():
            raise ValueError(f"{folder}: is a file; give {self.noun} another folder")
        names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
        foreign = next((name for name in names if not any(fnmatch(name, pattern) for pattern in self.files)), None)
        if foreign:
            raise ValueError(
                f"{folder}: holds {foreign}, which is no part of {self.noun}; move it away or give another folder"
            )
        if any(folder.iterdir()) and not self._is_marked(folder):
            raise ValueError(
                f"{folder}: is not {self.noun} of this project (no {', '.join(self.keys)} in {self.mark}); "
                "delete it yourself or give another folder"
            )

    def _is_marked(self, folder: Path) -> bool:
        try:
            value = json.loads((folder / self.mark).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(value, dict) and value.keys() >= set(self.keys)
