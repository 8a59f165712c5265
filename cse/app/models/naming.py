"""Names of models: as the page writes them, and those that visitors may add."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from cse.app import validation
from cse.files import hub
from cse.methods.catalogue import METHODS
from cse.methods.catalogue import UNTRAINED as READINGS
from cse.models.names import BACKBONE, BUNDLED_NAMES, CONFIG

UNTRAINED = "Untrained"
BEFORE = " (before)"  # ends the name of a model as it was before its training
POOLED = {f"{UNTRAINED} ({pooling})".lower(): pooling for pooling in READINGS}  # names of the backbone's readings
TITLES = {
    **{name: method.title for name, method in METHODS.items() if method.title}, BACKBONE: f"{UNTRAINED} (mean)",
    **{known: name.capitalize() for name, pooling in POOLED.items() for known in (name, f"{BACKBONE}-{pooling}")},
}  # fmt: skip
MAX_NAME = 200  # characters
MAX_SIZE, MAX_FETCHED = 2_000_000_000, 20  # bytes of a model from the hub; number of models
MAX_DEPTH, MAX_OFFERED = 3, 100  # levels and number of the folders offered
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
BUNDLED = (*BUNDLED_NAMES, BACKBONE)
OFFERED_READINGS = tuple(name for name, pooling in POOLED.items() if pooling in ("cls", "prompt"))


def title(name: str) -> str:
    """Return the name of a model on the page, methods as the papers write them; `name` is that of its column."""
    if name.endswith(BEFORE):
        return f"{title(name.removesuffix(BEFORE))} before training"
    return TITLES.get(name, name)


def with_starts(names: Iterable[str]) -> dict[str, str]:
    """Return the models, each with the name of the same model before its training, "" if that is not among the names.

    A model before its training is left out where the trained one stands.
    """
    known = dict.fromkeys(names)
    starts = {name: f"{name}{BEFORE}" if f"{name}{BEFORE}" in known else "" for name in known}
    return {name: start for name, start in starts.items() if name not in starts.values()}


def choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the choices of a field for models: a title and a name each."""
    return [(title(name), name) for name in names]


@dataclass(frozen=True)
class Admission:
    """The models that visitors may add: bundled ones, folders under `root` (None: no folders), and hub ids.

    Without `fetch` a hub id must be in the cache. The number of `fetched` models is bounded while the server runs, and
    the size that the hub reports for each; the backbone of a checkpoint does not count.
    """

    root: Path | None = None
    fetch: bool = False
    fetched: set[str] = field(default_factory=set)
    fetching: Lock = field(default_factory=Lock)

    def model(self, name: Any) -> str:
        """Return the name or path by which `cse.load` opens a visitor's model."""
        requested = validation.sentence(name, "The model")
        if len(requested) > MAX_NAME:
            raise ValueError(f"The model's name has {len(requested):,} characters; give at most {MAX_NAME}.")
        if requested in BUNDLED:
            return requested
        folder = self._folder(requested)
        if folder is not None:
            return str(folder)
        if requested.lower() in (UNTRAINED.lower(), *POOLED):
            return BACKBONE
        if HUB_ID.fullmatch(requested):
            # A folder of the working directory would be opened in place of the id. It is refused as an unknown id is,
            # or visitors could ask which folders there are.
            if Path(requested).exists() or not in_cache(requested):
                self._allow_fetching(requested)
            return requested
        raise ValueError(f'There is no model "{requested[:60]}" to add; choose {self.choices()}.')

    def _allow_fetching(self, hub_id: str) -> None:
        if not self.fetch:
            cure = "Restart it with --allow-hub, or with --model FOLDER."
            raise ValueError(f'This server cannot download "{hub_id}". {cure}')
        size = hub.download_size(hub_id)
        if size is None or Path(hub_id).exists():
            cure = f'The hub does not say what "{hub_id}" is; check its name, or try again later.'
            raise ValueError(f'There is no model "{hub_id}" here. {cure}')
        if size > MAX_SIZE:
            raise ValueError(f'"{hub_id}" has {size / 1e9:.1f} GB; this server fetches at most {MAX_SIZE / 1e9:g} GB.')
        with self.fetching:
            if sum(map(in_cache, self.fetched)) >= MAX_FETCHED:
                raise ValueError(f"This server has fetched {MAX_FETCHED} models and fetches no more.")
            self.fetched.add(hub_id)

    def choices(self) -> str:
        """Return a phrase that lists the models that may be added."""
        folder = ", a folder of this server's models" if self.root else ""
        hub_id = "an id of the model hub" if self.fetch else "an id of the model hub that this server has in its cache"
        return f"a model of the list{folder} or {hub_id}"

    def offered(self) -> list[str]:
        """Return the bundled names, readings of the backbone, and up to `MAX_OFFERED` model folders under the root."""
        names: list[str] = []
        if self.root is not None:
            levels = ("/".join("*" * depth) for depth in range(1, MAX_DEPTH + 1))
            files = sorted(path for level in levels for path in self.root.glob(f"{level}/{CONFIG}"))
            folders = [path.parent for path in files if not (path.parents[1] / CONFIG).exists()]  # no part of a model
            names = [str(path.relative_to(self.root)) for path in folders[:MAX_OFFERED]]
        return [*BUNDLED, *OFFERED_READINGS, *(name for name in names if name not in BUNDLED and self._folder(name))]

    def _folder(self, requested: str) -> Path | None:
        """Return the folder of that name within the root; None if there is none, or if it has a link to the outside."""
        if self.root is None or Path(requested).is_absolute():
            return None
        root = self.root.resolve()
        try:
            folder = (root / requested).resolve()
            inside = folder != root and folder.is_relative_to(root) and folder.is_dir()
            whole = inside and all(path.resolve().is_relative_to(root) for path in folder.iterdir())
        except (OSError, ValueError, RuntimeError):  # too long, a null byte, a link to itself
            return None
        return folder if whole else None


def in_cache(hub_id: str) -> bool:
    """True if the hub's cache has the model."""
    with hub.cache_alone():
        return hub.cached_file(hub_id, CONFIG) is not None
