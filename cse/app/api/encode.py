"""The endpoint that returns vectors, for programs without models of their own."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Callable
from typing import Any

import numpy as np

from cse.app import validation
from cse.app.models.models import Failure
from cse.app.models.remembered import fingerprint_of
from cse.app.state.app_state import AppState
from cse.app.validation import MAX_CHARACTERS

MOST = 256  # texts
BLOCK = 64  # texts encoded before other requests may use the model
DECIMALS = 7  # the precision of float32


def encode_of(state: AppState) -> Callable[..., dict[str, Any]]:
    """Return the function of the endpoint."""

    def encode_endpoint(texts: list[str], model: str, normalize: bool = False) -> dict[str, Any]:
        """Turn texts into vectors: {"model", "fingerprint", "dimension", "vectors": [[0.12, -0.04, ...], ...]}.

        Vectors can be compared, by their cosine, only if their fingerprints are equal.

        Args:
            texts: 1 to 256 texts, together at most 100,000 characters; what a model cannot hold is cut off.
            model: the name of a model of this app, as /models lists them.
            normalize: true for vectors of length 1, whose inner products are cosines.
        """
        wanted = validation.texts(texts, MOST)
        if (total := sum(map(len, wanted))) > MAX_CHARACTERS:
            raise ValueError(f"The texts have {total:,} characters together; give at most {MAX_CHARACTERS:,}.")
        columns = {column.name: column for column in state.models.columns}
        column = columns[validation.one_of(model, "The model", columns)]
        blocks, mark = [], ""
        for start in range(0, len(wanted), BLOCK):
            answer = state.models.apply_to(
                wanted[start : start + BLOCK], lambda _, encoder, rows: (fingerprint_of(encoder), rows), [column]
            )[column.name]
            if isinstance(answer, Failure):
                raise ValueError(f"{column.name}: {answer.reason}")
            mark = answer[0]
            blocks.append(answer[1])
        return vectors_json(column.name, mark, np.concatenate(blocks), normalize)

    return encode_endpoint


def vectors_json(model: str, mark: str, rows: np.ndarray, normalize: bool) -> dict[str, Any]:
    """Return the vectors (N, d) of a model of this fingerprint as JSON values."""
    from cse.vectors import unit_rows

    numbers = (unit_rows(rows) if normalize else rows).astype(np.float64).round(DECIMALS).tolist()
    return {"model": model, "fingerprint": mark, "dimension": rows.shape[1], "vectors": numbers}
