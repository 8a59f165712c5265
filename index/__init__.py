"""A searchable folder of sentence vectors: FAISS index, texts and manifest. FAISS is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cse.errors import IndexFolderError
from index.manifest import BuildSettings

if TYPE_CHECKING:
    from index.faiss_index import VectorIndex
    from index.stores import FewHitsWarning, Hit

__all__ = ["BuildSettings", "FewHitsWarning", "Hit", "IndexFolderError", "VectorIndex"]


def __getattr__(name: str) -> Any:
    if name not in ("FewHitsWarning", "Hit", "VectorIndex"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("index.faiss_index" if name == "VectorIndex" else "index.stores"), name)
