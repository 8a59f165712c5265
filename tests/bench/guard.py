"""Scores without labels within one run: do they find the evaluation at which a model agrees best with labels?

A model is trained on one half of a labelled set and scored on held-out texts of the other: label neighbours, and scores
that need no labels. For each score: its rank correlation with the label neighbours over the evaluations of the run, and
the label neighbours at the evaluation that it would keep.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cse.evaluation.clustering import same_label_neighbours
from cse.evaluation.isotropy import uniformity
from cse.evaluation.metrics import correlation_or_none
from cse.training.held_out import held_out_score
from cse.vectors import nearest_others, unit_rows
from tests.bench.adapt import labelled_texts

SCORES = ("concentration", "found", "halves", "uniformity", "words", "loss")
NEAREST = 10
RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("simcse", {}),
    ("simcse", {"learning_rate": 1e-5, "temperature": 0.2}),
    ("promptbert", {"learning_rate": 1e-5, "temperature": 0.2}),
)
Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass
class Course:
    """A run: `neighbours` (percent) and scores without labels at the start and at each evaluation."""

    name: str
    neighbours: list[float] = field(default_factory=list)
    scores: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in SCORES})

    def correlation(self, name: str) -> float:
        """Spearman's correlation of a score with the neighbours after the start; NaN where one of them is constant."""
        found = correlation_or_none(np.array(self.scores[name][1:]), self.neighbours[1:])
        return float("nan") if found is None else found / 100

    def kept(self, name: str) -> float:
        """The neighbours at the highest value of a score."""
        return self.neighbours[int(np.argmax(self.scores[name]))]


def summary(courses: Sequence[Course]) -> dict[str, dict[str, float]]:
    """Of each score: its mean correlation, and the neighbours it keeps beyond the start and short of the best."""
    found = {}
    for name in SCORES:
        lost = [max(course.neighbours) - course.kept(name) for course in courses]
        gained = [course.kept(name) - course.neighbours[0] for course in courses]
        defined = [value for course in courses if not np.isnan(value := course.correlation(name))]
        found[name] = {
            "correlation": float(np.mean(defined)) if defined else float("nan"), "gained": float(np.mean(gained)),
            "gained_least": min(gained), "gained_most": max(gained), "lost": float(np.mean(lost)),
            "lost_most": max(lost),
        }  # fmt: skip
    return found


def follow(
    file: Path, method: str, backbone: str, settings: Mapping[str, Any], *, evaluations: int, texts: int
) -> Course:
    """Train on half of a file of label<TAB>text lines and score `texts` of the rest after each of `evaluations`."""
    from cse.training.loop import train
    from cse.training.run import TrainRequest, prepare

    rows = labelled_texts(file, 10**9, seed=0)
    rows = rows.take(np.random.default_rng(0).permutation(len(rows)))  # files may be sorted by label
    half = len(rows) // 2
    scored = [row for row in range(half, len(rows)) if len(rows.texts[row].split()) >= 4][:texts]
    held, labels = rows.take(scored).sentences, rows.take(scored).labels
    settings = {"epochs": settings["max_steps"], **settings}  # enough for all steps
    encoder, run = prepare(TrainRequest(method, rows.sentences[:half], backbone, settings=settings))
    changed = " ".join(f"{settings[name]:g}" for name in ("learning_rate", "temperature") if name in settings)
    course = Course(f"{file.stem} {method} {changed}".strip())
    nearest_words = word_neighbours(held)
    losses: list[float] = []

    def score() -> None:
        add_scores(course, lambda each: encoder.encode(list(each), batch_size=256), held, labels, nearest_words)
        if losses:
            course.scores["loss"].append(-float(np.mean(losses)))

    every = run.steps // evaluations

    def follow_step(entry: Mapping[str, Any]) -> None:
        losses.append(entry["loss"])
        if entry["step"] % every == 0:
            score()
            losses.clear()

    score()
    with tempfile.TemporaryDirectory() as folder:
        train(encoder, run, Path(folder) / "run", report=follow_step, precision="bf16")
    course.scores["loss"].insert(0, course.scores["loss"][0])  # the start has none
    return course


def add_scores(
    course: Course, encode: Encode, texts: Sequence[str], labels: Sequence[str], nearest_words: np.ndarray
) -> None:
    """Add the scores of an encoder on texts, all but the loss, to a course."""
    gold = np.unique(np.asarray(labels), return_inverse=True)[1]
    vectors = np.asarray(encode(texts), dtype=np.float64)
    whole = held_out_score(encode, texts)
    course.neighbours.append(100 * same_label_neighbours(vectors, gold))
    values = {
        "concentration": whole.concentration, "found": whole.found, "halves": halves(encode, texts),
        "uniformity": -uniformity(unit_rows(vectors)), "words": shared(nearest_words, nearest_others(vectors, NEAREST)),
    }  # fmt: skip
    for name, value in values.items():
        course.scores[name].append(float(value))


def halves(encode: Encode, texts: Sequence[str]) -> float:
    """Mean reciprocal rank x 100 at which the odd words of a text find its even words among those of all texts."""
    words = [text.split() for text in texts]
    odd, even = (unit_rows(np.asarray(encode([" ".join(each[at::2]) for each in words]))) for at in (0, 1))
    cosines = odd @ even.T
    ranks = (cosines > np.diag(cosines)[:, None]).sum(axis=1) + 1
    return float(100 * (1 / ranks).mean())


def word_neighbours(texts: Sequence[str]) -> np.ndarray:
    """(N, 10) the nearest other texts by the cosine of TF-IDF vectors."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return nearest_others(TfidfVectorizer(sublinear_tf=True).fit_transform(texts).toarray(), NEAREST)


def shared(first: np.ndarray, second: np.ndarray) -> float:
    """Percent of the neighbours (N, k) of a text that are in both."""
    return 100 * float(np.mean([np.isin(a, b).mean() for a, b in zip(first, second, strict=True)]))
