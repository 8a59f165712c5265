"""A pair of sentences in every model: its cosine, and its place among random pairs of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app.drawing.verdicts import among_random, scales
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, text
from cse.app.validation import PAIR

if TYPE_CHECKING:
    import numpy as np

    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

PAIRS: dict[str, tuple[str, str]] = {
    "paraphrase": ("A man is playing a guitar on stage.", "Someone plays the guitar for an audience."),
    "negation": ("The restaurant is open on Sundays.", "The restaurant is not open on Sundays."),
    "word order": ("The dog chased the cat.", "The cat chased the dog."),
    "unrelated": ("She planted tomatoes in the garden.", "The train to Berlin leaves at noon."),
}
LESSONS = {
    "paraphrase": "Other words, the same event: this should be closer than almost every random pair.",
    "negation": "One word reverses the meaning. A model that puts this pair high misses that word.",
    "word order": "The same words, another meaning. A model that puts this pair high ignores their order.",
    "unrelated": "Nothing in common: this pair should lie among the random pairs.",
}
TICKS = (0.0, 0.5, 1.0)
HEIGHT = 26  # of the highest bar of a histogram, whose picture is 100 wide and 34 high


@dataclass(frozen=True)
class Similarity(Result):
    """The cosine of two sentences in every model, and the share of random pairs that are less alike."""

    key = "similarity"
    title = "Two sentences"
    summary = 'Cosine of two sentences by every model, 1 for the same direction: {"simcse": 0.83, ...}.'
    examples = PAIRS

    s1: str = text(PAIR[0], PAIRS["paraphrase"][0], PAIR[0], "a sentence.", link="a")
    s2: str = text(PAIR[1], PAIRS["paraphrase"][1], PAIR[1], "the sentence to compare it with.", link="b")

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model: cosine, percentile, and the mean and the histogram of random pairs' cosines."""
        from cse.analysis.calibration import histogram, input_notes, percentile
        from cse.vectors import cosines

        warned: dict[str, list[str]] = {}

        def row(column: Column, encoder: Encoder, vectors: np.ndarray) -> dict[str, Any]:
            cosine, random = float(cosines(vectors[:1], vectors[1:])[0]), session.random_cosines(column, encoder)
            for name, sentence in zip(PAIR, (self.s1, self.s2), strict=True):
                for note in input_notes(encoder, sentence):
                    warned.setdefault(f"{name}: {note}", []).append(title(column.name))
            return {
                "model": column.name, "cosine": cosine, "percentile": percentile(cosine, random),
                "random_mean": float(random.mean()), "histogram": histogram(random),
            }  # fmt: skip

        rows = session.each_text([self.s1, self.s2], row)
        session.notes += [
            f"{note}." if len(names) == len(rows) else f"{note} ({', '.join(names)})." for note, names in warned.items()
        ]
        return pd.DataFrame(rows.values())

    def says(self, frame: pd.DataFrame) -> str:
        """Return what an example teaches, the range of the percentiles, and what training did to them."""
        lesson = next((LESSONS[name] for name, pair in PAIRS.items() if pair == (self.s1, self.s2)), "")
        shares, means = (dict(zip(frame["model"], frame[name], strict=True)) for name in ("percentile", "random_mean"))
        starts = with_starts(shares)
        low, high = min(starts, key=shares.__getitem__), max(starts, key=shares.__getitem__)
        least, most = among_random(shares[low]), among_random(shares[high])
        if len(starts) == 1 or least == most:
            seen = f"Seen: {least} in {title(low) if len(starts) == 1 else 'every model'}."
        else:
            seen = f"Seen: from {least} in {title(low)} to {most} in {title(high)}."
        trained = [
            f"{means[start]:.2f} to {means[name]:.2f} in {title(name)}" for name, start in starts.items() if start
        ]
        moved = f"Training took the mean cosine of random pairs from {', '.join(trained)}." if trained else ""
        return " ".join(part for part in (lesson, seen, moved) if part)

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return a row per model with its picture and that of its start, and what is said of the scales."""
        rows = {row["model"]: row for row in frame.to_dict("records")}
        for row in rows.values():
            row |= {"outline": outline(row["histogram"]), "at": across(row["cosine"])}
            row["spoken"] = among_random(row["percentile"])
        return {
            "shown": [(rows[name], rows.get(start)) for name, start in with_starts(rows).items()],
            "ticks": {tick: across(tick) for tick in TICKS},
            "scales": partial(scales, {name: rows[name]["histogram"] for name in with_starts(rows)}),
        }

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a line per model without the histogram."""
        return frame.drop(columns="histogram").assign(model=frame["model"].map(title))

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return each model's cosine."""
        return dict(zip(frame["model"], frame["cosine"].tolist(), strict=True)) if len(frame) else {}


def outline(shares: Sequence[float]) -> str:
    """Return the corners of a histogram as SVG has them; all histograms are of one height."""
    highest, width = max(shares) or 1.0, 100 / len(shares)
    corners = [
        f"{edge * width:.2f},{30 - HEIGHT * share / highest:.2f}"
        for bar, share in enumerate(shares)
        for edge in (bar, bar + 1)
    ]
    return " ".join(["0,30", *corners, "100,30"])


def across(cosine: float) -> float:
    """Return where a cosine is on the axis of histograms, 0 to 100."""
    from cse.analysis.calibration import HIGHEST, LOWEST

    return round(100 * (min(max(cosine, LOWEST), HIGHEST) - LOWEST) / (HIGHEST - LOWEST), 2)
