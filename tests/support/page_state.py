"""The state of an app with tiny models, and a visitor's table in it, for tests of results."""

import time
from pathlib import Path

import pyarrow as pa
from app_models import write_model
from conftest import WORDS

from cse.app.corpus.own import OwnCorpus
from cse.app.state import AppState, open_state
from cse.corpus.corpus import Corpus

KEY = "f" * 32
NOUNS = ("man", "woman", "dog", "cat", "guitar")


def tiny_state(root: Path, backbone: Path, methods: tuple[str, ...] = ("simcse", "promptbert")) -> AppState:
    """The state of an app with a tiny checkpoint of each method."""
    return open_state([str(write_model(root / name, backbone, name, seed)) for seed, name in enumerate(methods)], ())


def table(rows: int = 40) -> pa.Table:
    """A table with an id, a text, a label and a number; one row has no text, and one has no label."""
    texts = [f"the {NOUNS[row % 5]} is {WORDS[20 + row % 25]} in the {WORDS[12 + row // 5]}" for row in range(rows)]
    texts[3] = "  "
    labels = [NOUNS[row % 5] for row in range(rows)]
    labels[7] = ""
    return pa.table(
        {
            "id": [f"T-{row}" for row in range(rows)],
            "body": texts,
            "kind": labels,
            "score": [row / 4 for row in range(rows)],
        }
    )


def put_table(state: AppState, rows: pa.Table | None = None, name: str = "pets.csv") -> Corpus:
    """Give the visitor of `KEY` a table, and wait until all models have encoded it."""
    corpus = Corpus.of(table() if rows is None else rows, column="body", labels="kind")
    encode_own(state, KEY, OwnCorpus.of(name, corpus))
    return corpus


def encode_own(state: AppState, key: str, own: OwnCorpus) -> None:
    """Give a visitor texts, and wait until all models have encoded them and its thread has ended."""
    state.own_corpora.put(key, own, state.models.columns)
    while state.own_corpora._encoding:  # also after the last block, for a pause in which it would find new work
        time.sleep(0.01)
