"""The commands: each file parses its options, calls the library and prints; `cse NAME` calls it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]  # of the packages `cse` and `index`


class OwnIndex:
    """Find this project's `index` before an `index.py` in the user's folder, which `python -m` puts on the path."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of `index`, and None for any other module."""
        return PathFinder.find_spec(name, [str(ROOT)]) if name == "index" else None


sys.meta_path.insert(0, OwnIndex)
