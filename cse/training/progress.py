"""How work of several steps tells its progress: a function of (steps done, steps in all, name of the next)."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[int, int, str], None]


def silent(done: int, total: int, name: str) -> None:
    """Report nothing."""
