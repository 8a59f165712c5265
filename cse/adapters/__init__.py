"""Adapters of encoders to other libraries, each imported when its adapter is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cse.adapters.mteb_model import mteb
from cse.adapters.opening import needing, opened

if TYPE_CHECKING:
    from cse.adapters.langchain_embeddings import EncoderEmbeddings
    from cse.encoder.encoder import Encoder

__all__ = ["langchain", "mteb"]


def langchain(model: str | Encoder, **options: Any) -> EncoderEmbeddings:
    """Return LangChain `Embeddings`: the vectors of `encode_document` and `encode_query` as lists.

    `options` are those of `encode`, such as `batch_size` or `normalize_embeddings`. Raises ImportError without
    langchain-core.
    """
    with needing("langchain-core"):
        from cse.adapters.langchain_embeddings import EncoderEmbeddings

    return EncoderEmbeddings(opened(model), options)
