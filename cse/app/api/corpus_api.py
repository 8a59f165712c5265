"""The endpoints of a visitor's own texts: keep them, take their vectors, delete them."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

import base64
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from cse.app import validation
from cse.app.corpus.chosen import chosen_corpus
from cse.app.corpus.exports import vectors_of
from cse.app.corpus.reading import MOST_TEXTS, bounded
from cse.app.state.app_state import AppState
from cse.app.state.corpora import OWN_KEY
from cse.app.state.own_corpora import GONE, OwnCorpus

MOST_ROWS = 2048  # vectors in one answer
LABEL = "Texts"


def corpus_endpoints(state: AppState) -> list[Callable[..., Any]]:
    """Return the endpoint functions, named with the suffix "_endpoint"."""

    def texts_endpoint(texts: list[str], labels: list[str] | None = None, key: str = "") -> dict[str, Any]:
        """Keep texts, which every model encodes: {"key": "5f...", "texts": 2, "models": {"simcse": {"done": 0, ...}}}.

        The key is a secret: with it, /search, /vectors and /disagreements read the texts as the corpus "own". They are
        kept as long as those of the page. Without texts, the answer tells how far the models are.

        Args:
            texts: up to 50,000 texts, in a request of at most 4 MB; [] for the progress with those kept under the key.
            labels: a label for each text, "" or null for a text without one; or nothing.
            key: 32 hexadecimal digits under which texts are replaced; without one the answer has a new one.
        """
        if texts:
            key = key or secrets.token_hex(16)
            state.own_corpora.put(key, OwnCorpus(LABEL, *checked(texts, labels)), state.models.columns)
        own = state.own_corpora.corpus(key)
        if own is None:
            raise ValueError(GONE)
        return {"key": key, "texts": len(own.texts), "models": progress(own)}

    def vectors_endpoint(model: str, corpus: str = OWN_KEY, key: str = "", start: int = 0) -> dict[str, Any]:
        """Up to 2,048 vectors of a corpus: {"model", "fingerprint", "total", "start", "shape": [n, d], "float32": ""}.

        "float32" is base64 of little-endian numbers, row by row. An error says how far a model is that still encodes.

        Args:
            model: the name of a model of this app, as /models lists them.
            corpus: "own" for the texts under the key, "demo", or the name of a corpus the app was started with.
            key: for "own" the key that /texts answers.
            start: the number of the first text, from 0.
        """
        found = vectors_of(state, chosen_corpus(state, corpus, key), model)
        first = validation.whole(start, "The start", 0, len(found.rows) - 1)
        rows = np.ascontiguousarray(found.rows[first : first + MOST_ROWS], "<f4")
        return {
            "model": model, "fingerprint": found.fingerprint, "total": len(found.rows), "start": first,
            "shape": list(rows.shape), "float32": base64.b64encode(rows.tobytes()).decode(),
        }  # fmt: skip

    def forget_endpoint(key: str) -> dict[str, bool]:
        """Delete the texts and vectors under a key: {"deleted": true}; false if there were none.

        Args:
            key: the key that /texts answers.
        """
        known = state.own_corpora.corpus(key) is not None
        state.own_corpora.remove(key)
        return {"deleted": known}

    return [texts_endpoint, vectors_endpoint, forget_endpoint]


def checked(texts: Any, labels: Any) -> tuple[list[str], list[str] | None]:
    """Return texts and labels. Raises FieldError for other types and numbers, ValueError for too much text."""
    found = validation.texts(texts, MOST_TEXTS)
    if not labels:
        return [text for text, _ in bounded((text, "") for text in found)], None
    if not isinstance(labels, list) or len(labels) != len(texts):
        raise validation.FieldError("The labels", f"Send a label for each of the {len(texts):,} texts, or none.")
    named = [
        "" if label is None else validation.text(label, f"Label {number}").strip()
        for number, label in enumerate(labels, start=1)
    ]
    bounded(zip(found, named, strict=True))
    return found, named


def progress(own: OwnCorpus) -> dict[str, dict[str, Any]]:
    """Return each model's progress as JSON values."""
    return {
        column.name: {"done": each.done, "seconds_left": each.seconds_left(), "error": each.failure or None}
        for column, each in own.encodings.items()
    }
