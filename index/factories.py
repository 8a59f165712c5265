"""The FAISS factory strings this project documents, each with the one line that helps to choose."""

from __future__ import annotations

DOCUMENTED_FACTORIES = {
    "Flat": "exact; the default, right up to about 50,000 sentences and wherever exactness matters",
    "SQfp16": "half the memory of Flat and nearly exact, as slow as Flat",
    "SQ8": "a quarter of the memory of Flat, close to exact, as slow as Flat",
    "HNSW32,Flat": "fast on a CPU from 50,000 to 1 million sentences; more memory than Flat, slow to build, no removal",
    "IVF{n},Flat": "fast, also on a GPU; n lists, about 4 times the square root of the number of sentences",
    "IVF{n},SQ8": "the same at a quarter of the memory, for 1 to 10 million sentences",
    "IVF{n},PQ16": "16 bytes a sentence for the largest corpora, lowest recall; 16 must divide the dimension",
}


def factory_guidance() -> str:
    """The documented factories as one paragraph of help."""
    return "; ".join(f"{factory}: {guidance}" for factory, guidance in DOCUMENTED_FACTORIES.items())
