"""A corpus: a table of texts, read from any file or hub id, written back with every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse.corpus.corpus import Corpus

__all__ = ["Corpus"]


def __getattr__(name: str) -> Any:
    if name == "Corpus":
        from cse.corpus.corpus import Corpus

        return Corpus
    raise AttributeError(name)
