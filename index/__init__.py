"""A searchable folder of sentence vectors: FAISS index, texts and manifest. FAISS is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cse.errors import IndexFolderError
from index.manifest import BuildSettings

if TYPE_CHECKING:
    from index.base import FewHitsWarning, Hit
    from index.faiss_index import VectorIndex

__all__ = ["BuildSettings", "FewHitsWarning", "Hit", "IndexFolderError", "VectorIndex"]


def __getattr__(name: str) -> Any:
    if name not in ("FewHitsWarning", "Hit", "VectorIndex"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from index import base, faiss_index

    return getattr(faiss_index if name == "VectorIndex" else base, name)
