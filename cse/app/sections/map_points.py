"""The texts of the maps: those of the chosen corpus, or the demo's graded pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cse.analysis.maps import evenly
from cse.app import validation
from cse.app.corpus.chosen import ChosenCorpus, DemoCorpus, chosen_corpus
from cse.app.drawing.canvas import canvas_value
from cse.app.models.models import Failure
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO, DEMO_KEY
from cse.app.state.maps import Points
from cse.app.state.model_map import ModelMap

SOURCES = {"corpus": "The corpus", "pairs": "Graded pairs, joined by lines"}
LINES = "lines"  # a source of the endpoint alone
MOST_LINES = 2000
LEAST_POINTS, MOST_POINTS = 100, 10_000
MOST_ROWS = 50_000  # of a corpus
GRADES = {"0": "0 unrelated", "3": "3 close", "5": "5 the same"}


def points_of(
    state: AppState, source: str, lines: str = "", most: int = MOST_POINTS, corpus: str = DEMO_KEY,
    key: str | None = None, pin: int | None = None,
) -> Points:  # fmt: skip
    """Return the texts to draw; only the values that the source needs are checked. `pin` adds a row of the corpus."""
    match validation.one_of(source, "The source", (*SOURCES, LINES)):
        case "corpus":
            count = validation.whole(most, "The most points", LEAST_POINTS, MOST_POINTS)
            return corpus_points(chosen_corpus(state, corpus, key), count, pin)
        case "pairs":
            return graded_points()
    return Points(validation.lines(lines, 1, MOST_LINES))


def corpus_points(corpus: ChosenCorpus, most: int = MOST_POINTS, pin: int | None = None) -> Points:
    """Return at most `most` texts of a corpus, sampled evenly, and the text in row `pin` if there is such a row."""
    texts, labels = corpus.texts, corpus.labels
    wanted = [pin] if pin is not None and pin < len(texts) else []  # another corpus may have more rows
    rows = np.union1d(evenly(len(texts), most), wanted).astype(int)
    named = None if labels is None else [labels[row] for row in rows]
    numbers = [corpus.numbers[row] for row in rows]
    return Points([texts[row] for row in rows], named, rows, len(texts), corpus.vectors, corpus.columns, numbers)


def demo_points(state: AppState) -> Points:
    """Return the sentences of the demo corpus."""
    return corpus_points(DemoCorpus(state))


def graded_points() -> Points:
    """Return both sentences of each graded pair, one after the other."""
    from cse.corpus.supervised import scored_pairs

    pairs = sorted(scored_pairs(DEMO / "pairs.tsv"), key=lambda pair: pair[0])
    texts = [sentence for _, first, second in pairs for sentence in (first, second)]
    return Points(texts, [f"{grade:g}" for grade, *_ in pairs for _ in range(2)], paired=True)


def pinned(pin: Any) -> int | None:
    """Parse the pinned text, a number or digits: its row in the corpus; None for none. Raises FieldError."""
    if pin is None or pin == "":
        return None
    number = int(pin) if isinstance(pin, str) and pin.isdecimal() and len(pin) < 6 else pin
    return validation.whole(number, "The pinned sentence", 0, MOST_ROWS - 1)


def maps_value(
    points: Points, maps: Mapping[str, ModelMap | Failure], pin: int | None = None, request: int = 0
) -> dict[str, Any]:
    """Return the canvas value of maps of the points; a `pin` that is not among them is ignored."""
    rows = list(range(len(points.texts))) if points.rows is None else points.rows.tolist()
    labels = [GRADES.get(label, label) for label in points.labels] if points.paired and points.labels else points.labels
    return canvas_value(
        points.texts, labels, maps, joined=points.paired, rows=rows, note=note_of(points),
        pin=rows.index(pin) if pin in rows else -1, request=request,
    )  # fmt: skip


def note_of(points: Points) -> str:
    """Return a sentence that says which texts are drawn."""
    count = len(points.texts)
    if points.total > count:
        return f"{count:,} of {points.total:,} texts, sampled evenly"
    return validation.counted(count, "text")
