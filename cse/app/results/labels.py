"""The models on the labels of the chosen corpus, and the time that they take on this machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app import validation
from cse.app.charts import by_model, chart, tips
from cse.app.corpus.chosen import FIELD
from cse.app.models.models import fingerprint_of
from cse.app.models.naming import title
from cse.app.result import Result
from cse.app.results.scores import board_of, opened_by
from cse.corpus.corpus import Corpus
from cse.evaluation.clustering import label_scores, neighbour_values
from cse.evaluation.metrics import mean_difference

if TYPE_CHECKING:
    from cse.app.corpus.chosen import ChosenCorpus
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

MOST_LABELS = 200
MEASURES = {"neighbours": "label neighbours", "purity": "purity", "nmi": "NMI", "ndcg@10": "nDCG"}
SENTENCE = "A man is playing a guitar on stage in front of a large audience."
RUNS = 5


@dataclass(frozen=True)
class Labels(Result):
    """How well the models' vectors agree with the labels of the chosen corpus."""

    key = "labels"
    title = "Scores on the labels of your corpus"
    summary = "Agreement of a corpus's vectors with its labels: neighbours with its interval, purity, NMI, nDCG@10."
    button = "Score the corpus"
    words = tuple(MEASURES.values())
    live = False
    ships = False
    lane = "maps"
    plots = 1

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model: the scores of the held-out texts, those that an adaptation holds out, too.

        So a model that was adapted to the corpus is scored on texts that it was not fitted on. `low` and `high` are
        the 95 % interval of `neighbours` by the bootstrap, `texts` and `labels` what was scored.
        """
        rows, labels = held_out(session.corpus)
        gold = np.unique(labels, return_inverse=True)[1]

        def scores(vectors: np.ndarray) -> dict[str, Any]:
            values = neighbour_values(vectors, gold)
            ends = mean_difference(values, np.zeros(len(values)))
            return {**label_scores(vectors, labels), "low": ends.low, "high": ends.high}

        answers = {name: scores(vectors[rows]) for name, vectors in session.each(session.vectors).items()}
        counts = {"texts": len(rows), "labels": len(set(labels))}
        return pd.DataFrame([{"model": name, **found, **counts} for name, found in answers.items()])

    def says(self, frame: pd.DataFrame) -> str:
        """Return which model groups best by the labels, if one does by more than noise."""
        ordered = frame.sort_values("neighbours", ascending=False)
        best, first = ordered.iloc[0], title(ordered.iloc[0]["model"])
        near = [title(row.model) for row in ordered.iloc[1:].itertuples() if row.high >= best["low"]]
        of = f"{best['texts']:,} texts that nothing was fitted on, with {best['labels']} labels"
        if len(frame) == 1:
            return f"{first}: {best['neighbours']:.1f} % of the five nearest have the text's label, on {of}."
        level = f"; the intervals of {', '.join(near)} overlap with it" if near else ", by more than its interval"
        return f"{first} has most neighbours of the same label, {best['neighbours']:.1f} %{level}. On {of}."

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the share of neighbours with the text's label, with its interval."""
        names = frame["model"].tolist()
        at: dict[str, Any] = {
            "y": {"field": "model", "type": "nominal", "sort": None, "title": None},
            "color": by_model(names, False),
        }
        x: dict[str, Any] = {
            "type": "quantitative",
            "scale": {"zero": False},
            "title": "neighbours of the same label, %",
        }
        told = tips(model="Model", neighbours="Neighbours#", low="from#", high="to#")
        layers = [
            {"mark": {"type": "rule", "strokeWidth": 2},
             "encoding": {**at, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 80},
             "encoding": {**at, "x": {**x, "field": "neighbours"}, "tooltip": told}},
        ]  # fmt: skip
        return [chart(frame, "Neighbours of the same label by model", height=26 * len(names) + 50, layer=layers)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the table's rows, the best first."""
        ordered = frame.sort_values("neighbours", ascending=False)
        return {"measures": MEASURES, "lines": ordered.to_dict("records")}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a line per model; the best share of neighbours is bold if no other model's interval reaches it."""
        ordered = frame.sort_values("neighbours", ascending=False)
        alone = len(ordered) > 1 and bool((ordered["high"].iloc[1:] < ordered["low"].iloc[0]).all())
        marks = ["**" if alone and place == 0 else "" for place in range(len(ordered))]
        near = [f"{mark}{value:.1f}{mark}" for mark, value in zip(marks, ordered["neighbours"], strict=True)]
        return ordered.assign(model=ordered["model"].map(title), neighbours=near)[["model", *MEASURES]]


def held_out(corpus: ChosenCorpus) -> tuple[np.ndarray, list[str]]:
    """Return the (n,) rows of the labelled texts that are held out, and their labels. Raises FieldError.

    They are those of `cse adapt` by its default seed; of a corpus too small for that all are scored.
    """
    from cse.adaptation.adapt import MAX_TEXTS, MIN_TEXTS, AdaptRequest
    from cse.adaptation.facts import split

    if corpus.labels is None:
        reason = f"{corpus.label} has no labels. Upload a table and choose its column of labels to score the models."
        raise validation.FieldError(FIELD, reason)
    seed = AdaptRequest("").seed
    distinct = Corpus.of(list(corpus.texts)).distinct_sample(MAX_TEXTS, seed)
    if len(distinct) >= MIN_TEXTS:
        distinct = split(distinct, seed)[0]
    rows = np.array([row for row in distinct.numbers - 1 if corpus.labels[row]], np.int64)
    labels = [corpus.labels[row] for row in rows]
    if not 2 <= (count := len(set(labels))) <= min(MOST_LABELS, len(rows) // 2):
        of = f"{validation.counted(count, 'label')} for {validation.counted(len(rows), 'labelled text')}"
        reason = f"{corpus.label} has {of} that are held out; 2 to {MOST_LABELS} can be scored."
        raise validation.FieldError(FIELD, reason)
    return rows, labels


@dataclass(frozen=True)
class Speed(Result):
    """The time that the models take to encode a sentence on this machine."""

    key = "speed"
    title = "Time of a sentence on this machine"
    summary = "Milliseconds in which each model encodes a sentence here, the median of five, and its STS mean."
    button = "Measure"
    reads_corpus = False
    live = False
    ships = False
    plots = 1

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model: milliseconds with the fastest and the slowest of the runs, and its mean over STS."""
        averages = {}
        if isinstance(session.state.boards, dict) and "sts" in session.state.boards:
            rows = board_of(session.state, "sts").rows.values()
            averages = {opened_by(row): row.figures[0].value for row in rows if row.figures[0]}

        def measured(column: Column, encoder: Encoder) -> dict[str, Any]:
            fingerprint_of(encoder)  # cached for the first answer
            took = []
            for _ in range(RUNS + 1):  # the first one warms up
                began = time.perf_counter()
                encoder.encode(SENTENCE)
                took.append(1000 * (time.perf_counter() - began))
            runs = took[1:]
            session.state.speeds.put(column.opened_by, median(runs))
            return {"milliseconds": median(runs), "least": min(runs), "most": max(runs),
                    "sts": averages.get(column.opened_by)}  # fmt: skip

        return pd.DataFrame([{"model": name, **found} for name, found in session.each(measured).items()])

    def says(self, frame: pd.DataFrame) -> str:
        """Return the fastest and the slowest."""
        ordered = frame.sort_values("milliseconds")
        fast, slow = ordered.iloc[0], ordered.iloc[-1]
        first = f"{title(fast['model'])} takes {fast['milliseconds']:.3g} ms a sentence (median of {RUNS})"
        return f"{first}." if len(frame) == 1 else f"{first}, {title(slow['model'])} {slow['milliseconds']:.3g} ms."

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the mean over STS against the time, of the models that have one."""
        known = frame[frame["sts"].notna()]
        if len(known) < 2:
            return []
        encoding = {
            "x": {"field": "milliseconds", "type": "quantitative", "title": "milliseconds a sentence"},
            "y": {"field": "sts", "type": "quantitative", "title": "STS mean", "scale": {"zero": False}},
            "color": by_model(known["model"].tolist()),
            "tooltip": tips(model="Model", milliseconds="Milliseconds#", sts="STS mean#"),
        }  # fmt: skip
        mark = {"type": "point", "filled": True, "size": 90}
        return [chart(known, "STS mean against the time of a sentence", mark=mark, encoding=encoding)]
