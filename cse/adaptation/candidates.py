"""Candidates of an adaptation: the start, its other pooling, projections, training; and their scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cse.adaptation.choice import FOLDERS, LANGUAGE, PROJECTION, READING, START, TRAINED, TRAINING, other_reading
from cse.adaptation.facts import BATCH_TOKENS, LANGUAGE_STEPS, learn_language, training_precision
from cse.adaptation.projection import (
    MIN_TEXTS_WITH_NEIGHBOURS,
    NEIGHBOURS,
    PLAIN_POOLINGS,
    copy_plain,
    fit_projection,
    raw_vectors,
    write_projected,
)
from cse.adaptation.workspace import LANGUAGE_FOLDER, TRAINING_INPUTS, Workspace
from cse.encoder.encoder import Encoder
from cse.evaluation.clustering import label_scores
from cse.files.writing import read_json, write_folder, write_json
from cse.models.checkpoint import read_checkpoint_config
from cse.models.loading import load, on_torch, open_model
from cse.models.names import Kind, ModelReference, resolve
from cse.training.held_out import MAX_HELD_OUT, can_hold_out, held_out_score
from cse.vectors import nearest_others

MAX_FITTED_TEXTS = 20_000  # texts of a projection
MAX_TRAINED_TEXTS = 6_000  # texts of a training: its batches and what it holds out
MIN_FITTED_TEXTS = 256  # texts that a projection is fitted on
BATCH_SIZE, MAX_STEPS, EVAL_EVERY = 64, 75, 15
MAX_EPOCHS = 5  # passes over few texts
TRAINING_SETTINGS = {"learning_rate": 1e-5, "temperature": 0.2, "batch_size": BATCH_SIZE, "eval_every": EVAL_EVERY}
# Of a text in a step of training, in texts encoded by the fastest engine: forward and backward, on PyTorch.
STEP_COST = 4.5


class OutOfTimeError(Exception):
    """The time of the adaptation is over."""


@dataclass
class Trial:
    """The data of all candidates: the start, the texts to fit on, the held-out texts, and their labels, if any."""

    reference: ModelReference
    encoder: Encoder
    fit: Sequence[str]
    held: Sequence[str]
    labels: Sequence[str]
    seed: int
    workspace: Workspace

    @property
    def folder(self) -> Path:
        """The folder in which candidates are written."""
        return self.workspace.work

    @cached_property
    def base(self) -> tuple[ModelReference, Encoder]:
        """The model that later candidates begin with: the start, or its other pooling if the labels prefer that."""
        pooling = other_reading(self.workspace.stages)
        return (self.reference, self.encoder) if pooling is None else self._read_by(pooling)

    def _read_by(self, pooling: str) -> tuple[ModelReference, Encoder]:
        reference = replace(self.reference, pooling=pooling)
        return reference, open_model(reference)

    def scores(self, name: str, encoder: Encoder, vectors: np.ndarray | None = None) -> dict[str, Any]:
        """Return a candidate's dimension, its guard and, with labels, its scores; keep its held-out vectors."""
        rows = raw_vectors(encoder, self.held) if vectors is None else vectors
        self.workspace.keep(name, rows)
        guarded = slice(MAX_HELD_OUT)
        score = held_out_score(lambda texts: raw_vectors(encoder, texts), self.held[guarded], rows[guarded])
        value: dict[str, Any] = {"dimension": rows.shape[1], "guard": asdict(score)}
        if self.labels:
            value["labels"] = label_scores(rows, self.labels)
        return value

    # -- stages -------------------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Score the start, and measure its speed in texts a second."""
        self.encoder.encode(list(self.held[:8]))  # compiles what the first call needs
        began = time.monotonic()
        vectors = raw_vectors(self.encoder, self.held)
        speed = len(self.held) / max(1e-3, time.monotonic() - began)
        return {"texts_per_second": round(speed, 1), **self.scores(START, self.encoder, vectors)}

    def reading(self) -> dict[str, Any]:
        """Score the backbone by the other of the two poolings, and write it if the labels prefer it."""
        pooling = next(name for name in PLAIN_POOLINGS if name != self.reference.pooling)
        if self.workspace.left < self.workspace.stages[START]["seconds"]:
            return {"pooling": pooling, **left_out("to encode the held-out texts again does not fit in the time")}
        reference, encoder = self._read_by(pooling)
        result = {"pooling": pooling, **self.scores(READING, encoder)}
        if other_reading({**self.workspace.stages, READING: result}):
            write_folder(self.folder / FOLDERS[READING], lambda target: copy_plain(reference, encoder, target))
        return result

    def projection(self) -> dict[str, Any]:
        """Fit and score a projection, on as many texts as half of the time that is left allows."""
        return self._projected(PROJECTION, *self.base)

    def language(self) -> dict[str, Any]:
        """Continue the masked language modelling of a backbone on the texts, and project the new backbone."""
        texts = self.fit[:MAX_TRAINED_TEXTS]
        if len(texts) < MIN_TEXTS_WITH_NEIGHBOURS:
            return left_out(f"{len(texts):,} texts are too few; {MIN_TEXTS_WITH_NEIGHBOURS:,} are needed")
        contents = self.encoder.tokenise(self.held, [self.encoder.views[0][0]] * len(self.held))
        tokens = sum(map(len, contents)) / len(contents)  # of a text, without special ones
        fitting = self.workspace.left / 2 * self.workspace.stages[START]["texts_per_second"] / STEP_COST
        steps = int(min(LANGUAGE_STEPS, min(fitting, MAX_EPOCHS * len(texts)) * tokens / BATCH_TOKENS))
        if steps < EVAL_EVERY:
            return left_out(f"{EVAL_EVERY} batches of masked language modelling do not fit in the time")
        try:
            self.encoder.word_logits(np.zeros((1, self.encoder.dim), np.float32))  # raises where there is no head
            folder = self.folder / LANGUAGE_FOLDER
            name = learn_language(self.reference.name, texts, folder, steps=steps, seed=self.seed)
        except ValueError as error:
            return left_out(str(error))
        learned = replace(self.reference, name=name)
        return {"steps": steps, **self._projected(LANGUAGE, learned, open_model(learned))}

    def training(self) -> dict[str, Any]:
        """Train the start, or its better pooling, and score the model of the best evaluation."""
        if self.reference.kind not in (Kind.BACKBONE, Kind.SENTENCE_TRANSFORMERS):
            return left_out(f"{self.encoder.name} is a trained model, and training starts from a backbone")
        steps = self._steps()
        if steps < EVAL_EVERY:
            return left_out(f"{EVAL_EVERY} batches of training do not fit in the time")
        try:
            trained, record = self._train(steps)
        except OutOfTimeError:
            return left_out("training took longer than the time that was left")
        if record.get("best") is not None and record["best"] <= record["start"]:
            return left_out("no evaluation of the training beat the start")

        reference, encoder = self.base

        def fill(target: Path) -> None:
            from cse.models.plain import plain_model

            tensors = plain_model(on_torch(trained)).tensors
            copy_plain(reference, encoder, target, {name: tensor.numpy() for name, tensor in tensors.items()})

        write_folder(self.folder / FOLDERS[TRAINING], fill)
        return {"record": record, **self.scores(TRAINING, load(str(self.folder / FOLDERS[TRAINING])))}

    def trained_projection(self) -> dict[str, Any]:
        """Fit and score a projection of the trained model."""
        folder = str(self.folder / FOLDERS[TRAINING])
        return self._projected(TRAINED, resolve(folder), load(folder))

    def _projected(self, name: str, reference: ModelReference, encoder: Encoder) -> dict[str, Any]:
        speed, left = self.workspace.stages[START]["texts_per_second"], self.workspace.left
        count = min(len(self.fit), MAX_FITTED_TEXTS, int(max(0.0, min(left / 2 * speed, MAX_FITTED_TEXTS))))
        if count < MIN_FITTED_TEXTS:
            return left_out(f"to encode {MIN_FITTED_TEXTS} texts does not fit in the time")
        projection = fit_projection(raw_vectors(encoder, self.fit[:count]))
        folder = self.folder / FOLDERS[name]
        write_folder(folder, lambda target: write_projected(reference, encoder, projection, count, target))
        facts = {"texts": count, "components": len(projection.components), "explained": round(projection.explained, 4)}
        return {**facts, **self.scores(name, load(str(folder)))}

    def _steps(self) -> int:
        """The batches of training that fit in the time, by the measured speed, in whole evaluations."""
        speed = self.workspace.stages[START]["texts_per_second"]
        guarded = 2 * min(MAX_HELD_OUT, len(self.fit) // 5)  # texts encoded by an evaluation
        per_evaluation = (EVAL_EVERY * BATCH_SIZE * 2 * STEP_COST + guarded * 1.5) / speed
        neighbours = min(len(self.fit), MAX_TRAINED_TEXTS) / speed  # seconds to encode the texts that are paired
        # One evaluation less: that of the start, and the projection after the training.
        whole = (self.workspace.left - neighbours) / per_evaluation - 1
        return EVAL_EVERY * int(min(MAX_STEPS // EVAL_EVERY, max(0.0, whole)))

    def _train(self, steps: int) -> tuple[Encoder, dict[str, Any]]:
        from cse.training.api import train

        output, inputs = self.folder / TRAINING, self.folder / TRAINING_INPUTS
        if not inputs.exists():
            write_json(inputs, self._inputs(steps))
        known = read_json(inputs)
        record = known["record"]

        def watch(entry: Any) -> None:
            if self.workspace.left < 0:
                raise OutOfTimeError

        if not output.is_dir():  # else it was finished before a kill
            begun = output.with_name("training.partial").is_dir()
            train(
                data=known["examples"], backbone=self.reference.name, output=output, resume=begun, callbacks=watch,
                progress=False, **record,
            )  # fmt: skip
        return load(str(output)), {**record, **read_checkpoint_config(output).training["dev"]}

    def _inputs(self, steps: int) -> dict[str, Any]:
        """The examples and the settings of a training."""
        reference, encoder = self.base
        texts = self.fit[:MAX_TRAINED_TEXTS]
        paired = len(texts) >= MIN_TEXTS_WITH_NEIGHBOURS
        batches = max(1, len(texts) * 4 // 5 // BATCH_SIZE)
        record = {
            "method": "simcse", "pooling": reference.recorded.pooling if reference.recorded else reference.pooling,
            "head": False if paired else None, "seed": self.seed, "max_steps": steps, **TRAINING_SETTINGS,
            "precision": training_precision(),
            "epochs": min(MAX_EPOCHS, -(-steps // batches)), "dev": "auto" if can_hold_out(texts) else "none",
        }  # fmt: skip
        return {"record": record, "examples": neighbour_pairs(encoder, texts, self.seed) if paired else list(texts)}


def neighbour_pairs(encoder: Encoder, texts: Sequence[str], seed: int) -> list[tuple[str, str]]:
    """Return each text with one of its five nearest others by projected vectors, drawn by the seed."""
    vectors = raw_vectors(encoder, texts)
    near = nearest_others(fit_projection(vectors)(vectors), NEIGHBOURS)
    drawn = near[np.arange(len(texts)), np.random.default_rng(seed).integers(NEIGHBOURS, size=len(texts))]
    return [(text, texts[other]) for text, other in zip(texts, drawn.tolist(), strict=True)]


def left_out(reason: str) -> dict[str, Any]:
    """The result of a stage that gives no candidate, with the reason."""
    return {"left_out": reason}
