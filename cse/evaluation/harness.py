"""The evaluation harness: score every model of a selection on every unit of a task.

Results are saved after each unit, so an interruption loses at most one; units already in the results file are skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.encoder.encoder import Encoder
from cse.evaluation.evaluated_models import Candidate, ComparedModel, ModelSelection
from cse.evaluation.metrics import compare
from cse.evaluation.representations import token_access
from cse.evaluation.results import ModelRecord, Protocol, Results, name_and_checksum, provenance, save_results
from cse.evaluation.sts import with_final_period
from cse.evaluation.tasks import Task, TaskData
from cse.files.writing import file_digest
from cse.models.fitted_texts import fitted_count

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores, Unit
    from cse.evaluation.representations import TextEncoder

    Log = Callable[[str], None]


@dataclass(frozen=True)
class EvaluationRequest:
    """Models to evaluate on the `data` of a task, and how they encode it.

    `final_period` appends PromptBERT's final full stop; `compare` tests the first model against the others, and each
    against its own start if that is among them;
    `keep_points` keeps the scores that comparisons and figures need; `progress` shows a bar while encoding.
    """

    task: Task
    data: TaskData
    models: ModelSelection
    batch_size: int = 128
    final_period: bool = False
    compare: bool = False
    keep_points: bool = False
    progress: bool = False


def new_results(request: EvaluationRequest, command: str) -> Results:
    """Return empty results for a request; `command` is the user's command line.

    Raises ValueError, as the task's `units` does, if its data are missing.
    """
    data = request.data
    request.task.units(data)
    protocol = Protocol(
        data=file_digest(data.folder),
        tokenised=file_digest(data.tokenised) if data.tokenised else None,
        details=data.details,
        final_period=request.final_period,
        sentences=name_and_checksum(data.sentences),
        fit=name_and_checksum(request.models.fit),
        points=request.compare or request.keep_points,
        classifier=data.classifier,
        smooth=data.smooth,
        expand=data.expand,
    )
    return Results(request.task.name, protocol, command)


def raise_failure(name: str, error: Exception) -> None:
    """End the evaluation with the first failure."""
    raise error


def evaluate(
    request: EvaluationRequest,
    results: Results,
    path: Path | None,
    report: Log,
    failed: Callable[[str, Exception], None] = raise_failure,
) -> dict[str, ModelRecord]:
    """Complete `results`, saving them to `path` after every unit; return the records of the request's models.

    `report` gets lines of progress. `failed` gets the name and the error of a model that cannot be opened or scored, or
    of a `path` that can no longer be written; if it returns, evaluation continues and scores are kept. Raises what
    `ModelSelection.candidates` does, and OSError if `path` cannot be written, before any work.
    """
    candidates = request.models.candidates()
    if path:
        save_results(path, results)
    scoring = _Scoring(request, results, path, report, failed)
    first, *others = [scoring.score(candidate) for candidate in candidates]
    if request.compare and others:
        if first is None:
            report(f"no comparison: {candidates[0].name} failed, and the others are compared with it")
        else:
            results.comparisons = _comparisons({label: results.models[label] for label in (first, *others) if label})
    for label in [label for label, record in scoring.records.items() if not record.scores]:
        del scoring.records[label], results.models[label]  # a model that failed before its first score
    scoring.save()
    return scoring.records


def _comparisons(models: Mapping[str, ModelRecord]) -> list[str]:
    """Compare the first model with the others, and each model with its own start."""
    starts = {record.model: label for label, record in models.items() if record.start}
    trained = [label for label, record in models.items() if not record.start]
    pairs = [(label, starts[models[label].model]) for label in trained if models[label].model in starts]
    return [line for labels in (trained, *pairs) for line in compare({label: models[label].scores for label in labels})]


@dataclass
class _Scoring:
    """State of an evaluation: its inputs, and the `records` by label."""

    request: EvaluationRequest
    results: Results
    path: Path | None
    report: Log
    failed: Callable[[str, Exception], None]
    records: dict[str, ModelRecord] = field(default_factory=dict)

    def score(self, candidate: Candidate) -> str | None:
        """Score a model on every unit and return its label, or None if it failed."""
        try:
            model = candidate.open()
            label, record = _record(self.results, model)
            self.records[label] = record
            self.report(f"{label} ({record.fingerprint})")
            units = _units(self.request, model.encoder, self.results.protocol.points, self.report)
            units = {name: partial(_marked, unit, model.model) for name, unit in units.items()}
            encode, done = _encode(self.request, model.encoder), partial(self._done, record)
            record.scores = run_units(encode, units, record.scores, done)
        except Exception as error:
            self.failed(candidate.name, error)
            return None
        return label

    def _done(self, record: ModelRecord, unit: str) -> None:
        scores = record.scores[unit].items()
        numbers = "  ".join(f"{key} {value}" for key, value in scores if not isinstance(value, list | dict))
        self.report(f"  {unit}  {numbers}")
        self.save()

    def save(self) -> None:
        """Save the results; an error, such as a full disk, is reported and does not end the evaluation."""
        try:
            if self.path:
                save_results(self.path, self.results)
        except OSError as error:
            self.failed(str(self.path), error)


def run_units(
    encode: Encode, units: Mapping[str, Unit], done: dict[str, Scores], save: Callable[[str], None]
) -> dict[str, Scores]:
    """Run the units that `done` lacks, calling `save` with the name after each; return all in the units' order."""
    cached = cached_encode(encode)
    for name, unit in units.items():
        if name not in done:
            done[name] = unit(cached)
            save(name)
    return {**{name: done[name] for name in units}, **done}


