"""The models that a visitor may add: bundled ones, folders under one root, and hub ids."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from cse.app import validation
from cse.app.models.naming import POOLED, UNTRAINED
from cse.files import hub
from cse.models.names import BACKBONE, BUNDLED_NAMES, CONFIG

LONGEST = 200  # characters of a name
LARGEST, MOST_FETCHED = 2_000_000_000, 20  # bytes of a model from the hub; number of models
DEEPEST, MOST_OFFERED = 3, 100  # levels and number of the folders offered
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
BUNDLED = (*BUNDLED_NAMES, BACKBONE)
READINGS = tuple(name for name, pooling in POOLED.items() if pooling in ("cls", "prompt"))  # offered ones


@dataclass(frozen=True)
class Admission:
    """The rules for adding models: folders under `root` (None: no folders), and hub ids, downloaded with `fetch`.

    Without `fetch` a hub id must be in the cache. The number of `fetched` models is bounded while the server runs, and
    the size that the hub reports for each; the backbone of a checkpoint does not count.
    """

    root: Path | None = None
    fetch: bool = False
    fetched: set[str] = field(default_factory=set)
    fetching: Lock = field(default_factory=Lock)

    def model(self, name: Any) -> str:
        """Return the name or path by which `cse.load` opens a visitor's model.

        Raises ValueError, without a path, for a model that may not be added.
        """
        requested = validation.sentence(name, "The model")
        if len(requested) > LONGEST:
            raise ValueError(f"The model's name has {len(requested):,} characters; give at most {LONGEST}.")
        if requested in BUNDLED:
            return requested
        folder = self._folder(requested)
        if folder is not None:
            return str(folder)
        if requested.lower() in (UNTRAINED.lower(), *POOLED):
            return BACKBONE
        if HUB_ID.fullmatch(requested):
            if is_local(requested) or not in_cache(requested):
                self._allow_fetching(requested)
            return requested
        raise ValueError(f'There is no model "{requested[:60]}" to add; choose {self.choices()}.')

    def _allow_fetching(self, hub_id: str) -> None:
        if not self.fetch:
            raise ValueError(
                f'This server cannot download "{hub_id}". Restart it with --allow-hub, or with --model FOLDER.'
            )
        size = hub.download_size(hub_id)
        if size is None or is_local(hub_id):
            raise ValueError(
                f'There is no model "{hub_id}" here. The hub does not say what "{hub_id}" is; check its name, or try '
                "again later."
            )
        if size > LARGEST:
            raise ValueError(f'"{hub_id}" has {size / 1e9:.1f} GB; this server fetches at most {LARGEST / 1e9:g} GB.')
        with self.fetching:
            if sum(in_cache(each) for each in self.fetched) >= MOST_FETCHED:
                raise ValueError(f"This server has fetched {MOST_FETCHED} models and fetches no more.")
            self.fetched.add(hub_id)

    def choices(self) -> str:
        """Return a phrase that lists the models that may be added."""
        folder = ", a folder of this server's models" if self.root else ""
        hub_id = "an id of the model hub" if self.fetch else "a hub id that this server has in its cache"
        return f"{', '.join(BUNDLED)}{folder} or {hub_id}"

    def offered(self) -> list[str]:
        """Return the bundled names, readings of the backbone, and up to `MOST_OFFERED` model folders under the root."""
        if self.root is None:
            return [*BUNDLED, *READINGS]
        levels = ("/".join("*" * depth) for depth in range(1, DEEPEST + 1))
        files = sorted(path for level in levels for path in self.root.glob(f"{level}/{CONFIG}"))
        found = [path.parent for path in files if not (path.parents[1] / CONFIG).exists()]  # no part of a model
        names = [str(path.relative_to(self.root)) for path in found[:MOST_OFFERED]]
        return [*BUNDLED, *READINGS, *(name for name in names if name not in BUNDLED and self._folder(name))]

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


def is_local(hub_id: str) -> bool:
    """True if a folder of the working directory would be opened in place of a hub id.

    It is refused as an unknown id is, or visitors could ask which folders there are.
    """
    return Path(hub_id).exists()


def in_cache(hub_id: str) -> bool:
    """True if the hub's cache has the model."""
    with hub.cache_alone():
        return hub.cached_file(hub_id, CONFIG) is not None
