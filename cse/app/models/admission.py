"""Which models a visitor may add: bundled ones, folders under one root, and ids of the model hub."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from cse.app import validation
from cse.models.names import BACKBONE, BUNDLED_NAMES, CONFIG
from cse.storage import hub

LONGEST = 200  # characters of a name
LARGEST, MOST_FETCHED = 2_000_000_000, 20  # bytes of a model from the hub, and how many of them
DEEPEST, MOST_OFFERED = 3, 100  # folders that are offered
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
BUNDLED = (*BUNDLED_NAMES, BACKBONE)


@dataclass(frozen=True)
class Admission:
    """What may be added: folders under `root`, None for none, and hub ids, which are downloaded where `fetch` says so.

    Without `fetch` a hub id is found where it is already in the cache. What is `fetched` is
    bounded in number while the server runs, and in the size that the hub tells of it; a checkpoint's backbone is not.
    """

    root: Path | None = None
    fetch: bool = False
    fetched: set[str] = field(default_factory=set)
    fetching: Lock = field(default_factory=Lock)

    def model(self, name: Any) -> str:
        """What `cse.load` opens a visitor's name by; ValueError, which names no path, for what he may not name."""
        asked = validation.sentence(name, "The model")
        if len(asked) > LONGEST:
            raise ValueError(f"The model's name has {len(asked):,} characters; give at most {LONGEST}.")
        if asked in BUNDLED:
            return asked
        folder = self._folder(asked)
        if folder is not None:
            return str(folder)
        if HUB_ID.fullmatch(asked) and not Path(asked).exists():  # never a folder that the server happens to run in
            if not in_cache(asked):
                self._allow_fetching(asked)
            return asked
        raise ValueError(f'There is no model "{asked[:60]}" to add; choose {self.choices()}.')

    def _allow_fetching(self, hub_id: str) -> None:
        if not self.fetch:
            raise ValueError(f'"{hub_id}" is not among this server\'s models, and it fetches none.')
        size = hub.download_size(hub_id)
        if size is None:
            raise ValueError(f'The hub does not say what "{hub_id}" is; check its name, or try again later.')
        if size > LARGEST:
            raise ValueError(f'"{hub_id}" has {size / 1e9:.1f} GB; this server fetches at most {LARGEST / 1e9:g} GB.')
        with self.fetching:
            if sum(in_cache(each) for each in self.fetched) >= MOST_FETCHED:
                raise ValueError(f"This server has fetched {MOST_FETCHED} models and fetches no more.")
            self.fetched.add(hub_id)

    def choices(self) -> str:
        """What may be added, in words."""
        folder = ", a folder of this server's models" if self.root else ""
        hub_id = "an id of the model hub" if self.fetch else "a hub id that this server has in its cache"
        return f"{', '.join(BUNDLED)}{folder} or {hub_id}"

    def offered(self) -> list[str]:
        """The bundled names and the model folders under the root, the first ones by name."""
        if self.root is None:
            return list(BUNDLED)
        levels = ("/".join("*" * depth) for depth in range(1, DEEPEST + 1))
        found = sorted(path.parent for level in levels for path in self.root.glob(f"{level}/{CONFIG}"))
        names = [str(path.relative_to(self.root)) for path in found[:MOST_OFFERED]]
        return [*BUNDLED, *(name for name in names if name not in BUNDLED and self._folder(name))]

    def _folder(self, asked: str) -> Path | None:
        """The folder of that name within the root; None where there is none, or where anything in it leads outside."""
        if self.root is None or Path(asked).is_absolute():
            return None
        root = self.root.resolve()
        try:
            folder = (root / asked).resolve()
            inside = folder != root and folder.is_relative_to(root) and folder.is_dir()
            whole = inside and all(path.resolve().is_relative_to(root) for path in folder.iterdir())
        except (OSError, ValueError, RuntimeError):  # too long, a null byte, a link to itself
            return None
        return folder if whole else None


def in_cache(hub_id: str) -> bool:
    """Whether the hub's cache has a model."""
    with hub.cache_alone():
        return hub.cached_file(hub_id, CONFIG) is not None
