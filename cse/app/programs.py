"""The endpoints that are no result: vectors of texts, a visitor's own texts, and further models."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

import secrets
from typing import Any

import gradio as gr

from cse.app import validation
from cse.app.corpus.own import GONE, OwnCorpus
from cse.app.corpus.reading import MOST_TEXTS, bounded
from cse.app.events import ENCODE, guarded
from cse.app.results.models import Models
from cse.app.show import ask
from cse.app.state import AppState, admit_model, chosen_columns, open_session
from cse.app.validation import MAX_CHARACTERS

MAX_ENCODED = 256  # texts
DECIMALS = 7  # the precision of float32


def add_programs(state: AppState) -> None:
    """Add the endpoints to the surrounding app, each also a tool of the Model Context Protocol."""

    def encode(texts: list[str], model: str, normalize: bool = False) -> dict[str, Any]:
        """Turn texts into vectors: {"model", "fingerprint", "dimension", "vectors": [[0.12, -0.04, ...], ...]}.

        Vectors can be compared, by their cosine, only if their fingerprints are equal.

        Args:
            texts: 1 to 256 texts, together at most 100,000 characters; what a model cannot hold is cut off.
            model: the name of a model of this app, as /models lists them, or "NAME (before)".
            normalize: true for vectors of length 1, whose inner products are cosines.
        """
        from cse.vectors import unit_rows

        checked = validation.texts(texts, MAX_ENCODED)
        if (total := sum(map(len, checked))) > MAX_CHARACTERS:
            raise ValueError(f"The texts have {total:,} characters together; give at most {MAX_CHARACTERS:,}.")
        session = open_session(state, models=[model])
        rows = session.encoded(checked).get(model)
        if rows is None:
            raise ValueError(f"{model}: {session.failed[model]}")
        numbers = (unit_rows(rows) if normalize else rows).astype(float).round(DECIMALS).tolist()
        return {"model": model, "fingerprint": session.models[model], "dimension": rows.shape[1], "vectors": numbers}

    def texts(
        texts: list[str], labels: list[str] | None = None, key: str = "", models: list[str] | None = None
    ) -> dict[str, Any]:
        """Keep texts, which the models encode: {"key": "5f...", "texts": 2, "models": {"simcse": {"done": 0, ...}}}.

        The key is a secret: with it the other endpoints read the texts as the corpus "own". They are kept as long as
        those of the page. Without texts, the answer tells how far the models are.

        Args:
            texts: up to 50,000 texts, in a request of at most 4 MB; [] for the progress with those kept under the key.
            labels: a label for each text, "" or null for a text without one; or nothing.
            key: 32 hexadecimal digits under which texts are replaced; without one the answer has a new one.
            models: the names of models, also "NAME (before)", by default all of this app; another begins once asked.
        """
        if texts:
            key = key or secrets.token_hex(16)
            named = models or [column.name for column in state.models.columns]
            columns = chosen_columns(state.models.columns, named)
            state.own_corpora.put(key, OwnCorpus("Texts", *checked_texts(texts, labels)), columns)
        own = state.own_corpora.corpus(key)
        if own is None:
            raise ValueError(GONE)
        progress = {
            column.name: {"done": done.done, "seconds_left": done.seconds_left(), "error": done.failure or None}
            for column, done in own.encodings.items()
        }
        return {"key": key, "texts": len(own.texts), "models": progress}

    def forget(key: str) -> dict[str, bool]:
        """Delete the texts and vectors under a key: {"deleted": true}; false if there were none.

        Args:
            key: the key that /texts answers.
        """
        return {"deleted": state.own_corpora.remove(key) is not None}

    def add_model(name: str) -> dict[str, Any]:
        """Add a model to the columns of this client's session alone. Returns its description.

        Args:
            name: a bundled name, a folder of the server's models, or a hub id where the server may fetch.
        """
        column = admit_model(state, name)
        described: dict[str, Any] = ask(state, Models, {"models": [column.name]}).json()[0]
        return described

    for function in (encode, texts, forget, add_model):
        gr.api(guarded(function), api_name=function.__name__, **ENCODE)


def checked_texts(texts: Any, labels: Any) -> tuple[list[str], list[str] | None]:
    """Return texts and labels. Raises FieldError for other types and numbers, ValueError for too much text."""
    checked = validation.texts(texts, MOST_TEXTS)
    if not labels:
        return [text for text, _ in bounded((text, "") for text in checked)], None
    if not isinstance(labels, list) or len(labels) != len(texts):
        raise validation.FieldError("The labels", f"Send a label for each of the {len(texts):,} texts, or none.")
    named = [validation.text(label or "", f"Label {number}").strip() for number, label in enumerate(labels, start=1)]
    bounded(zip(checked, named, strict=True))
    return checked, named
