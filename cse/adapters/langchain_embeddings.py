"""LangChain's `Embeddings` of an encoder; importing this module needs langchain-core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder


class EncoderEmbeddings(Embeddings):
    """LangChain's interface to an encoder: vectors as lists; `options` are those of `encode`."""

    def __init__(self, encoder: Encoder, options: dict[str, Any]) -> None:
        self.encoder, self.options = encoder, options

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """N lists of d numbers."""
        return self.encoder.encode_document(texts, **self.options).tolist()

    def embed_query(self, text: str) -> list[float]:
        """d numbers."""
        return self.encoder.encode_query(text, **self.options).tolist()
