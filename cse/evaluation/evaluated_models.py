"""The encoders of an evaluation, opened one at a time: models, their poolings and postprocessing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cse.corpus.corpus import Corpus
from cse.corpus.supervised import log_once
from cse.encoder.encoder import Encoder
from cse.errors import ArtefactError
from cse.evaluation.representations import TextEncoder, glove, top_k_tokens
from cse.files import hub
from cse.files.weights import available
from cse.files.writing import digest
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import When
from cse.methods.settings import to_json
from cse.models.checkpoint import read_checkpoint_config
from cse.models.loading import open_model
from cse.models.names import PUBLISHED_IDS, Kind, ModelReference, check_name, location, resolve

TOP_TOKENS = {"top-tokens": False, "top-tokens-denoised": True}  # PromptBERT Eq. 3, with and without denoising
SCORED_POOLINGS = (*UNTRAINED, *TOP_TOKENS)
PUBLISHED = "published"  # every published checkpoint
POSTPROCESSES = ("whitening", "flow")
FIT_SENTENCES = 20_000


@dataclass(frozen=True)
class ComparedModel:
    """An opened model: its name as given, its `key` in the published rows, its `group` and `seed`, its encoder.

    `family` is that of a published checkpoint. `start`: before the first training step.
    """

    model: str
    key: str | None
    group: str | None
    seed: int | None
    encoder: TextEncoder
    family: str | None = None
    start: bool = False


@dataclass(frozen=True)
class Candidate:
    """A model whose files were found: its `name` for messages, and a function that opens it.

    `open` raises ArtefactError for damaged weights.
    """

    name: str
    open: Callable[[], ComparedModel]


@dataclass(frozen=True)
class ModelSelection:
    """The encoders to compare: every model, each plain backbone under every pooling, all with the same `postprocess`.

    `postprocess` is fitted on the first 20,000 sentences of `fit`. The model name `published` means every published
    checkpoint; `family` is that of the other models not trained here. `bare` encodes without head and denoising, which
    are then used in training only. `starts` adds each checkpoint's own start.
    """

    models: Sequence[str]
    poolings: Sequence[str] = ()
    postprocess: str | None = None
    fit: Path | None = None
    family: str | None = None
    bare: bool = False
    backend: str = "auto"
    starts: bool = False

    def __post_init__(self) -> None:
        for value, known in [
            *((pooling, SCORED_POOLINGS) for pooling in self.poolings),
            (self.postprocess, POSTPROCESSES),
        ]:
            if value is not None and value not in known:
                raise ValueError(f"unknown {value!r}; choose from {', '.join(known)}")
        if (self.postprocess is None) != (self.fit is None):
            raise ValueError("give `postprocess` and `fit` together: it is fitted on sentences")

    def candidates(self) -> list[Candidate]:
        """The models to compare, not yet opened; all names are checked before any weights are read.

        Raises the errors of a wrong name, family or pooling, of poolings that no model takes, of a damaged
        configuration, and of an empty `fit`.
        """
        models = named(self.models)
        for model in models:
            check_name(model)
        if self.fit is not None and not len(Corpus.read(self.fit, limit=FIT_SENTENCES)):
            raise ValueError(f"{self.fit}: no sentence in it to fit `postprocess` on; give another `fit`")
        first = next(iter(self.poolings), None)  # it decides which models take a pooling
        pooling = "prompt" if first in TOP_TOKENS else first
        references = [
            resolve(model, pooling, self.family if model in self.models else None, lenient=True) for model in models
        ]
        if self.poolings and not any(reference.kind is Kind.BACKBONE for reference in references):
            have = "has its" if len(models) == 1 else "have their"
            raise ValueError(f"{', '.join(models)} {have} own pooling; leave out `pooling`")
        readings = map(self._readings, models, references)
        return [candidate for reading in readings for candidate in reading]

    def _readings(self, model: str, reference: ModelReference) -> list[Candidate]:
        """A plain backbone under each of the poolings, any other model once, a checkpoint perhaps with its start."""
        settings(reference)
        if not self.poolings or reference.kind is not Kind.BACKBONE:
            read = [reference]
            if self.starts and reference.kind is Kind.CHECKPOINT:
                read.append(replace(reference, kind=Kind.START))
            return [Candidate(reading.label, partial(self._open, model, reading, None)) for reading in read]
        return [
            Candidate(f"{Path(reference.name).name}-{pooling}", partial(self._open, model, reference, pooling))
            for pooling in self.poolings
        ]

    def _open(self, model: str, reference: ModelReference, pooling: str | None) -> ComparedModel:
        encoder = _encoder(reference, pooling, self.backend)
        if self.bare and isinstance(encoder, Encoder) and not encoder.method.untrained:
            encoder.method = encoder.method.replaced(denoise=When.NEVER, head_when=When.TRAINING)
        known, marks = settings(reference), (self.postprocess, "bare" if self.bare else None)
        key = "+".join([_key(reference, model, pooling, encoder), *filter(None, marks)])
        alike = None if self.postprocess else group(known, encoder)
        seed, start = (known or {}).get("seed"), reference.kind is Kind.START
        encoder = self._follow(encoder)
        return ComparedModel(model, None if start else key, alike, seed, encoder, reference.family, start)

    def _follow(self, encoder: TextEncoder) -> TextEncoder:
        if self.postprocess is None or self.fit is None:
            return encoder
        from cse.evaluation.postprocessing import flowed, whitened

        corpus = Corpus.read(self.fit, limit=FIT_SENTENCES)
        log_once(corpus.understood())
        return (whitened if self.postprocess == "whitening" else flowed)(encoder, corpus.sentences)


def named(models: Sequence[str]) -> list[str]:
    """Replace `published` in `models` by the id of every published checkpoint.

    Raises ArtefactError if one of them is not in the hub's cache and the hub cannot be reached.
    """
    if PUBLISHED not in models or Path(PUBLISHED).exists():
        return list(models)
    if missing := [name for name in PUBLISHED_IDS if not available(name)]:
        raise ArtefactError(
            f"{PUBLISHED}: needs the model hub, which cannot be reached; {len(missing)} of its {len(PUBLISHED_IDS)} "
            f"checkpoints are not in the cache either: {', '.join(missing)}"
        )
    return [name for model in models for name in (PUBLISHED_IDS if model == PUBLISHED else (model,))]


def settings(reference: ModelReference) -> dict[str, Any] | None:
    """The training settings that a checkpoint recorded; None for anything else."""
    if reference.kind not in (Kind.CHECKPOINT, Kind.START):
        return None
    return read_checkpoint_config(hub.model_folder(location(reference.name))).training.get("settings", {})


def group(known: dict[str, Any] | None, encoder: TextEncoder) -> str | None:
    """A digest shared by models whose `settings` differ in the seed only; None for one that was not trained here."""
    if not known or not isinstance(encoder, Encoder):
        return None
    decisive = {key: value for key, value in sorted(known.items()) if key != "seed"}
    return digest(json.dumps([to_json(encoder.method), encoder.backbone_fingerprint, decisive]))


def _key(reference: ModelReference, model: str, pooling: str | None, encoder: TextEncoder) -> str:
    """The key of an encoder in the published rows: `backbone method`, such as `bert-base-uncased promptbert`.

    For a published checkpoint it is the id and the family.
    """
    if reference.family:
        return f"{reference.name} {reference.family}"
    if not isinstance(encoder, Encoder):
        return f"{Path(model).name} {pooling}" if pooling else "glove"
    supervised = " supervised" if encoder.method.supervised else ""
    return f"{Path(encoder.backbone).name} {encoder.method.name}{supervised}"


def _encoder(reference: ModelReference, pooling: str | None, backend: str) -> TextEncoder:
    if reference.kind is Kind.WORD_VECTORS:
        return glove(Path(reference.name))
    if pooling in TOP_TOKENS:
        return top_k_tokens(open_model(resolve(reference.name, "prompt"), backend=backend), denoise=TOP_TOKENS[pooling])
    return open_model(resolve(reference.name, pooling) if pooling else reference, backend=backend)
