"""Scores of the chosen corpus's vectors by its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cse.analysis.maps import evenly
from cse.app import validation
from cse.app.corpus.chosen import FIELD, ChosenCorpus, vectors_by_model
from cse.app.drawing import html
from cse.app.drawing.glossary import score_term
from cse.app.models.models import Failure, divided
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState

MOST_SCORED, MOST_LABELS = 5000, 200
NO_LABELS = "{} has no labels. Upload a table and choose its column of labels to score the models on it."
SHOWN = ("neighbours", "purity", "nmi", "ndcg@10")
READING = (
    "{}: {:,} texts with {} labels. Neighbours: the share of each text's five nearest that have its label. Purity and "
    "NMI: k-means with as many groups as labels, means of three seeds. nDCG@10: the nearest with a text's label are "
    "relevant. Higher is better. One sample without a test of significance."
)


def corpus_scores(
    state: AppState, corpus: ChosenCorpus, report: Report = silent
) -> dict[str, dict[str, float] | Failure]:
    """Return each model's scores (`cse.evaluation.clustering`), of an even sample of more than `MOST_SCORED` texts.

    Raises FieldError for a corpus without labels, or with labels that cannot be scored.
    """
    from cse.evaluation.clustering import label_scores

    rows, labels = sample(corpus)
    answers = vectors_by_model(state, corpus, report=report)
    return {
        name: found if isinstance(found, Failure) else label_scores(found[rows], labels)
        for name, found in answers.items()
    }


def sample(corpus: ChosenCorpus) -> tuple[np.ndarray, list[str]]:
    """Return the (n,) rows of the texts that are scored, all with labels, and these. Raises FieldError."""
    if corpus.labels is None:
        raise validation.FieldError(FIELD, NO_LABELS.format(corpus.label))
    known = np.array([row for row, label in enumerate(corpus.labels) if label])
    rows = known[evenly(len(known), MOST_SCORED)]
    labels = [corpus.labels[row] for row in rows]
    if not 2 <= (count := len(set(labels))) <= min(MOST_LABELS, len(rows) // 2):
        of = f"{validation.counted(count, 'label')} for {validation.counted(len(rows), 'labelled text')}"
        reason = f"{corpus.label} has {of}; 2 to {MOST_LABELS} can be scored."
        raise validation.FieldError(FIELD, reason)
    return rows, labels


def scores_html(corpus: ChosenCorpus, answers: Mapping[str, dict[str, float] | Failure]) -> str:
    """Return a row per model, the best figure of each column in bold, and how they were computed."""
    known, failed = divided(answers)
    best = {name: max(scores[name] for scores in known.values()) for name in SHOWN if known}
    rows = (
        f'<tr><th scope="row">{html.model(model)}</th>'
        f"{''.join(figure(scores[name], best[name]) for name in SHOWN)}</tr>"
        for model, scores in known.items()
    )
    heads = ["Model", *map(score_term, SHOWN)]
    shown = html.headed(heads, rows, "Scores on the labels of the corpus") if known else ""
    _, labels = sample(corpus)
    without = sum(not label for label in corpus.labels or ())
    left = f" {validation.counted(without, 'text')} without a label left out." if without else ""
    reading = READING.format(corpus.label, len(labels), len(set(labels)))
    return html.failures(failed) + shown + html.hint(reading + left)


def figure(value: float, best: float) -> str:
    """Return the cell of a figure."""
    kind = "cse-best" if value == best else "cse-other"
    return f'<td class="{kind}"><span class="cse-figure">{value:.1f}</span></td>'
