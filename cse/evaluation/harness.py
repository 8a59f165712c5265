"""The evaluation harness: open the models of a selection one at a time, and score each on every unit of a task.

Results are saved after each unit, so an interruption loses at most one; units already in the results file are skipped.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cse.corpus.corpus import Corpus
from cse.corpus.supervised import log_once
from cse.encoder.encoder import Encoder
from cse.errors import ArtefactError
from cse.evaluation.metrics import BOOTSTRAP_SAMPLES, paired_bootstrap
from cse.evaluation.representations import TextEncoder, top_k_tokens, whitened
from cse.evaluation.results import ModelRecord, Protocol, Results, name_and_checksum, open_results, provenance
from cse.evaluation.sts import with_final_period
from cse.evaluation.tasks import Task, TaskData
from cse.files import hub
from cse.files.checksums import with_digest
from cse.files.weights import available
from cse.files.writing import check_writable, digest, file_digest, write_json
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import When
from cse.methods.settings import to_json
from cse.models.checkpoint import read_checkpoint_config
from cse.models.fitted_texts import fitted_count
from cse.models.loading import open_model
from cse.models.names import PUBLISHED_IDS, Kind, ModelReference, check_name, location, resolve

if TYPE_CHECKING:
    from cse.evaluation import Encode, Unit

TOP_TOKENS = {"top-tokens": False, "top-tokens-denoised": True}  # PromptBERT Eq. 3, with and without denoising
SCORED_POOLINGS = (*UNTRAINED, *TOP_TOKENS)
PUBLISHED = "published"  # every published checkpoint
POSTPROCESSES = ("whitening",)
FIT_SENTENCES = 20_000


class Candidate(NamedTuple):
    """A model whose files were found: its `name` for messages, and its training's `settings`, if any were recorded."""

    name: str
    model: str
    reference: ModelReference
    settings: dict[str, Any]
    pooling: str | None = None


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
        values = [*((pooling, SCORED_POOLINGS) for pooling in self.poolings), (self.postprocess, POSTPROCESSES)]
        for value, known in values:
            if value is not None and value not in known:
                raise ValueError(f"unknown {value!r}; choose from {', '.join(known)}")
        if (self.postprocess is None) != (self.fit is None):
            raise ValueError("give `postprocess` and `fit` together: it is fitted on sentences")

    def candidates(self) -> list[Candidate]:
        """The models to compare, not yet opened; all names are checked before any weights are read.

        Raises the errors of a wrong name, family or pooling, of poolings that no model takes, of a damaged
        configuration, and of an empty `fit`; ArtefactError for a published checkpoint that is not available.
        """
        models = list(self.models)
        if PUBLISHED in models and not Path(PUBLISHED).exists():
            if missing := [name for name in PUBLISHED_IDS if not available(name)]:
                raise ArtefactError(
                    f"{PUBLISHED}: needs the model hub, which cannot be reached; {len(missing)} of its "
                    f"{len(PUBLISHED_IDS)} checkpoints are not in the cache either: {', '.join(missing)}"
                )
            models = [name for model in models for name in (PUBLISHED_IDS if model == PUBLISHED else (model,))]
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
        self._check_used(", ".join(models), references)
        listed = []
        for model, reference in zip(models, references, strict=True):
            if self.poolings and reference.kind is Kind.BACKBONE:
                stem = Path(reference.name).name
                listed += [Candidate(f"{stem}-{name}", model, reference, {}, name) for name in self.poolings]
                continue
            settings: dict[str, Any] = {}
            if reference.kind in (Kind.CHECKPOINT, Kind.START):
                folder = hub.model_folder(location(reference.name))
                settings = read_checkpoint_config(folder).training.get("settings", {})
            listed.append(Candidate(reference.label, model, reference, settings))
            if self.starts and reference.kind is Kind.CHECKPOINT:
                listed.append(Candidate(reference.start.label, model, reference.start, settings))
        return listed

    def _check_used(self, models: str, references: Sequence[ModelReference]) -> None:
        """Raise ValueError for an option that none of the models takes."""
        kinds, of_family = {reference.kind for reference in references}, any(one.family for one in references)
        if self.family and not of_family:
            raise ValueError(f"{models}: not read as a `family`; leave it out")
        if self.starts and Kind.CHECKPOINT not in kinds:
            raise ValueError(f"{models}: no checkpoint of a training, so without a `start`; leave it out")
        if self.bare and not kinds & {Kind.CHECKPOINT, Kind.EXPORT} and not of_family:
            raise ValueError(f"{models}: read without head and denoising anyway; leave out `bare`")

    def open(self, candidate: Candidate) -> tuple[TextEncoder, ModelRecord]:
        """Return a candidate's encoder, and an empty record of it. Raises ArtefactError for damaged weights."""
        _, model, reference, settings, pooling = candidate
        encoder: TextEncoder
        if pooling in TOP_TOKENS:
            prompted = open_model(resolve(reference.name, "prompt"), backend=self.backend)
            encoder = top_k_tokens(prompted, denoise=TOP_TOKENS[pooling])
        else:
            encoder = open_model(resolve(reference.name, pooling) if pooling else reference, backend=self.backend)
        if self.bare and isinstance(encoder, Encoder) and not encoder.method.untrained:
            encoder.method = encoder.method.replaced(denoise=When.NEVER, head_when=When.TRAINING)
        start = reference.kind is Kind.START
        if reference.family:
            key = f"{reference.name} {reference.family}"
        elif isinstance(encoder, Encoder):
            supervised = " supervised" if encoder.method.supervised else ""
            key = f"{Path(encoder.backbone).name} {encoder.method.name}{supervised}"
        else:
            key = f"{Path(model).name} {pooling}"
        key = "+".join(filter(None, [key, self.postprocess, "bare" if self.bare else None]))
        group = None  # models of one group differ in their seed only
        if settings and isinstance(encoder, Encoder) and not self.postprocess:
            decisive = {key: value for key, value in sorted(settings.items()) if key != "seed"}
            group = digest(json.dumps([to_json(encoder.method), encoder.backbone_fingerprint, decisive]))
        if self.postprocess is not None and self.fit is not None:
            corpus = Corpus.read(self.fit, limit=FIT_SENTENCES)
            log_once(corpus.understood())
            encoder = whitened(encoder, corpus.sentences)
        return encoder, ModelRecord(
            model, _mark(encoder), group=group, seed=settings.get("seed"), key=None if start else key,
            family=reference.family, start=start,
        )  # fmt: skip


