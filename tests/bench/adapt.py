"""Linear layers fitted on some texts of a labelled set and scored on others: grouping, finding, and general text.

So are trainings of a backbone that `adapt` does not offer, and more readings than the two that it joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cse.adaptation.candidates import (
    MAX_EPOCHS,
    MAX_STEPS,
    TRAINING_SETTINGS,
    Vectors,
    fit_variant,
    neighbour_pairs,
    text_values,
)
from cse.adaptation.choice import BOTH, MEASURES, VARIANTS, is_taken
from cse.adaptation.projection import fit_joined, fit_projection, joined_reading, raw_vectors
from cse.corpus import Corpus
from cse.corpus.formats import Options
from cse.corpus.supervised import scored_pairs
from cse.encoder.encoder import Encoder
from cse.evaluation.metrics import mean_difference, spearman
from cse.evaluation.retrieval import short_form
from cse.methods.method import Pooling
from cse.models.loading import load, on_torch
from cse.training.api import train

Read = Callable[[Sequence[str]], np.ndarray]
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
    file: Path,
    encoder: Encoder,
    *,
    fit: int,
    scored: int,
    seed: int,
    pairs: Path | None = None,
    trainings: bool = False,
) -> dict[str, dict[str, float]]:
    """Return the scores x 100 of each layer by name, fitted on `fit` texts of a labelled file, on `scored` others.

    `sts` is Spearman's correlation on graded pairs of general text; `taken` says whether `adapt` would take the layer
    for both axes by these scores. With `trainings` the backbone is trained in several ways, too, and more readings are
    joined. Raises ValueError if there are fewer texts.
    """
    rows = labelled_texts(file, fit + scored, seed)
    if len(rows) < fit + scored:
        raise ValueError(f"{file}: {len(rows)} different texts, but {fit} to fit and {scored} to score are asked for")
    order = np.random.default_rng(seed).permutation(len(rows))
    held, learned = (rows.take(part) for part in (order[:scored], order[scored:]))
    forms = [short_form(text) for text in held.sentences]
    asked = np.flatnonzero([bool(form) for form in forms])
    graded = scored_pairs(pairs) if pairs else []
    own = slice(encoder.width) if encoder.reading.pooling is Pooling.TOKEN else slice(encoder.width, 2 * encoder.width)
    found: dict[str, dict[str, float]] = {}
    start: dict[str, np.ndarray] = {}
    models: Iterable[tuple[str, Read]] = [("", joined(encoder))]
    if trainings:
        models = chain(models, more_readings(encoder), trained(encoder, learned.sentences, seed))
    for model, read in models:
        known = Vectors(*(read(texts) for texts in (
            held.sentences, [forms[row] for row in asked], learned.sentences)))  # fmt: skip
        if model:
            parts = known.fit.shape[1] // encoder.width
            options = {"exponent": -0.375, "labels": learned.labels}
            made: dict[str, Layer] = {model: lambda rows: rows[:, own]} if parts == 2 else {}
            made[f"{model}, then towards labels -0.375"] = fit_joined(known.fit, [1.0] * parts, **options)
        else:
            made = layers(known.fit, learned.labels, encoder.width, own)
        for name, layer in made.items():
            values = text_values(known.through(layer), held.labels, asked, seed)
            start = start or values
            gains = {axis: mean_difference(values[measure], start[measure]) for axis, measure in MEASURES.items()}
            found[name] = {measure: round(100 * float(value.mean()), 2) for measure, value in values.items()}
            found[name]["taken"] = is_taken(gains, BOTH)
            if graded:
                found[name]["sts"] = round(spearman(lambda texts, on=layer, by=read: on(by(texts)), graded), 2)
    return found


def joined(encoder: Encoder) -> Read:
    """Return what encodes texts by the first token's state and the mean, joined."""
    both = joined_reading(encoder)
    assert both is not None
    return reader(both)


def reader(*encoders: Encoder) -> Read:
    """Return what encodes a list of texts by each encoder, joined; the lists are remembered."""
    known: dict[int, np.ndarray] = {}

    def read(texts: Sequence[str]) -> np.ndarray:
        key = hash(tuple(texts))
        if key not in known:
            known[key] = np.concatenate([raw_vectors(encoder, texts) for encoder in encoders], axis=1)
        return known[key]

    return read


def more_readings(encoder: Encoder) -> Iterator[tuple[str, Read]]:
    """Give readings of more layers beside the first token's state and the mean of the last."""
    both = joined_reading(encoder)
    assert both is not None
    plain = on_torch(encoder)
    for pooling in (Pooling.LAST_TWO, Pooling.FIRST_LAST):
        third = plain.reading_by(replace(plain.reading, pooling=pooling))
        yield f"three readings, {pooling.value}", reader(both, third)


def trained(encoder: Encoder, texts: Sequence[str], seed: int) -> Iterator[tuple[str, Read]]:
    """Give the backbone trained on pairs of texts by the settings of `adapt`, and averaged with what it was before."""
    import torch

    near = neighbour_pairs(encoder, texts, seed)
    short = [(text, short_form(text) or text) for text in texts]
    ways = {
        "trained on short forms": short,
        "trained on neighbours": near,
        "trained on both": [pair for both in zip(near, short, strict=True) for pair in both],
    }
    assert encoder.reference is not None
    settings: dict[str, Any] = TRAINING_SETTINGS
    for name, examples in ways.items():
        with TemporaryDirectory() as folder:
            train(
                method="simcse", data=examples, backbone=encoder.reference.name, output=Path(folder) / "trained",
                pooling=encoder.reference.pooling, head=False, seed=seed, max_steps=MAX_STEPS, epochs=MAX_EPOCHS,
                dev="auto", progress=False, **settings,
            )  # fmt: skip
            result = on_torch(load(str(Path(folder) / "trained")))
            yield name, joined(result)
            before = on_torch(encoder).model.state_dict()
            with torch.no_grad():
                for key, weight in result.model.state_dict().items():
                    if weight.is_floating_point():
                        weight.lerp_(before[key], 0.5)
            yield f"{name}, averaged with the start", joined(result)


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
