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
Location = Path | str  # of an index: a folder, or the address of a store


class Store(Protocol):
    """The interface of a store of indexes, and its optional abilities; a class of `STORES` is an `Index` too."""

    smooths: bool = False  # mixes vectors and queries with their neighbours
    on_disk: bool = False  # in files: `load` takes `verify` and `device`, and a killed build resumes

    @classmethod
    def build(cls, batches: Batches, location: Any, *, settings: BuildSettings, report: Callable[[int], None]) -> Index:
        """Build the index of all `batches` of texts and vectors (n, d) at `location`."""

    @classmethod
    def load(cls, location: Any, fingerprint: str | None = None, *, model: str | None = None) -> Index:
        """The index at `location`; with `fingerprint`, only if that model built it."""

    @classmethod
    def temporary(cls, batches: Batches, location: Any, *, settings: BuildSettings) -> AbstractContextManager[Index]:
        """Build an index that is deleted when the block ends. Raises ValueError if one is there."""

    @classmethod
    def manifest_at(cls, location: Any) -> Manifest:
        """The manifest of the index at `location`. Raises IndexFolderError if there is none."""

    @classmethod
    def holds_index(cls, location: Any) -> bool:
        """True if an index is at `location`, which a new one would replace. Raises ValueError if something else is."""

    @classmethod
    def downloaded(cls, location: Any) -> Any:
        """The location of the index on this machine, if `location` is one on the hub."""
        return location

    @classmethod
    def check_factory(cls, factory: str, dimension: int) -> None:
        """Raise ValueError if no index of this type can be built of such vectors; called before texts are encoded."""

    @classmethod
    def check_free(cls, location: Any) -> None:
        """Raise ValueError if something is at `location`, or it is a bad address."""
        if cls.holds_index(location):
            raise ValueError(f"{location}: holds an index already; give a new name, which will be deleted again")


class FolderStore(Store):
    """Indexes in folders. FAISS is imported on first use."""

    smooths = on_disk = True

    @classmethod
    def build(cls, batches: Batches, location: Path, **options: Any) -> Index:
        """As `VectorIndex.build`."""
        from index.faiss_index import VectorIndex

        return VectorIndex.build(batches, location, **options)

    @classmethod
    def load(cls, location: Path, fingerprint: str | None = None, **options: Any) -> Index:
        """As `VectorIndex.load`."""
        from index.faiss_index import VectorIndex

        return VectorIndex.load(location, fingerprint, **options)

    @classmethod
    def manifest_at(cls, location: Path) -> Manifest:
        """As `read_manifest`."""
        return read_manifest(location)

    @classmethod
    def holds_index(cls, location: Path) -> bool:
        """True if an index is at `location`. Raises ValueError if something else is."""
        INDEX.check_replaceable(location)
        return location.exists() and any(location.iterdir())

    @classmethod
    def check_factory(cls, factory: str, dimension: int) -> None:
        """As `faiss_engine.create`."""
        from index import faiss_engine

        faiss_engine.create(dimension, factory, seed=0)

    @classmethod
    def downloaded(cls, location: Path) -> Path:
        """The folder, downloaded if it is the name of a dataset on the hub."""
        return data_folder(location, FILES)


def location_of(text: str) -> Location:
    """The location that a user's `text` names: the address of a store unchanged, a folder as a path.

    Raises ValueError for an address of an unknown scheme.
    """
    if "://" not in text:
        return Path(text)
    store_of(text)
    return text


def store_of(location: Location) -> type[Store]:
    """The store that `location` is in. Raises ValueError for an address without a known scheme."""
    if isinstance(location, Path):
        return FolderStore
    scheme = location.partition("://")[0]
    if scheme not in STORES:
        known = " or ".join(f"{scheme}://" for scheme in STORES)
        raise ValueError(f"{location!r} is not the address of a store, which begins with {known}")
    module, name = STORES[scheme]
    return cast("type[Store]", getattr(import_module(module), name))


def manifest_at(location: Location) -> Manifest:
    """The manifest of an index. Raises IndexFolderError if there is none, ValueError for a bad address."""
    return store_of(location).manifest_at(location)


def open_at(
    location: Location,
    fingerprint: str | None = None,
    *,
    model: str | None = None,
    device: str = "auto",
    verify: bool = False,
) -> Index:
    """Open the index at `location`, as `VectorIndex.load` does; a server has no `device` and nothing to `verify`."""
    store = store_of(location)
    options: dict[str, Any] = {"device": device, "verify": verify} if store.on_disk else {}
    return store.load(location, fingerprint, model=model, **options)
