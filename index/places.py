"""Places of an index: a folder, or the address of a store such as a Milvus collection, with one interface for all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from index.folder import INDEX
from index.manifest import BuildSettings, Manifest, read_manifest

if TYPE_CHECKING:
    from index.protocol import Batches, Index, Store

STORES = {"milvus": ("index.milvus", "MilvusIndex")}  # scheme of the addresses -> module and class (`index.protocol`)
Place = Path | str


def place_of(text: str) -> Place:
    """The place that a user's `text` names: the address of a store unchanged, a folder as a path.

    Raises ValueError for an address of an unknown scheme.
    """
    if "://" not in text:
        return Path(text)
    store_of(text)
    return text


def manifest_at(place: Place) -> Manifest:
    """The manifest of an index. Raises IndexFolderError if there is none, ValueError for a bad address."""
    return read_manifest(place) if isinstance(place, Path) else store_of(place).manifest_at(place)


def open_at(
    place: Place,
    fingerprint: str | None = None,
    *,
    model: str | None = None,
    device: str = "auto",
    verify: bool = False,
) -> Index:
    """Open the index at `place` with the `load` of `VectorIndex` or of its store, which has nothing to `verify`."""
    if isinstance(place, Path):
        from index.faiss_index import VectorIndex

        return VectorIndex.load(place, fingerprint, model=model, device=device, verify=verify)
    return store_of(place).load(place, fingerprint, model=model)


def build_at(batches: Batches, place: Place, settings: BuildSettings, report: Callable[[int], None]) -> Index:
    """Build the index of all `batches` at `place` with the `build` of `VectorIndex` or of its store."""
    if isinstance(place, Path):
        from index.faiss_index import VectorIndex

        return VectorIndex.build(batches, place, settings=settings, report=report)
    return store_of(place).build(batches, place, settings=settings, report=report)


def holds_index(place: Place) -> bool:
    """True if an index is at `place`, which a new one would replace.

    Raises ValueError if something else is there, or the address is bad.
    """
    if isinstance(place, Path):
        INDEX.check_replaceable(place)
        return place.exists() and any(place.iterdir())
    return store_of(place).holds_index(place)


def check_free(place: str) -> None:
    """Raise ValueError if something is at an address, or it is bad."""
    if store_of(place).holds_index(place):
        raise ValueError(f"{place}: holds an index already; give a new name, which will be deleted again")


def temporary_at(batches: Batches, place: str, settings: BuildSettings) -> AbstractContextManager[Index]:
    """Build an index at an address for the length of a block. Raises ValueError if something is there already."""
    return store_of(place).temporary(batches, place, settings=settings)


def store_of(place: str) -> type[Store]:
    """The class of the store that an address names. Raises ValueError for an address without a known scheme."""
    scheme = place.partition("://")[0]
    if scheme not in STORES:
        known = " or ".join(f"{each}://" for each in STORES)
        raise ValueError(f"{place!r} is not the address of a store, which begins with {known}")
    module, name = STORES[scheme]
    return cast("type[Store]", getattr(import_module(module), name))
