"""What models are called: bundled names, folders and hub ids, in a form that holds from any working folder."""

from __future__ import annotations

from pathlib import Path

BUNDLED = Path(__file__).resolve().parent / "bundled"
BUNDLED_NAMES = ("simcse", "promptbert", "dcpcse", "conpvp")
BACKBONE = "bundled"  # this project's own backbone


def lasting_name(model: str) -> str:
    """What opens the same model from anywhere: a bundled name, a folder's absolute path, or the hub id as it is."""
    if model in (*BUNDLED_NAMES, BACKBONE) or not Path(model).is_dir():
        return model
    path = Path(model).resolve()
    if path.parent == BUNDLED and path.name in (*BUNDLED_NAMES, "backbone"):
        return BACKBONE if path.name == "backbone" else path.name
    return str(path)


def location(name: str) -> str:
    """The folder or hub id behind a name."""
    if name == BACKBONE:
        return str(BUNDLED / "backbone")
    return str(BUNDLED / name) if name in BUNDLED_NAMES else name
