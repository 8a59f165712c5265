"""LangChain's `Embeddings` of an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse.adapters.opening import needing, opened

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from typing_extensions import Unpack

    from cse.encoder import Encoder
    from cse.protocol import EncodeOptions


def langchain(model: str | Encoder, **options: Unpack[EncodeOptions]) -> Embeddings:
    """LangChain's `Embeddings`: the numbers of `encode_document` and `encode_query` as lists.

    `options` are those of `encode`, such as `batch_size` or `normalize_embeddings`. Raises ImportError without
    langchain-core.
    """
    with needing("langchain-core"):
        from langchain_core.embeddings import Embeddings

    encoder = opened(model)

    class EncoderEmbeddings(Embeddings):
        """An encoder's vectors as LangChain asks for them."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            """N lists of d numbers."""
            return encoder.encode_document(texts, **options).tolist()

        def embed_query(self, text: str) -> list[float]:
            """d numbers."""
            return encoder.encode_query(text, **options).tolist()

    return EncoderEmbeddings()
