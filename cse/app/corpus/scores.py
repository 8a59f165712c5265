"""Scores of the chosen corpus's vectors by its labels: same-label neighbours, and k-means against the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cse.app import validation
from cse.app.corpus.chosen import FIELD, ChosenCorpus, vectors_by_model
from cse.app.drawing import html
from cse.app.models.models import Failure, divided
from cse.runs.progress import Report, silent

if TYPE_CHECKING:
    from cse.app.models.state import AppState

MOST_SCORED, MOST_LABELS = 5000, 200
SEEDS = range(3)  # of k-means
HEADS = ("Model", "Neighbours (%)", "NMI (× 100)")
READING = (
    "{}: {:,} texts with {} labels. Neighbours: the share of each text's five nearest that have its label. NMI: k-means"
    f" with as many groups as labels, mean of {len(SEEDS)} seeds. One run without a test of significance."
)
NO_LABELS = "{} has no labels. Upload a table and choose its column of labels to score the models on it."


class LabelScores(NamedTuple):
    """In percent: each text's five nearest with its label, and the mean NMI of k-means with the labels."""

    neighbours: float
    nmi: float


def label_scores(state: AppState, corpus: ChosenCorpus, report: Report = silent) -> dict[str, LabelScores | Failure]:
    """Return each model's scores, of more than `MOST_SCORED` texts those of an even sample.

    Raises FieldError for a corpus without labels, or with labels that cannot be scored.
    """
    gold, rows = gold_of(corpus)
    answers = vectors_by_model(state, corpus, report=report)
    return {name: found if isinstance(found, Failure) else score(found[rows], gold) for name, found in answers.items()}


def score(vectors: np.ndarray, gold: np.ndarray) -> LabelScores:
    """Return the scores of vectors (n, d) against integer labels (n,)."""
    from cse.evaluation.clustering import k_means, mutual_information, same_label_neighbours

    shared = [mutual_information(gold, k_means(vectors, gold.max() + 1, seed)) for seed in SEEDS]
    return LabelScores(100 * same_label_neighbours(vectors, gold), 100 * float(np.mean(shared)))


def gold_of(corpus: ChosenCorpus) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n,) labels as integers from 0, and the (n,) rows of the texts that are scored. Raises FieldError."""
    if corpus.labels is None:
        raise validation.FieldError(FIELD, NO_LABELS.format(corpus.label))
    rows = np.unique(np.linspace(0, len(corpus.texts) - 1, min(MOST_SCORED, len(corpus.texts))).astype(int))
    names, gold = np.unique([corpus.labels[row] for row in rows], return_inverse=True)
    if not 2 <= len(names) <= min(MOST_LABELS, len(rows) // 2):
        reason = f"{corpus.label} has {len(names):,} labels for {len(rows):,} texts; 2 to {MOST_LABELS} can be scored."
        raise validation.FieldError(FIELD, reason)
    return gold, rows


def scores_html(corpus: ChosenCorpus, answers: dict[str, LabelScores | Failure]) -> str:
    """Return a row per model, the best figure of each column in bold, and how they were computed."""
    known, failed = divided(answers)
    best = [max(column) for column in zip(*known.values(), strict=True)]
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(map(figure, scores, best))}</tr>'
        for name, scores in known.items()
    )
    gold, _ = gold_of(corpus)
    head = "".join(f'<th scope="col">{name}</th>' for name in HEADS)
    said = READING.format(corpus.label, len(gold), gold.max() + 1)
    inside = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    shown = html.table(inside, "Scores on the labels of the corpus") if known else ""
    return html.failures(failed) + shown + html.hint(said)


def figure(value: float, best: float) -> str:
    """Return the cell of a figure."""
    kind = "cse-best" if value == best else "cse-other"
    return f'<td class="{kind}"><span class="cse-figure">{value:.1f}</span></td>'
