"""Linear layers fitted on some texts of a labelled set and scored on others: grouping, finding, and general text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cse.adaptation.candidates import Vectors, text_values
from cse.adaptation.choice import VARIANTS
from cse.adaptation.projection import NEIGHBOURS, fit_joined, fit_projection, joined_reading, raw_vectors
from cse.corpus import Corpus
from cse.corpus.formats import Options
from cse.corpus.supervised import scored_pairs
from cse.encoder.encoder import Encoder
from cse.evaluation.metrics import spearman
from cse.evaluation.retrieval import every_second_word
from cse.methods.method import Pooling

Layer = Callable[[np.ndarray], np.ndarray]


def labelled_texts(file: Path, most: int, seed: int) -> Corpus:
    """Return the distinct texts of a file of label<TAB>text lines, or `most` of them drawn by the seed."""
    return Corpus.read(file, "2", "1", options=Options(delimiter="\t", header=False)).distinct_sample(most, seed)


def layers(fit: np.ndarray, width: int, own: slice) -> dict[str, Layer]:
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
        made[f"joined {name}"] = fit_joined(
            fit, shares, neighbours=NEIGHBOURS if variant.neighbours else 0, exponent=variant.exponent
        )
    return made


def measure(
    file: Path, encoder: Encoder, *, fit: int, scored: int, seed: int, pairs: Path | None = None
) -> dict[str, dict[str, float]]:
    """Return the scores x 100 of each layer by name, fitted on `fit` texts of a labelled file, on `scored` others.

    `sts` is Spearman's correlation on graded pairs of general text. Raises ValueError if there are fewer texts.
    """
    rows = labelled_texts(file, fit + scored, seed)
    if len(rows) < fit + scored:
        raise ValueError(f"{file}: {len(rows)} different texts, but {fit} to fit and {scored} to score are asked for")
    order = np.random.default_rng(seed).permutation(len(rows))
    held, learned = (rows.take(part) for part in (order[:scored], order[scored:]))
    forms = [every_second_word(text) for text in held.sentences]
    asked = np.flatnonzero([bool(form) for form in forms])
    joined = joined_reading(encoder)
    assert joined is not None
    known = Vectors(*(raw_vectors(joined, texts) for texts in (
        held.sentences, [forms[row] for row in asked], learned.sentences)))  # fmt: skip
    own = slice(encoder.width) if encoder.reading.pooling is Pooling.TOKEN else slice(encoder.width, 2 * encoder.width)
    graded = scored_pairs(pairs) if pairs else []
    found = {}
    for name, layer in layers(known.fit, encoder.width, own).items():
        values = text_values(known.through(layer), held.labels, asked, seed)
        found[name] = {measure: round(100 * float(value.mean()), 2) for measure, value in values.items()}
        if graded:
            found[name]["sts"] = round(spearman(lambda texts, on=layer: on(_remembered(joined, texts)), graded), 2)
    return found


_known: dict[tuple[int, int], np.ndarray] = {}


def _remembered(encoder: Encoder, texts: list[str]) -> np.ndarray:
    key = (id(encoder.__dict__.get("stored", encoder)), hash(tuple(texts)))
    if key not in _known:
        _known[key] = raw_vectors(encoder, texts)
    return _known[key]


def summary(trials: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the mean gain of each layer over the start by measure, and in how many trials it gained."""
    found: dict[str, dict[str, float]] = {}
    for name in trials[0]["scores"]:
        gains = {
            measure: [trial["scores"][name][measure] - trial["scores"]["start"][measure] for trial in trials]
            for measure in trials[0]["scores"][name]
        }
        found[name] = {measure: round(float(np.mean(values)), 2) for measure, values in gains.items()}
        found[name]["least found"] = round(min(gains["recall@1"]), 2)
    return found
