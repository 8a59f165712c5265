"""Linear layers fitted on some texts of a labelled set and scored on others: grouping, finding, and general text.

So are trainings of a backbone that `adapt` does not offer, and other readings than the two that it joins.
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
    JOINED,
    MAX_EPOCHS,
    MAX_STEPS,
    TRAINING_SETTINGS,
    Vectors,
    fit_variant,
    neighbour_pairs,
    text_values,
)
from cse.adaptation.choice import BOTH, MEASURES, START, VARIANTS, is_taken
from cse.adaptation.projection import fit_joined, fit_projection, joined_reading, raw_vectors
from cse.corpus import Corpus
from cse.corpus.formats import Options
from cse.corpus.supervised import scored_pairs
from cse.encoder.encoder import Encoder
from cse.evaluation.metrics import mean_difference, spearman
from cse.evaluation.retrieval import known_item
from cse.methods.method import Pooling
from cse.models.loading import load, on_torch
from cse.training.api import train

Read = Callable[[Sequence[str]], np.ndarray]
Layer = Callable[[np.ndarray], np.ndarray]


def labelled_texts(file: Path, most: int, seed: int) -> Corpus:
    """Return the distinct texts of a file of label<TAB>text lines, or `most` of them drawn by the seed."""
    return Corpus.read(file, "2", "1", options=Options(delimiter="\t", header=False)).distinct_sample(most, seed)


def layers(model: str, fit: np.ndarray, readings: int, labels: Sequence[str]) -> dict[str, Layer]:
    """Return the layers to score, fitted on a model's vectors (N, d) of so many readings: of the start all."""
    if model == START:
        return {START: np.asarray, **{f"pca {n}": fit_projection(fit, n) for n in (64, 256) if n <= fit.shape[1]}}
    if model == JOINED:
        return {f"{JOINED} {name}": fit_variant(variant, fit, readings, labels) for name, variant in VARIANTS.items()}
    made: dict[str, Layer] = {model: np.asarray} if readings == 1 else {}
    options = {"exponent": -0.375, "labels": labels}
    return {**made, f"{model}, then towards labels -0.375": fit_joined(fit, readings, **options)}


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
    items = [known_item(text) for text in held.sentences]
    asked = np.flatnonzero([bool(form) for form, _ in items])
    forms, sought = ([items[row][part] for row in asked] for part in (0, 1))
    graded = scored_pairs(pairs) if pairs else []
    found: dict[str, dict[str, float]] = {}
    start: dict[str, np.ndarray] = {}
    models: Iterable[tuple[str, Read]] = [(START, reader(encoder)), (JOINED, joined(encoder))]
    if trainings:
        models = chain(models, more_readings(encoder), trained(encoder, learned.sentences, seed))
    for model, read in models:
        known = Vectors(*map(read, (held.sentences, forms, sought, learned.sentences)))
        made = layers(model, known.fit, known.fit.shape[1] // encoder.width, learned.labels)
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
    """Return what encodes texts by the two readings that `adapt` joins."""
    return reader(joined_reading(encoder)[0])


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
    """Give other joined readings: those of first and last layer, and a third one beside these."""

    def of(pooling: Pooling) -> Encoder:
        return encoder.reading_by(replace(encoder.reading, pooling=pooling))

    yield "first token and mean of first and last layer", reader(of(Pooling.CLS_FIRST_LAST))
    yield "a third reading, the mean of the last layer", reader(of(Pooling.CLS_FIRST_LAST), of(Pooling.MEAN))


def trained(encoder: Encoder, texts: Sequence[str], seed: int) -> Iterator[tuple[str, Read]]:
    """Give the backbone trained on pairs of texts by the settings of `adapt`, and averaged with what it was before."""
    import torch

    near = neighbour_pairs(encoder, texts, seed)
    short = [(text, known_item(text)[0] or text) for text in texts]
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
            yield name, reader(result)
            yield f"{name}, joined readings", joined(result)
            before = on_torch(encoder).model.state_dict()
            with torch.no_grad():
                for key, weight in result.model.state_dict().items():
                    if weight.is_floating_point():
                        weight.lerp_(before[key], 0.5)
            yield f"{name}, averaged with the start", reader(result)
            yield f"{name}, averaged with the start, joined readings", joined(result)


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
