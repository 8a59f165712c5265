"""Stores of indexes: folders, or the addresses of a server such as Milvus, with one interface for all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from cse.files.hub import data_folder
from index.folder import FILES, INDEX
from index.manifest import BuildSettings, Manifest, read_manifest

if TYPE_CHECKING:
    from index.base import Index
    from index.building import Batches

STORES = {"milvus": ("index.milvus", "MilvusIndex")}  # scheme of the addresses -> module and class, a `Store`
Place = Path | str  # of an index: a folder, or the address of a store


class Store(Protocol):
    """A kind of place for indexes, and what only some can do; a class of `STORES` is an `Index` too."""

    smooths: bool = False  # mixes vectors and queries with their neighbours
    on_disk: bool = False  # in files: `load` takes `verify` and `device`, and a killed build resumes

    @classmethod
    def build(cls, batches: Batches, place: Any, *, settings: BuildSettings, report: Callable[[int], None]) -> Index:
        """Build the index of all `batches` of texts and vectors (n, d) at `place`."""

    @classmethod
    def load(cls, place: Any, fingerprint: str | None = None, *, model: str | None = None) -> Index:
        """The index at `place`; with `fingerprint`, only if that model built it."""

    @classmethod
    def temporary(cls, batches: Batches, place: Any, *, settings: BuildSettings) -> AbstractContextManager[Index]:
        """Build an index that is deleted when the block ends. Raises ValueError if one is there."""

    @classmethod
    def manifest_at(cls, place: Any) -> Manifest:
        """The manifest of the index at `place`. Raises IndexFolderError if there is none."""

    @classmethod
    def holds_index(cls, place: Any) -> bool:
        """True if an index is at `place`, which a new one would replace. Raises ValueError if something else is."""

    @classmethod
    def downloaded(cls, place: Any) -> Any:
        """The place of the index on this machine, if `place` is one on the hub."""
        return place

    @classmethod
    def check_factory(cls, factory: str, dimension: int) -> None:
        """Raise ValueError if no index of this type can be built of such vectors; called before texts are encoded."""

    @classmethod
    def check_free(cls, place: Any) -> None:
        """Raise ValueError if something is at `place`, or it is a bad address."""
        if cls.holds_index(place):
            raise ValueError(f"{place}: holds an index already; give a new name, which will be deleted again")


class FolderStore(Store):
    """Indexes in folders. FAISS is imported on first use."""

    smooths = on_disk = True

    @classmethod
    def build(cls, batches: Batches, place: Path, **options: Any) -> Index:
        """As `VectorIndex.build`."""
        from index.faiss_index import VectorIndex

        return VectorIndex.build(batches, place, **options)

    @classmethod
    def load(cls, place: Path, fingerprint: str | None = None, **options: Any) -> Index:
        """As `VectorIndex.load`."""
        from index.faiss_index import VectorIndex

        return VectorIndex.load(place, fingerprint, **options)

    @classmethod
    def manifest_at(cls, place: Path) -> Manifest:
        """As `read_manifest`."""
        return read_manifest(place)

    @classmethod
    def holds_index(cls, place: Path) -> bool:
        """True if an index is at `place`. Raises ValueError if something else is."""
        INDEX.check_replaceable(place)
        return place.exists() and any(place.iterdir())

    @classmethod
    def check_factory(cls, factory: str, dimension: int) -> None:
        """As `faiss_engine.create`."""
        from index import faiss_engine

        faiss_engine.create(dimension, factory, seed=0)

    @classmethod
    def downloaded(cls, place: Path) -> Path:
        """The folder, downloaded if it is the name of a dataset on the hub."""
        return data_folder(place, FILES)


def place_of(text: str) -> Place:
    """The place that a user's `text` names: the address of a store unchanged, a folder as a path.

    Raises ValueError for an address of an unknown scheme.
    """
    if "://" not in text:
        return Path(text)
    store_of(text)
    return text


def store_of(place: Place) -> type[Store]:
    """The store that `place` is in. Raises ValueError for an address without a known scheme."""
    if isinstance(place, Path):
        return FolderStore
    scheme = place.partition("://")[0]
    if scheme not in STORES:
        known = " or ".join(f"{each}://" for each in STORES)
        raise ValueError(f"{place!r} is not the address of a store, which begins with {known}")
    module, name = STORES[scheme]
    return cast("type[Store]", getattr(import_module(module), name))


def manifest_at(place: Place) -> Manifest:
    """The manifest of an index. Raises IndexFolderError if there is none, ValueError for a bad address."""
    return store_of(place).manifest_at(place)


def open_at(
    place: Place,
    fingerprint: str | None = None,
    *,
    model: str | None = None,
    device: str = "auto",
    verify: bool = False,
) -> Index:
    """Open the index at `place`, as `VectorIndex.load` does; a server has no `device` and nothing to `verify`."""
    store = store_of(place)
    options: dict[str, Any] = {"device": device, "verify": verify} if store.on_disk else {}
    return store.load(place, fingerprint, model=model, **options)
