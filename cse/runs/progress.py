"""Progress of work in several steps, reported to a function of (steps done, total steps, name of the next step)."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[int, int, str], None]


def silent(done: int, total: int, name: str) -> None:
    """Report nothing."""
