"""Encoders as other libraries' models. Each library is imported when its adapter is called."""

from cse.adapters.langchain_embeddings import langchain
from cse.adapters.mteb_model import mteb

__all__ = ["langchain", "mteb"]
