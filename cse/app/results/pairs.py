"""All pairs of a list of sentences, in every model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app.drawing.verdicts import by_answer
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, choice, lines
from cse.app.validation import LIST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

LEAST_SENTENCES, MAX_SENTENCES = 2, 40
SENTENCES = """A man is playing a guitar on stage.
Someone plays the guitar for an audience.
The restaurant is open on Sundays.
You can eat there on Sundays.
She planted tomatoes in the garden.
The train to Berlin leaves at noon."""
MEASURES = (("Cosine", "cosine"), ("Percentile", "percentile"))


@dataclass(frozen=True)
class Pairs(Result):
    """The cosine and the percentile of every two sentences of a list, in every model."""

    key = "pairs"
    title = "All pairs of a list"
    summary = (
        'All pairs of a list: {"sentences": [...], "models": {"simcse": {"cosines": [[1, ...]], "percentiles": ...}}}.'
    )

    lines: str = lines(
        f"Sentences, one per line ({LEAST_SENTENCES} to {MAX_SENTENCES})", SENTENCES, LIST,
        "2 to 40 sentences, separated by newlines.", LEAST_SENTENCES, MAX_SENTENCES, link="list",
    )  # fmt: skip
    measure: str = choice(
        "Show", "cosine", "The value", "what the page shows, cosine or percentile; the answer has both.", MEASURES,
        link="value",
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model and pair: the sentences with their numbers from 1, the cosine and the percentile."""
        from cse.analysis.calibration import percentiles
        from cse.vectors import unit_rows

        sentences = self.lines.splitlines()
        one, other = np.triu_indices(len(sentences), 1)

        def rows(column: Column, encoder: Encoder, vectors: np.ndarray) -> pd.DataFrame:
            unit = unit_rows(vectors)
            cosines = (unit @ unit.T)[one, other].astype(np.float64)
            return pd.DataFrame(
                {
                    "model": column.name, "first": one + 1, "second": other + 1,
                    "s1": [sentences[row] for row in one], "s2": [sentences[row] for row in other],
                    "cosine": cosines, "percentile": percentiles(cosines, session.random_cosines(column, encoder)),
                }
            )  # fmt: skip

        tables = session.each_text(sentences, rows)
        return pd.concat(tables.values(), ignore_index=True) if tables else pd.DataFrame()

    def says(self, frame: pd.DataFrame) -> str:
        """Return each model's closest pair, and the pair on which the models differ most."""
        trained = frame[frame["model"].isin(list(with_starts(frame["model"].unique())))]
        closest = trained.loc[trained.groupby("model", sort=False)["cosine"].idxmax()]
        said = f"Most alike: {by_answer({row.model: f'{row.first} and {row.second}' for row in closest.itertuples()})}."
        wide = trained.pivot(index=["first", "second"], columns="model", values="percentile")
        if wide.shape[1] < 2 or len(wide) < 2:
            return said
        pair = (wide.max(axis=1) - wide.min(axis=1)).idxmax()
        shares = wide.loc[pair]
        return (
            f"{said} The models differ most on {pair[0]} and {pair[1]}: percentile {shares.min():.1f} in "
            f"{title(shares.idxmin())}, {shares.max():.1f} in {title(shares.idxmax())}."
        )

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return a square of cells for each model: the value, its tint, and what a pointer reads."""
        squares = {}
        for name, (cosines, shares) in matrices(frame).items():
            squares[name] = [
                [
                    (
                        short(cosine) if self.measure == "cosine" else f"{share:.0f}",
                        round(100 * max(cosine, 0)) if self.measure == "cosine" else round(share),
                        f"{row} and {place}: cosine {cosine:.3f}, percentile {share:.1f}",
                    )
                    for place, (cosine, share) in enumerate(zip(*values, strict=True), start=1)
                ]
                for row, values in enumerate(zip(cosines, shares, strict=True), start=1)
            ]
        return {"sentences": self.lines.splitlines(), "squares": squares, "measure": self.measure}

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the sentences and each model's two matrices."""
        models = {
            name: {"cosines": cosines.round(4).tolist(), "percentiles": shares.round(2).tolist()}
            for name, (cosines, shares) in matrices(frame).items()
        }
        return {"sentences": self.lines.splitlines(), "models": models}

    def with_failures(self, answer: Any, failed: Mapping[str, str]) -> Any:
        """Return the answer with the reasons among the models."""
        return {**answer, "models": super().with_failures(answer["models"], failed)}


def matrices(frame: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return each model's (N, N) cosines and percentiles; a sentence has 1 and 100 with itself."""
    found = {}
    for name, rows in frame.groupby("model", sort=False) if len(frame) else ():
        places = rows["first"].to_numpy() - 1, rows["second"].to_numpy() - 1
        square = np.eye(places[1].max() + 1)
        cosines, shares = square, 100 * square
        for matrix, values in ((cosines, rows["cosine"]), (shares, rows["percentile"])):
            matrix[places] = matrix.T[places] = values
        found[str(name)] = cosines, shares
    return found


def short(cosine: float) -> str:
    """Return a cosine with two decimals and without the zero before the point."""
    return f"{cosine:.2f}".replace("0.", ".", 1).replace("-.00", ".00").replace("-", "\N{MINUS SIGN}")
