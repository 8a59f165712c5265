"""The state that a kill leaves of a write."""

from __future__ import annotations

from pathlib import Path

from cse.files.replace import beside


def leave_killed_write(path: Path) -> None:
    """Leave beside `path` what a process leaves that is killed while it writes it."""
    fresh = beside(path, "new-01234567")
    fresh.mkdir(parents=True)
    (fresh / path.name).write_bytes(b"{")
    beside(path, "lock").touch()
