"""What this project offers for a user's texts, as ways of `tests.bench.recipes`.

The projection of `adapt`, the same after masked language modelling, and the whole of it, smoothing, and the methods
with their published settings at a constant rate, in float32.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import cse
from cse.adaptation.adapt import AdaptRequest, adapt
from cse.adaptation.choice import START
from cse.adaptation.facts import LANGUAGE_STEPS, learn_language, split
from cse.adaptation.projection import project
from cse.corpus import Corpus
from cse.errors import ArtefactError
from cse.methods.catalogue import METHODS
from cse.vectors import smoothed
from tests.bench.recipes import END, Encode, Scores, Trial, Way

NEIGHBOURS = 10
ADAPT_SHARE = 2.0  # time of `adapt` by the clock, in the processor time of a training
LONG = 20.0  # the same where it is to train, too
MANY = 1000  # passes over the texts: more than the time allows


class TimeOverError(Exception):
    """The processor time of a training is over."""


def projection(language: bool = False) -> Way:
    """Return the way that fits the projection of `adapt`, with `language` after masked language modelling.

    Both see four fifths of the texts, as in `adapt`.
    """

    def way(trial: Trial, seen: Corpus, scores: Callable[[Encode], Scores]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            began, start = time.process_time(), trial.start
            learned, output, fitted = (
                Path(folder) / "language",
                Path(folder) / "adapted",
                split(seen, trial.seed)[1].sentences,
            )
            if language:
                start = learn_language(start, fitted, learned, steps=LANGUAGE_STEPS, seed=trial.seed)
            project(start, fitted, output, pooling=trial.pooling)
            spent = time.process_time() - began
            return {END: scores(cse.load(str(output)).encode), "seconds": round(spent, 1)}

    return way


def smoothing(trial: Trial, seen: Corpus, scores: Callable[[Encode], Scores]) -> dict[str, Any]:
    """Mix the scored vectors with their nearest others; nothing is learned."""
    encoder = cse.load(trial.start, trial.pooling)
    found = scores(lambda texts: smoothed(encoder.encode(texts), NEIGHBOURS))
    return {END: {name: value for name, value in found.items() if name != "sts"}, "seconds": 0.0}


def adapted(share: float) -> Way:
    """Return the way that runs the whole of `adapt` with the labels, and scores what it advises."""

    def way(trial: Trial, seen: Corpus, scores: Callable[[Encode], Scores]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            data, output = Path(folder) / "texts.jsonl", Path(folder) / "adapted"
            labelled = zip(seen.texts, seen.labels, strict=True)
            data.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in labelled))
            minutes, began = share * trial.seconds / 60, time.process_time()
            request = AdaptRequest(str(data), trial.start, trial.pooling, "text", "label", minutes, trial.seed)
            report = adapt(request, output)
            spent = time.process_time() - began
            kept = cse.load(trial.start, trial.pooling) if report["decision"] == START else cse.load(str(output))
            return {END: scores(kept.encode), "seconds": round(spent, 1), "decision": report["decision"],
                    "stages": report["stages"]}  # fmt: skip

    return way


def published(method: str) -> Way:
    """Return the way that trains a method by its published settings until the processor time is over."""

    def way(trial: Trial, seen: Corpus, scores: Callable[[Encode], Scores]) -> dict[str, Any]:
        from cse.training.loop import train
        from cse.training.run import TrainRequest, prepare

        pooling = trial.pooling if METHODS[method].settings["pooling"] else None
        settings = {"epochs": MANY, "seed": trial.seed, "pooling": pooling}
        try:
            encoder, run = prepare(TrainRequest(method, seen.sentences, trial.start, settings=settings))
        except ArtefactError as error:  # a prompt method asks for a masked-LM head
            return {"left_out": str(error)}
        began = time.process_time()

        def watch(entry: object) -> None:
            if time.process_time() - began > trial.seconds:
                raise TimeOverError

        with tempfile.TemporaryDirectory() as folder, suppress(TimeOverError):
            train(encoder, run, Path(folder) / "run", report=watch, precision="no")
        spent = time.process_time() - began
        return {END: scores(lambda texts: encoder.eval().encode(texts, batch_size=256)), "seconds": round(spent, 1)}

    return way


WAYS: dict[str, Way] = {
    "projection": projection(),
    "language": projection(language=True),
    "smoothing": smoothing,
    "adapt": adapted(ADAPT_SHARE),
    "long adapt": adapted(LONG),
    **{f"published {name}": published(name) for name in ("simcse", "promptbert", "dcpcse", "conpvp")},
}
