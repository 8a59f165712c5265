"""Names of models on the page: methods as the papers write them, other models by their own names."""

from __future__ import annotations

from collections.abc import Iterable

from cse.methods.catalogue import METHODS
from cse.methods.catalogue import UNTRAINED as READINGS
from cse.models.names import BACKBONE

UNTRAINED = "Untrained"
BEFORE = " (before)"  # ends the name of a model as it was before its training
POOLED = {f"{UNTRAINED} ({pooling})".lower(): pooling for pooling in READINGS}  # names of the backbone's readings
TITLES = {
    **{name: method.title for name, method in METHODS.items() if method.title}, BACKBONE: UNTRAINED,
    **{name: name.capitalize() for name in POOLED},
}  # fmt: skip


def title(name: str) -> str:
    """Return the name of a model on the page; `name` is that of its column."""
    if name.endswith(BEFORE):
        return f"{title(name.removesuffix(BEFORE))} before training"
    return TITLES.get(name, name)


def choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the choices of a field for models: a title and a name each."""
    return [(title(name), name) for name in names]