def _mark(encoder: TextEncoder) -> str:
    """Return an encoder's fingerprint, or a digest of it and of what else decides scores."""
    read = encoder if isinstance(encoder, Encoder) else encoder.prompted
    settings = [] if read is None else read.call_settings
    return digest(encoder.fingerprint, json.dumps(settings)) if settings else encoder.fingerprint


@dataclass
class Evaluation:
    """An evaluation of models on the `data` of a task: how they encode it, and what gets its results.

    `path` is a results file that is saved after every unit, `report` gets lines of progress. `failed` gets the name and
    the error of a model that cannot be opened or scored, or of a `path` that can no longer be written; if it returns,
    the evaluation continues and scores are kept. `final_period` appends PromptBERT's final full stop; `compare` tests
    the first model against the others, and each against its own start if that is among them; `keep_points` keeps the
    scores that figures need; `progress` shows a bar while encoding. `records` are those of these models by label.
    """

    task: Task
    data: TaskData
    models: ModelSelection
    path: Path | None
    report: Callable[[str], None]
    failed: Callable[[str, Exception], None]
    batch_size: int = 128
    final_period: bool = False
    compare: bool = False
    keep_points: bool = False
    progress: bool = False
    records: dict[str, ModelRecord] = field(default_factory=dict)

    def results(self, command: str, overwrite: bool = False) -> Results:
        """Return results to complete: empty ones, or those of `path`; `command` is the user's command line.

        Raises ValueError, as the task's `units` does, if its data are missing, and as `open_results` does.
        """
        data = self.data
        self.task.units(data)
        protocol = Protocol(
            data=file_digest(data.folder),
            tokenised=file_digest(data.tokenised) if data.tokenised else None,
            details=data.details,
            final_period=self.final_period,
            sentences=name_and_checksum(data.sentences),
            fit=name_and_checksum(self.models.fit),
            points=self.compare or self.keep_points,
            classifier=data.classifier,
            smooth=data.smooth,
            expand=data.expand,
        )
        return open_results(None if overwrite else self.path, Results(self.task.name, protocol, command))

    def run(self, results: Results) -> dict[str, ModelRecord]:
        """Complete `results`, and return the records of these models.

        Raises what `ModelSelection.candidates` does, and OSError if `path` cannot be written, before any work.
        """
        candidates = self.models.candidates()
        if self.compare and len(candidates) < 2:
            raise ValueError("`compare` needs a second model, or `start`")
        if self.path:
            check_writable(self.path)
        first, *others = [self._score(candidate, results) for candidate in candidates]
        if self.compare and others:
            if first is None:
                self.report(f"no comparison: {candidates[0].name} failed, and the others are compared with it")
            else:
                labels = [label for label in (first, *others) if label]
                results.comparisons = _comparisons({label: results.models[label] for label in labels})
        for label in [label for label, record in self.records.items() if not record.scores]:
            del self.records[label], results.models[label]  # a model that failed before its first score
        self._save(results)
        return self.records

    def _score(self, candidate: Candidate, results: Results) -> str | None:
        """Score a model on every unit and return its label, or None if it failed."""
        try:
            encoder, fresh = self.models.open(candidate)
            label, models = encoder.name, results.models
            if label in models and models[label].fingerprint != fresh.fingerprint:
                label = f"{label} {fresh.fingerprint}"
            if earlier := models.get(label):
                record = replace(fresh, date=earlier.date, versions=earlier.versions, scores=earlier.scores)
            else:
                record = replace(fresh, **provenance())
            models[label] = self.records[label] = record
            self.report(f"{label} ({record.fingerprint})")
            read: set[str] = set()
            units, encode = self._units(encoder), self._cached_encode(encoder, read)
            for name, unit in units.items():
                if name not in record.scores:
                    read.clear()
                    scores = unit(encode)
                    if count := fitted_count(record.model, read):  # scores on texts that it was fitted on are marked
                        scores |= {"fitted_texts": count, "texts": len(read)}
                    if not results.protocol.points:
                        scores = {key: value for key, value in scores.items() if key not in self.task.points}
                    record.scores[name] = scores
                    shown = (f"{key} {value}" for key, value in scores.items() if not isinstance(value, list | dict))
                    self.report(f"  {name}  {'  '.join(shown)}")
                    self._save(results)
            record.scores = {**{name: record.scores[name] for name in units}, **record.scores}
        except Exception as error:
            self.failed(candidate.name, error)
            return None
        return label

    def _save(self, results: Results) -> None:
        """Save the results; an error, such as a full disk, is reported and does not end the evaluation."""
        try:
            if self.path:
                write_json(self.path, with_digest(results.to_json()))
        except OSError as error:
            self.failed(str(self.path), error)

    def _units(self, encoder: TextEncoder) -> Mapping[str, Unit]:
        """The task's units for one encoder; those that are skipped are reported, and its prompts."""
        task, data = self.task, self.data
        if task.token_units and isinstance(encoder, Encoder):
            data = replace(data, encoder=encoder, batch_size=self.batch_size)
        if task.ranks and (prompted := encoder if isinstance(encoder, Encoder) else encoder.prompted):
            data = replace(data, query_prompt=prompted.query_prompt, document_prompt=prompted.document_prompt)
            for texts, prompt in (("queries", data.query_prompt), ("documents", data.document_prompt)):
                if note := prompted.prompt_note(texts, prompt):
                    self.report(f"  {note}")
        units = task.units(data)
        if lacking := [name for name in task.token_units if name not in units]:
            self.report(f"  {' and '.join(lacking)} need an encoder with tokens and all of {task.layout}: skipped")
        return units

    def _cached_encode(self, encoder: TextEncoder, read: set[str]) -> Encode:
        """The `encode` of the units: a distinct text is encoded once with each prompt for all units, and is `read`."""
        bar: dict[str, Any] = {"show_progress_bar": True} if self.progress and isinstance(encoder, Encoder) else {}
        encode: Encode = partial(encoder.encode, batch_size=self.batch_size, **bar)
        by_prompt: dict[str | None, dict[str, np.ndarray]] = defaultdict(dict)

        def encode_new(texts: list[str], prompt: str | None = None) -> np.ndarray:
            read.update(texts)
            known, before = by_prompt[prompt], {} if prompt is None else {"prompt": prompt}
            if new := [text for text in dict.fromkeys(texts) if text not in known]:
                ended = [with_final_period(text) for text in new] if self.final_period else new
                known.update(zip(new, encode(ended, **before), strict=True))
            return np.stack([known[text] for text in texts]) if texts else encode([])

        return encode_new


def _comparisons(models: Mapping[str, ModelRecord]) -> list[str]:
    """A line per model: the first minus it, or it minus its own start, on the STS pairs both have, with the interval.

    Raises ValueError if two models share no set.
    """
    starts = {record.model: label for label, record in models.items() if record.start}
    trained = [label for label, record in models.items() if not record.start]
    pairs = [(trained[0], other) for other in trained[1:]]
    pairs += [(label, starts[models[label].model]) for label in trained if models[label].model in starts]
    lines = []
    for first, other in pairs:
        ours, theirs = models[first].scores, models[other].scores
        tasks = {
            name: (np.array(own["cosines"]), np.array(theirs[name]["cosines"]), np.array(own["grades"]))
            for name, own in ours.items()
            if name in theirs
        }
        if not tasks:
            raise ValueError(f"{first} and {other} have no task in common")
        difference = paired_bootstrap(tasks)
        of = f"{len(tasks)} task{'s' if len(tasks) > 1 else ''}, {BOOTSTRAP_SAMPLES} bootstrap samples"
        lines.append(f"{first} minus {other}, {of}: {difference}")
    return lines
