"""Where an index is: a folder, or a Milvus collection by its address. Both are searched and edited alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from index.folder import check_replaceable
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
    """What a user's `text` names: an address as it stands, a folder as a path."""
    return text if text.startswith(SCHEME) else Path(text)


def manifest_at(place: Place) -> Manifest:
    """The manifest of an index. Raises IndexFolderError where there is none, ValueError for a bad address."""
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
    """The index at `place`, as `VectorIndex.load` and `MilvusIndex.load` open it."""
    if isinstance(place, Path):
        from index.store import VectorIndex

        return VectorIndex.load(place, fingerprint, model=model, device=device, verify=verify)
    from index.milvus import MilvusIndex

    return MilvusIndex.load(place, fingerprint, model=model)


def build_at(
    batches: Batches, place: Place, settings: BuildSettings, report: Callable[[int], None], state: Path | None = None
) -> Index:
    """The index of all `batches` at `place`, as `VectorIndex.build` and `MilvusIndex.build` make it.

    A `state` is for folders alone.
    """
    if isinstance(place, Path):
        from index.store import VectorIndex

        return VectorIndex.build(batches, place, settings=settings, report=report, state=state)
    from index.milvus import MilvusIndex

    return MilvusIndex.build(batches, place, settings=settings, report=report)


def is_index_of(place: Place, factory: str, seed: int, corpus_sha256: str) -> bool:
    """Whether an index of these sentences that was made like this is at `place`; ValueError as for `holds_index`."""
    if not holds_index(place):
        return False
    built = manifest_at(place)
    return (built.factory, built.seed, built.corpus_sha256) == (factory, seed, corpus_sha256)


def holds_index(place: Place) -> bool:
    """Whether an index is at `place` that a new one would replace.

    Raises ValueError where something else is there, or the address is bad.
    """
    if isinstance(place, Path):
        check_replaceable(place)
        return place.exists() and any(place.iterdir())
    from index import milvus_building
    from index.milvus_server import connect, parse_address

    address = parse_address(place)
    return milvus_building.holds_index(connect(address), address)
