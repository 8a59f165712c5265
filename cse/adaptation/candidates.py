"""Candidates of an adaptation: the start, projections, training; and their scores on two axes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cse.adaptation.choice import (
    BOTH,
    LANGUAGE,
    MEASURES,
    MIN_FITTED_TEXTS,
    OUT_OF_TIME,
    PROJECTION,
    START,
    TOWARDS_LABELS,
    TOWARDS_NEIGHBOURS,
    TRAINED,
    TRAINING,
    VARIANTS,
    Variant,
)
from cse.adaptation.facts import (
    BATCH_TOKENS,
    LANGUAGE_STEPS,
    learn_language,
    training_precision,
)
from cse.adaptation.projection import (
    MIN_TEXTS_WITH_NEIGHBOURS,
    NEIGHBOURS,
    Projection,
    copy_plain,
    fit_joined,
    fit_projection,
    joined_reading,
    raw_vectors,
    write_projected,
)
from cse.adaptation.workspace import LANGUAGE_FOLDER, TRAINED_FOLDER, Workspace
from cse.corpus.corpus import Corpus
from cse.encoder.encoder import Encoder
from cse.evaluation.clustering import neighbour_values
from cse.evaluation.metrics import mean_difference
from cse.evaluation.retrieval import known_item_values
from cse.files.writing import write_folder
from cse.methods.method import TRAINED_POOLINGS
from cse.methods.settings import TrainConfig
from cse.models.checkpoint import read_checkpoint_config
from cse.models.fitted_texts import fitted_count, write_fitted_texts
from cse.models.loading import load, on_torch, open_model
from cse.models.names import Kind, ModelReference, resolve
from cse.training.held_out import MAX_HELD_OUT, can_hold_out
from cse.vectors import nearest_others

MAX_FITTED_TEXTS = 4_000  # texts of a projection, which are also those among which a text has to be found
MAX_TRAINED_TEXTS = 6_000  # texts of a training: its batches and what it holds out
DRAWS, OTHERS = 3, 2_000  # draws of other texts among which a held-out text has to be found
BATCH_SIZE, MAX_STEPS, EVAL_EVERY = 64, 75, 15
MAX_EPOCHS = 5  # passes over few texts
TRAINING_SETTINGS = {"learning_rate": 1e-5, "temperature": 0.2, "batch_size": BATCH_SIZE, "eval_every": EVAL_EVERY}
# Of a text in a step of training, in texts encoded by the fastest engine: forward and backward, on PyTorch.
STEP_COST = 4.5


STAGE_OF = {PROJECTION: START, TRAINED: TRAINING}  # the stage whose model is projected
OWN, JOINED = "own", "joined"  # vectors of a model as it is read, and by two readings
PARTS = ("held", "forms", "sought", "fit")  # of `Vectors`
Layer = Callable[[np.ndarray], np.ndarray]


TRAINABLE = (Kind.BACKBONE, Kind.SENTENCE_TRANSFORMERS)


class OutOfTimeError(Exception):
    """The time of the adaptation is over."""


class Model(NamedTuple):
    """The model of a stage, and the encoder `joined` by the `readings` that projections take: two, or its own one."""

    reference: ModelReference
    encoder: Encoder
    joined: Encoder
    readings: int


class TrainingPlan(NamedTuple):
    """The batches of training that fit in the time, their seconds, and those of all batches with what goes before."""

    steps: int
    seconds: float
    needed: float


@dataclass(frozen=True)
class Vectors:
    """A model's vectors (N, d) of the held-out texts, (Q, d) of their short forms and of what these have to find, and
    (M, d) of texts to fit on.
    """

    held: np.ndarray
    forms: np.ndarray
    sought: np.ndarray
    fit: np.ndarray

    def through(self, layer: Layer) -> Vectors:
        """Return the vectors after a layer."""
        return Vectors(*map(layer, (self.held, self.forms, self.sought, self.fit)))


def text_values(vectors: Vectors, labels: Sequence[str], asked: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Return the values of held-out texts, in [0, 1], by measure: what is not known of a text is left out.

    "neighbours": `neighbour_values` among the texts with a label. "recall@1", "mrr": `known_item_values` of the short
    forms of the texts `asked`, each among all held-out texts and three draws of 2,000 texts to fit on.
    """
    values: dict[str, np.ndarray] = {}
    if known := [row for row, label in enumerate(labels) if label]:
        gold = np.unique([labels[row] for row in known], return_inverse=True)[1]
        values["neighbours"] = neighbour_values(vectors.held[known], gold)
    if len(asked):
        rng, count = np.random.default_rng((seed, DRAWS)), len(vectors.held)
        others = [count + rng.permutation(len(vectors.fit))[:OTHERS] for _ in range(DRAWS)]
        draws = [np.concatenate([np.arange(count), drawn]) for drawn in others]
        texts = np.concatenate([vectors.held, vectors.fit])
        texts[asked] = vectors.sought
        values |= known_item_values(vectors.forms, asked, texts, draws)
    return values


