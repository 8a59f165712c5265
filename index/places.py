"""Places of an index: a folder, or the address of a Milvus collection; both have the same interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from index.folder import INDEX
from index.manifest import BuildSettings, Manifest, read_manifest

if TYPE_CHECKING:
    import numpy as np

    from index.milvus import MilvusIndex
    from index.store import VectorIndex

    Index = VectorIndex | MilvusIndex
    Batches = Iterable[tuple[list[str], np.ndarray]]

SCHEME = "milvus://"
Place = Path | str


def place_of(text: str) -> Place:
    """The place that a user's `text` names: a Milvus address unchanged, a folder as a path."""
    return text if text.startswith(SCHEME) else Path(text)


def manifest_at(place: Place) -> Manifest:
    """The manifest of an index. Raises IndexFolderError if there is none, ValueError for a bad address."""
    if isinstance(place, Path):
        return read_manifest(place)
    from index.milvus_building import read_marked
    from index.milvus_server import connect, parse_address

    address = parse_address(place)
    return read_marked(connect(address), address)[1]


def open_at(
    place: Place,
    fingerprint: str | None = None,
    *,
    model: str | None = None,
    device: str = "auto",
    verify: bool = False,
) -> Index:
    """Open the index at `place` with `VectorIndex.load` or `MilvusIndex.load`."""
    if isinstance(place, Path):
        from index.store import VectorIndex

        return VectorIndex.load(place, fingerprint, model=model, device=device, verify=verify)
    from index.milvus import MilvusIndex

    return MilvusIndex.load(place, fingerprint, model=model)


def build_at(batches: Batches, place: Place, settings: BuildSettings, report: Callable[[int], None]) -> Index:
    """Build the index of all `batches` at `place` with `VectorIndex.build` or `MilvusIndex.build`."""
    if isinstance(place, Path):
        from index.store import VectorIndex

        return VectorIndex.build(batches, place, settings=settings, report=report)
    from index.milvus import MilvusIndex

    return MilvusIndex.build(batches, place, settings=settings, report=report)


def holds_index(place: Place) -> bool:
    """True if an index is at `place`, which a new one would replace.

    Raises ValueError if something else is there, or the address is bad.
    """
    if isinstance(place, Path):
        INDEX.check_replaceable(place)
        return place.exists() and any(place.iterdir())
    from index import milvus_building
    from index.milvus_server import connect, parse_address

    address = parse_address(place)
    return milvus_building.holds_index(connect(address), address)