def cached_encode(encode: Encode) -> Encode:
    """Wrap `encode` with a cache, so that each distinct text is encoded once with each prompt for all units."""
    by_prompt: dict[str | None, dict[str, np.ndarray]] = defaultdict(dict)

    def encode_new(texts: list[str], prompt: str | None = None) -> np.ndarray:
        known, before = by_prompt[prompt], {} if prompt is None else {"prompt": prompt}
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            known.update(zip(new, encode(new, **before), strict=True))
        return np.stack([known[text] for text in texts]) if texts else encode([])

    return encode_new


def _record(results: Results, model: ComparedModel) -> tuple[str, ModelRecord]:
    """The label and the record of a model in `results`, added if missing.

    The label is the encoder's name, with its fingerprint if another encoder has that name.
    """
    label, fingerprint = model.encoder.name, model.encoder.fingerprint
    if label in results.models and results.models[label].fingerprint != fingerprint:
        label = f"{label} {fingerprint}"
    record = results.models.setdefault(label, ModelRecord(model.model, fingerprint, **provenance()))
    record.group, record.seed, record.key, record.family = model.group, model.seed, model.key, model.family
    record.start = model.start
    return label, record


def _units(request: EvaluationRequest, encoder: TextEncoder, points: bool, report: Log) -> Mapping[str, Unit]:
    """The task's units for one encoder; without `points` they omit scores that only comparisons and figures need."""
    task = request.task
    tokens = token_access(encoder, request.batch_size) if task.token_units else None
    data = replace(request.data, tokens=tokens)
    if task.ranks and (prompted := encoder if isinstance(encoder, Encoder) else getattr(encoder, "prompted", None)):
        data = replace(data, query_prompt=prompted.query_prompt, document_prompt=prompted.document_prompt)
        for texts, prompt in (("queries", data.query_prompt), ("documents", data.document_prompt)):
            if note := prompted.prompt_note(texts, prompt):
                report(f"  {note}")
    units = task.units(data)
    if lacking := [name for name in task.token_units if name not in units]:
        report(f"  {' and '.join(lacking)} need an encoder with tokens and all of {task.layout}: skipped")
    return units if points else {name: partial(_without, unit, task.points) for name, unit in units.items()}


def _without(unit: Unit, points: tuple[str, ...], encode: Encode) -> Scores:
    return {key: value for key, value in unit(encode).items() if key not in points}


def _marked(unit: Unit, model: str, encode: Encode) -> Scores:
    """Run a unit; the scores say how many of its texts the model was fitted on, if any."""
    texts: set[str] = set()

    def watched(sentences: list[str], **before: Any) -> np.ndarray:
        texts.update(sentences)
        return encode(sentences, **before)

    scores = unit(watched)
    count = fitted_count(model, texts)
    return {**scores, "fitted_texts": count, "texts": len(texts)} if count else scores


def _encode(request: EvaluationRequest, encoder: TextEncoder) -> Encode:
    bar: dict[str, Any] = {"show_progress_bar": True} if request.progress and isinstance(encoder, Encoder) else {}
    encode: Encode = partial(encoder.encode, batch_size=request.batch_size, **bar)
    if not request.final_period:
        return encode
    return lambda texts, **before: encode([with_final_period(text) for text in texts], **before)