@dataclass
class Trial:
    """The data of all candidates: the start, the texts to fit on with their labels, "" for none, and the held-out
    `corpus`.

    `items` are the short forms of the held-out texts that have one, each with what it has to find, by row.
    """

    reference: ModelReference
    encoder: Encoder
    fit: Sequence[str]
    fit_labels: Sequence[str]
    corpus: Corpus
    items: Mapping[int, tuple[str, str]]
    seed: int
    workspace: Workspace
    purpose: str = BOTH
    known: dict[str, Vectors] = field(default_factory=dict)
    opened: dict[str, Model] = field(default_factory=dict)

    @cached_property
    def held(self) -> list[str]:
        """The held-out texts."""
        return self.corpus.sentences

    @cached_property
    def asked(self) -> np.ndarray:
        """The numbers of the held-out texts that have a short form."""
        return np.array([*self.items], np.int64)

    def model(self, stage: str) -> Model:
        """Return the model of a stage."""
        if stage not in self.opened:
            reference = self.reference
            if stage == LANGUAGE:
                from cse.training.pretraining_data import MODEL_FOLDER

                reference = replace(reference, name=str(self.workspace.work / LANGUAGE_FOLDER / MODEL_FOLDER))
            elif stage == TRAINING:
                reference = resolve(str(self.workspace.work / TRAINED_FOLDER))
            encoder = self.encoder if stage == START else open_model(reference)
            self.opened[stage] = Model(reference, encoder, *joined_reading(encoder))
        return self.opened[stage]

    @cached_property
    def start_values(self) -> dict[str, np.ndarray]:
        """The values of the start."""
        return text_values(self.vectors(START, OWN), self.corpus.labels, self.asked, self.seed)

    def scores(self, name: str, vectors: Vectors) -> dict[str, Any]:
        """Return a candidate's dimension, scores, and gains over the start; keep its held-out vectors."""
        self.workspace.keep(name, vectors.held)
        own = name == START
        values = self.start_values if own else text_values(vectors, self.corpus.labels, self.asked, self.seed)
        scores = {measure: round(100 * float(value.mean()), 2) for measure, value in values.items()}
        gains = {
            axis: list(astuple(mean_difference(values[measure], self.start_values[measure])))
            for axis, measure in MEASURES.items() if measure in values
        }  # fmt: skip
        return {"dimension": vectors.held.shape[1], "scores": scores, **({} if own else {"gains": gains})}

    def vectors(self, stage: str, reading: str = JOINED) -> Vectors:
        """Return the kept vectors of the model of a stage by the readings of projections, or by its `OWN`."""
        key = f"{stage}-{reading if self.model(stage).readings == 2 else OWN}"
        if key not in self.known:
            self.known[key] = Vectors(*(self.workspace.kept(f"{key}-{part}") for part in PARTS))
        return self.known[key]

    def encode(self, stage: str, held: np.ndarray | None = None, count: int | None = None) -> None:
        """Encode the texts by the model of a stage and by its joined readings, and keep the vectors.

        `held` are the start's own vectors of the held-out texts, `count` the number of texts to fit on (as the start).
        """
        count = len(self.vectors(START, OWN).fit) if count is None else count
        model = self.model(stage)
        for reading, encoder in {OWN: model.encoder, **({JOINED: model.joined} if model.readings == 2 else {})}.items():
            known = held if reading == OWN and held is not None else raw_vectors(encoder, self.held)
            sought = known[self.asked].copy()
            texts = [text for _, text in self.items.values()]
            if cut := [number for number, row in enumerate(self.items) if texts[number] != self.held[row]]:
                sought[cut] = raw_vectors(encoder, [texts[number] for number in cut])
            forms = raw_vectors(encoder, [form for form, _ in self.items.values()])
            parts = (known, forms, sought, raw_vectors(encoder, self.fit[:count]))
            for part, rows in zip(PARTS, parts, strict=True):
                self.workspace.keep(f"{stage}-{reading}-{part}", rows)

    def start(self) -> dict[str, Any]:
        """Score the start, and measure its speed in texts a second, and what part of their tokens a training reads."""
        self.encoder.encode(list(self.held[:8]))  # compiles what the first call needs
        began = time.monotonic()
        held = raw_vectors(self.encoder, self.held)
        speed = len(self.held) / max(1e-3, time.monotonic() - began)
        fitting = self.workspace.left / 2 / self.model(START).readings * speed
        wanted = min(len(self.fit), MAX_FITTED_TEXTS)
        count = int(max(0, min(wanted, fitting)))
        self.encode(START, held, count)
        fitted = fitted_count(self.reference.name, self.held)
        lengths = np.array([len(ids) + 2 for ids in self._contents()])  # with the special tokens
        share = float(np.minimum(lengths, TrainConfig.max_length).sum() / lengths.sum())
        return {
            "texts_per_second": round(speed, 1), "trained_share": round(share, 3), "texts": count, "wanted": wanted,
            **({"fitted": fitted} if fitted else {}), **self.scores(START, self.vectors(START, OWN)),
        }  # fmt: skip

    def _contents(self) -> list[list[int]]:
        """The token ids of the held-out texts, without special ones, as far as the start reads them."""
        return self.encoder.tokenise(self.held, [self.encoder.views[0][0]] * len(self.held))

    def language(self) -> dict[str, Any]:
        """Continue the masked language modelling of a backbone on the texts, and project the new backbone."""
        texts = self.fit[:MAX_TRAINED_TEXTS]
        if len(texts) < MIN_TEXTS_WITH_NEIGHBOURS:
            return left_out(f"{len(texts):,} texts are too few; {MIN_TEXTS_WITH_NEIGHBOURS:,} are needed")
        tokens = float(np.mean(list(map(len, self._contents()))))  # of a text
        fitting = self.workspace.left / 2 * self.workspace.stages[START]["texts_per_second"] / STEP_COST
        steps = int(min(LANGUAGE_STEPS, min(fitting, MAX_EPOCHS * len(texts)) * tokens / BATCH_TOKENS))
        if steps < EVAL_EVERY:
            return left_out(
                f"{EVAL_EVERY} batches of masked language modelling do not fit in the time", out_of_time=True
            )
        try:
            self.encoder.word_logits(np.zeros((1, self.encoder.width), np.float32))  # raises where there is no head
            folder = self.workspace.work / LANGUAGE_FOLDER
            learn_language(self.reference.name, texts, folder, steps=steps, seed=self.seed)
        except ValueError as error:
            return left_out(str(error))
        self.encode(LANGUAGE)
        return {"steps": steps, **self.projected(LANGUAGE, LANGUAGE)}

    @property
    def untrainable(self) -> str:
        """Why the start cannot be trained; "" if it can."""
        pooling = self.reference.recorded.pooling if self.reference.recorded else self.reference.pooling
        if self.reference.kind not in TRAINABLE:
            return f"{self.encoder.name} is a trained model, and training starts from a backbone"
        if pooling is not None and pooling not in TRAINED_POOLINGS:
            return f"{self.encoder.name} is read by {pooling}, and training by {' or '.join(TRAINED_POOLINGS)}"
        return ""

    def training(self) -> dict[str, Any]:
        """Train the start, and score the model of the best evaluation."""
        if self.untrainable:
            return left_out(self.untrainable)
        plan = self.training_plan
        if plan.steps < EVAL_EVERY:
            minutes = 1 + ceil((self.workspace.spent + plan.needed) / 60)  # one in hand, as speeds vary
            reason = f"{EVAL_EVERY} batches of training do not fit in the time"
            return left_out(reason, out_of_time=True, minutes=minutes)
        try:
            trained, record = self._train(plan.steps)
        except OutOfTimeError:
            return left_out("training took longer than the time that was left", out_of_time=True)
        except ValueError as error:
            return left_out(str(error))
        if record.get("best") is not None and record["best"] <= record["start"]:
            return left_out("no evaluation of the training beat the start")

        def fill(target: Path) -> None:
            from cse.models.pipeline_writer import plain_model

            tensors = plain_model(on_torch(trained)).tensors
            weights = {name: tensor.numpy() for name, tensor in tensors.items()}
            copy_plain(self.reference, self.encoder, target, weights)
            write_fitted_texts(target, self.fit[:MAX_TRAINED_TEXTS], self.reference.name)

        write_folder(self.workspace.work / TRAINED_FOLDER, fill)
        self.encode(TRAINING)
        return {"record": record, **self.scores(TRAINING, self.vectors(TRAINING, OWN))}

    def projected(self, name: str, stage: str) -> dict[str, Any]:
        """Fit and score projections of the model of a stage, as the stage `name`."""
        count = len(self.vectors(stage).fit)
        if count < MIN_FITTED_TEXTS:
            return left_out(f"to encode {MIN_FITTED_TEXTS} texts does not fit in the time")
        impossible = {
            TOWARDS_NEIGHBOURS: count < MIN_TEXTS_WITH_NEIGHBOURS,
            TOWARDS_LABELS: not any(self.fit_labels[:count]),
        }
        variants = {
            variant: self.scores(f"{name} {variant}", self.vectors(stage).through(self.fitted(stage, variant)))
            for variant, made in VARIANTS.items()
            if not impossible.get(made.towards)
        }  # fmt: skip
        too_few = f"{count:,} texts are too few; {MIN_TEXTS_WITH_NEIGHBOURS:,} are needed"
        missing = {"missing": {TOWARDS_NEIGHBOURS: too_few}} if impossible[TOWARDS_NEIGHBOURS] else {}
        return {"texts": count, "variants": variants, **missing}

    def fitted(self, stage: str, variant: str) -> Projection:
        """Return a projection of the readings of a stage."""
        fit = self.vectors(stage).fit
        return fit_variant(VARIANTS[variant], fit, self.model(stage).readings, self.fit_labels[: len(fit)])

    def written(self, candidate: str | None, folder: Path) -> Path | None:
        """Write the model of a candidate to a folder, and return that; None for the start and for no candidate."""
        name, _, variant = (candidate or START).partition(" ")
        if name == START:
            return None
        if name == TRAINING:
            return self.workspace.work / TRAINED_FOLDER
        stage = STAGE_OF.get(name, name)
        model, count = self.model(stage), len(self.vectors(stage).fit)

        def fill(target: Path) -> None:
            write_projected(model.reference, model.joined, self.fitted(stage, variant), count, target)
            count_fitted = count if stage == START else max(count, MAX_TRAINED_TEXTS)
            write_fitted_texts(target, self.fit[:count_fitted], self.reference.name)

        write_folder(folder, fill)
        return folder

    @property
    def training_plan(self) -> TrainingPlan:
        """The plan of a training by the measured speed, in whole evaluations."""
        start = self.workspace.stages[START]
        speed = start["texts_per_second"]
        before = min(len(self.fit), MAX_TRAINED_TEXTS) / speed  # to encode the texts whose neighbours are looked for
        step = BATCH_SIZE * 2 * STEP_COST * start["trained_share"] / speed  # training cuts long texts
        guarded = 2 * min(MAX_HELD_OUT, len(self.fit) // 5)  # texts encoded by an evaluation
        evaluation = EVAL_EVERY * step + guarded * 1.5 / speed  # with the batches before it
        # One evaluation less: that of the start, and the projection after the training.
        whole = (self.workspace.left - before) / evaluation - 1
        steps = EVAL_EVERY * int(min(MAX_STEPS // EVAL_EVERY, max(0.0, whole)))
        return TrainingPlan(steps, steps * step, before + evaluation * (MAX_STEPS / EVAL_EVERY + 1))

    def _train(self, steps: int) -> tuple[Encoder, dict[str, Any]]:
        """Return the trained start, and the settings of the training with its scores; a killed one starts again."""
        from cse.training.api import train

        recorded, output, texts = self.reference.recorded, self.workspace.work / TRAINING, self.fit[:MAX_TRAINED_TEXTS]
        paired = len(texts) >= MIN_TEXTS_WITH_NEIGHBOURS
        batches = max(1, len(texts) * 4 // 5 // BATCH_SIZE)
        record: dict[str, Any] = {
            "method": "simcse", "pooling": recorded.pooling if recorded else self.reference.pooling,
            "head": False if paired else None, "seed": self.seed, "max_steps": steps, **TRAINING_SETTINGS,
            "precision": training_precision(),
            "epochs": min(MAX_EPOCHS, -(-steps // batches)), "dev": "auto" if can_hold_out(texts) else "none",
        }  # fmt: skip

        def watch(entry: Any) -> None:
            if self.workspace.left < 0:
                raise OutOfTimeError

        train(
            data=neighbour_pairs(self.encoder, texts, self.seed) if paired else list(texts),
            backbone=self.reference.name, output=output, overwrite=True, callbacks=watch, progress=False, **record,
        )  # fmt: skip
        return load(str(output)), {**record, **read_checkpoint_config(output).training["dev"]}


def fit_variant(made: Variant, fit: np.ndarray, readings: int, labels: Sequence[str]) -> Projection:
    """Return the projection of a variant, fitted on so many joined readings (N, d) of texts with labels, if any."""
    return fit_joined(
        fit, readings, exponent=made.exponent,
        neighbours=NEIGHBOURS if made.towards == TOWARDS_NEIGHBOURS else 0,
        labels=labels if made.towards == TOWARDS_LABELS else (),
    )  # fmt: skip


def neighbour_pairs(encoder: Encoder, texts: Sequence[str], seed: int) -> list[tuple[str, str]]:
    """Return each text with one of its five nearest others by projected vectors, drawn by the seed."""
    vectors = raw_vectors(encoder, texts)
    near = nearest_others(fit_projection(vectors, neighbours=NEIGHBOURS)(vectors), NEIGHBOURS)
    drawn = near[np.arange(len(texts)), np.random.default_rng(seed).integers(NEIGHBOURS, size=len(texts))]
    return [(text, texts[other]) for text, other in zip(texts, drawn.tolist(), strict=True)]


def left_out(reason: str, out_of_time: bool = False, minutes: int | None = None) -> dict[str, Any]:
    """The result of a stage that gives no candidate, with the reason, and how many `minutes` in all would try it."""
    return {"left_out": reason, **({OUT_OF_TIME: True, "minutes": minutes} if out_of_time else {})}
