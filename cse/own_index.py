"""This project's package `index`, where a user's own `index.py` comes first on the path."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]  # of the packages `cse` and `index`


class OwnIndex:
    """A finder of this project's `index`. Commands put it first: `python -m` puts the user's folder on the path."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of `index`, and None for any other module."""
        return PathFinder.find_spec(name, [str(ROOT)]) if name == "index" else None


def import_index(module: str) -> ModuleType:
    """Return a module of `index`, with all others imported; `index` stays the user's own module if she has one."""
    users = sys.modules.get("index")
    if f"index.{module}" in sys.modules or (users is not None and _is_own(users.__spec__)):
        return import_module(f"index.{module}")
    sys.modules.pop("index", None)
    sys.meta_path.insert(0, OwnIndex)
    try:
        for path in sorted((ROOT / "index").glob("[a-z]*.py")):
            import_module(f"index.{path.stem}")
    finally:
        sys.meta_path.remove(OwnIndex)
        if users is not None:
            sys.modules["index"] = users
        elif not _is_own(PathFinder.find_spec("index")):
            del sys.modules["index"]  # to be imported by her
    return sys.modules[f"index.{module}"]


def _is_own(spec: ModuleSpec | None) -> bool:
    return spec is not None and spec.origin is not None and Path(spec.origin).parent == ROOT / "index"
