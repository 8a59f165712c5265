"""Linear layers fitted on some texts of a labelled set and scored on others: grouping, finding, and general text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cse.adaptation.candidates import Vectors, fit_variant, text_values
from cse.adaptation.choice import BOTH, MEASURES, VARIANTS, is_taken
from cse.adaptation.projection import fit_projection, joined_reading, raw_vectors
from cse.corpus import Corpus
from cse.corpus.formats import Options
from cse.corpus.supervised import scored_pairs
from cse.encoder.encoder import Encoder
from cse.evaluation.metrics import mean_difference, spearman
from cse.evaluation.retrieval import short_form
from cse.methods.method import Pooling

Layer = Callable[[np.ndarray], np.ndarray]


def labelled_texts(file: Path, most: int, seed: int) -> Corpus:
    """Return the distinct texts of a file of label<TAB>text lines, or `most` of them drawn by the seed."""
    return Corpus.read(file, "2", "1", options=Options(delimiter="\t", header=False)).distinct_sample(most, seed)


def layers(fit: np.ndarray, labels: Sequence[str], width: int, own: slice) -> dict[str, Layer]:
    """Return the layers to score, fitted on joined vectors (N, 2 d); `own` are the columns of the model's own reading.

    Each takes joined vectors.
    """

    def of(part: slice, components: int) -> Layer:
        fitted = fit_projection(np.ascontiguousarray(fit[:, part]), components)
        return lambda rows: fitted(rows[:, part])

    made: dict[str, Layer] = {
        "start": lambda rows: rows[:, own],
        "other reading": lambda rows: rows[:, slice(width) if own.start else slice(width, None)],
        **{f"pca {count}": of(own, count) for count in (64, 256) if count <= width},
    }  # fmt: skip
    for name, variant in VARIANTS.items():
        shares = (variant.share, 1.0) if own.start else (1.0, variant.share)
        made[f"joined {name}"] = fit_variant(variant, fit, shares, labels)
    return made


def measure(
    file: Path, encoder: Encoder, *, fit: int, scored: int, seed: int, pairs: Path | None = None
) -> dict[str, dict[str, float]]:
    """Return the scores x 100 of each layer by name, fitted on `fit` texts of a labelled file, on `scored` others.

    `sts` is Spearman's correlation on graded pairs of general text; `taken` says whether `adapt` would take the layer
    for both axes by these scores. Raises ValueError if there are fewer texts.
    """
    rows = labelled_texts(file, fit + scored, seed)
    if len(rows) < fit + scored:
        raise ValueError(f"{file}: {len(rows)} different texts, but {fit} to fit and {scored} to score are asked for")
    order = np.random.default_rng(seed).permutation(len(rows))
    held, learned = (rows.take(part) for part in (order[:scored], order[scored:]))
    forms = [short_form(text) for text in held.sentences]
    asked = np.flatnonzero([bool(form) for form in forms])
    joined = joined_reading(encoder)
    assert joined is not None
    known = Vectors(*(raw_vectors(joined, texts) for texts in (
        held.sentences, [forms[row] for row in asked], learned.sentences)))  # fmt: skip
    own = slice(encoder.width) if encoder.reading.pooling is Pooling.TOKEN else slice(encoder.width, 2 * encoder.width)
    graded = scored_pairs(pairs) if pairs else []
    found = {}
    start: dict[str, np.ndarray] = {}
    for name, layer in layers(known.fit, learned.labels, encoder.width, own).items():
        values = text_values(known.through(layer), held.labels, asked, seed)
        start = start or values
        gains = {axis: mean_difference(values[measure], start[measure]) for axis, measure in MEASURES.items()}
        found[name] = {measure: round(100 * float(value.mean()), 2) for measure, value in values.items()}
        found[name]["taken"] = is_taken(gains, BOTH)
        if graded:
            found[name]["sts"] = round(spearman(lambda texts, on=layer: on(_remembered(joined, texts)), graded), 2)
    return found


_known: dict[tuple[int, int], np.ndarray] = {}


def _remembered(encoder: Encoder, texts: list[str]) -> np.ndarray:
    key = (id(encoder.__dict__.get("stored", encoder)), hash(tuple(texts)))
    if key not in _known:
        _known[key] = raw_vectors(encoder, texts)
    return _known[key]


def summary(trials: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return the mean, least and largest gain of each layer over the start by measure.

    "chosen" is the layer that `adapt` would choose for both axes by the scores of one seed, with the gains of another.
    """
    return {name: _gains([(trial, name) for trial in trials]) for name in trials[0]["scores"]} | {
        "chosen": _gains([
            (trial, chosen(other["scores"])) for trial in trials for other in trials
            if trial["seed"] != other["seed"] and all(trial[key] == other[key] for key in ("texts", "model"))
        ])
    }  # fmt: skip


def chosen(scores: Mapping[str, Mapping[str, float]]) -> str:
    """Return the name of the layer that `adapt` would choose for both axes, as `cse.adaptation.choice.choose` does."""
    taken = {name: sum(row[measure] for measure in MEASURES.values()) for name, row in scores.items() if row["taken"]}
    return max(taken, key=lambda name: taken[name], default="start")


def _gains(rows: Sequence[tuple[Mapping[str, Any], str]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for measure in [key for key in rows[0][0]["scores"]["start"] if key != "taken"] if rows else []:
        gains = [trial["scores"][name][measure] - trial["scores"]["start"][measure] for trial, name in rows]
        found[measure] = [round(float(value), 2) for value in (np.mean(gains), min(gains), max(gains))]
    return found
