"""`adapt`: from a file of texts to a model that suits them, or to the advice to keep the start."""

from __future__ import annotations

import importlib
import json
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file as save_arrays

from cse.adaptation.candidates import OWN, Trial, left_out
from cse.adaptation.choice import (
    BOTH,
    GROUPS,
    LANGUAGE,
    LATER,
    MEASURES,
    MIN_TEXTS,
    PROJECTION,
    PURPOSES,
    START,
    TRAINED,
    TRAINING,
    VARIANTS,
    Choice,
    candidates,
    choose,
)
from cse.adaptation.facts import TextFacts, split, text_facts
from cse.adaptation.projection import PROJECTION_RECORD, check_projectable
from cse.adaptation.report import aligned, changed_neighbours, model_card, page, table
from cse.adaptation.workspace import (
    CANDIDATE,
    CANDIDATE_FOLDER,
    REPORT,
    REPORT_PAGE,
    RESULT_FOLDER,
    TURNED_FOLDER,
    Workspace,
    check_output,
)
from cse.analysis.votes import texts_digest
from cse.corpus.corpus import Corpus
from cse.corpus.formats import Options
from cse.encoder.processes import check_alone
from cse.errors import command_line
from cse.evaluation.retrieval import known_item
from cse.files.checksums import write_checksums
from cse.files.weights import SINGLE, read_arrays
from cse.files.writing import read_json, reserved, write_folder, write_json
from cse.methods.settings import SETTINGS
from cse.models.loading import open_model
from cse.models.names import BACKBONE, Kind, resolve

MAX_TEXTS = 100_000  # different ones; more are sampled
DEFAULT_MINUTES = 30.0
Note = Callable[[str], object]


@dataclass(frozen=True)
class AdaptRequest:
    """A request: texts in `data`, in the column `column`, their labels in the column `label`; a start and its pooling.

    `minutes` bounds the whole run. `purpose` is what the model is for: groups, search or both. `titles` names a column
    of short forms by which texts are to be found, instead of a few of their words. `read` are the words of
    `cse.corpus.formats.Options`.
    """

    data: str
    backbone: str = BACKBONE
    pooling: str | None = None
    column: str | None = None
    label: str | None = None
    minutes: float | None = DEFAULT_MINUTES
    seed: int = 42
    read: tuple[str, ...] = ()
    purpose: str = BOTH
    titles: str | None = None


def adapt(
    request: AdaptRequest,
    output: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    note: Note = lambda line: None,
) -> dict[str, Any]:
    """Look at texts, try a projection and training, write the better model with a report, and return the report.

    `output` becomes a folder for `cse.load` and sentence-transformers with `report.html` and `report.json`; if nothing
    beats the start, it holds the report alone. A model that is better at one thing only, or that may group better where
    there are no labels, is in its subfolder `candidate`, for `cse judge`. `note` gets lines on the progress. Ctrl-C
    during the stages that take minutes ends them with the best so far. A killed run continues with `resume` from its
    last finished stage. Raises ValueError for bad texts and as `check_output` does, ArtefactError for a model that
    cannot be opened.
    """
    folder = Path(output)
    check_alone("an adaptation")
    SETTINGS["seed"].check(request.seed)
    if request.minutes is not None and not 0 < request.minutes < float("inf"):
        raise ValueError(f"`minutes` is {request.minutes!r}; give a number above 0")
    if request.purpose not in PURPOSES:
        raise ValueError(f"`purpose` is {request.purpose!r}; choose from {', '.join(PURPOSES)}")
    if request.purpose == GROUPS and not request.label:
        raise ValueError("`purpose` is groups, which only labels can measure; give `label`, or leave out `purpose`")
    with reserved(folder):
        check_output(folder, resume=resume, overwrite=overwrite)
        trial, facts = tried(request, folder, resume, note)
        workspace = trial.workspace
        choice = choose(workspace.stages, request.purpose)
        known = {"facts": {**asdict(facts), "warning": facts.warning}, "summary": str(facts)}
        report = _report(request, folder, trial, choice) | known
        models = [
            trial.written(name, workspace.work / part)
            for name, part in ((choice.result, RESULT_FOLDER), (choice.candidate, CANDIDATE_FOLDER))
        ]
        files = {REPORT: json.dumps(report, ensure_ascii=False, indent=1), REPORT_PAGE: page(report)}
        if models[0] is not None:
            files["README.md"] = model_card(report)
        workspace.publish(folder, models[0], models[1], files)
        return report


def turn(model: Path, dial: float, output: Path, *, overwrite: bool = False) -> None:
    """Write an adapted model to `output` as the candidate of its adaptation that differs in the `dial` alone.

    The outputs (k,) of its layer are weighted anew: vectors are those of that candidate, but for rounding. Raises
    ValueError for a dial beyond -1 to 1, a model without a projection, and an `output` that holds something.
    """
    if not abs(dial) <= 1:
        raise ValueError(f"`dial` is {dial!r}; give a number from -1 (finding) to 1 (grouping)")
    record = read_json(model / PROJECTION_RECORD) if (model / PROJECTION_RECORD).is_file() else {}
    layer = next(model.glob("*_Dense"), None)
    if "spectrum" not in record or layer is None:
        raise ValueError(f"{model}: no adapted model whose dial can be turned; give another folder, or adapt again")
    if not overwrite and output.is_dir() and any(output.iterdir()):
        raise ValueError(f"{output} already holds something; give another `output` or pass `overwrite`")
    weights = np.array(record["spectrum"], np.float32) ** (dial - record["dial"])

    def fill(target: Path) -> None:
        others = shutil.ignore_patterns(REPORT, REPORT_PAGE, CANDIDATE, "README.md")  # of the model that was chosen
        shutil.copytree(model, target, dirs_exist_ok=True, ignore=others)
        arrays = read_arrays([layer / SINGLE])
        turned = {name: (weights * array.T).T for name, array in arrays.items()}
        save_arrays(turned, target / layer.name / SINGLE)
        write_json(target / PROJECTION_RECORD, {**record, "dial": dial})
        write_checksums(target)

    write_folder(output, fill, TURNED_FOLDER)


def tried(
    request: AdaptRequest,
    folder: Path,
    resume: bool = False,
    note: Note = lambda line: None,
    *,
    later: bool = True,
) -> tuple[Trial, TextFacts]:
    """Return the trial of all candidates, in an unfinished folder beside `folder`, and facts about the texts.

    Those that take minutes are left out unless `later`.
    """
    corpus = Corpus.read(request.data, request.column, request.label, options=Options.of(request.read))
    note(corpus.understood())
    count = len(corpus.check(MIN_TEXTS, "an adaptation"))
    corpus = corpus.distinct_sample(MAX_TEXTS, request.seed)
    reference = resolve(request.backbone, request.pooling)
    encoder = open_model(reference)
    check_projectable(reference, encoder)
    settings = {name: value for name, value in asdict(request).items() if name not in ("minutes", "read")}
    texts = texts_digest(f"{text}\0{label}" for text, label in zip(corpus.sentences, corpus.labels, strict=True))
    record = {**settings, "texts": texts, "fingerprint": encoder.fingerprint, "candidates": [*VARIANTS, *LATER]}
    held, fit = split(corpus, request.seed)
    known = list(filter(None, held.labels))
    if request.label and not 1 < len(set(known)) < len(known):
        what = "all different" if len(set(known)) > 1 else "all the same" if known else "empty"
        raise ValueError(
            f"{request.data}: the labels in {request.label!r} of the held-out texts are {what}; give another `label`, "
            "or none"
        )
    items = _known_items(held, request.titles)
    if not items and not request.label:
        raise ValueError(
            f"{request.data}: nothing can be measured on texts of one or two words; give their `label`, or `titles`"
        )
    if request.titles:
        record["short forms"] = texts_digest(f"{row}\0{form}\0{sought}" for row, (form, sought) in items.items())
    workspace = Workspace.begin(folder, record, request.minutes, resume)
    trial = Trial(reference, encoder, fit.sentences, fit.labels, held, items, request.seed, workspace, request.purpose)
    _run_stage(trial, START, note)
    facts = text_facts(encoder, [*trial.held, *trial.fit], count, workspace.kept(START), request.seed)
    note(facts.warning or str(facts))
    _run_stage(trial, PROJECTION, note)
    if later:
        _try_later(trial, note)
    return trial, facts


def _run_stage(trial: Trial, name: str, note: Note) -> None:
    """Try candidates, unless they are finished already."""
    stages: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
        START: (trial.start, "scoring the start"),
        PROJECTION: (partial(trial.projected, PROJECTION, START), "fitting projections"),
        LANGUAGE: (trial.language, "masked language modelling"), TRAINING: (trial.training, "training"),
        TRAINED: (partial(trial.projected, TRAINED, TRAINING), "fitting projections of the trained model"),
    }  # fmt: skip
    make, what = stages[name]
    is_backbone = trial.reference.kind is Kind.BACKBONE
    if name == TRAINED and "scores" not in trial.workspace.stages[TRAINING]:
        return
    if name == LANGUAGE and (any(trial.corpus.labels) or not is_backbone or trial.reference.pooling != "cls"):
        return  # with labels training gains more; read by the mean a model gains too little (docs/own-text.md)
    if name not in trial.workspace.stages:
        note(what)
    result = trial.workspace.stage(name, make)
    if "left_out" in result:
        note(f"left out: {result['left_out']}")


def _try_later(trial: Trial, note: Note) -> None:
    """Try the candidates that take minutes, after a first answer, until Ctrl-C."""
    stages = trial.workspace.stages
    plan = trial.training_plan
    if TRAINING not in stages and not trial.untrainable and plan.steps:
        choice = choose(stages, trial.purpose)
        for line in aligned(table(stages, choice.result, choice.candidate)):
            note(line)
        minutes = max(1, round(plan.seconds / 60))
        note(
            f"training takes about {minutes} minute{'s' if minutes > 1 else ''} and may add about 2 points: Ctrl-C "
            "keeps this"
        )
    for name in LATER:
        try:
            _import_torch()
            _run_stage(trial, name, note)
        except KeyboardInterrupt:
            note("stopped: the best so far is kept")
            stages[name] = {**left_out("stopped by Ctrl-C"), "seconds": 0.0}
            return


def _import_torch() -> None:
    """Import PyTorch, which can be imported once only: Ctrl-C waits until that is done."""
    if "torch" in sys.modules or threading.current_thread() is not threading.main_thread():
        return
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        with suppress(ImportError):  # the stage says so, if it needs it
            importlib.import_module("torch")
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt


def _known_items(held: Corpus, titles: str | None) -> dict[int, tuple[str, str]]:
    """Return the short form of each text that has one, and what that has to find, by row: by `known_item`, or its cell
    of `titles`, if that says less, and the text.
    """
    if titles is None:
        items: Iterable[tuple[str, str]] = map(known_item, held.sentences)
    else:
        cells = zip((cell.strip() for cell in held.cells(titles)), held.sentences, strict=True)
        items = ((cell if cell != text else "", text) for cell, text in cells)
    with_form = {row: item for row, item in enumerate(items) if item[0]}
    if titles is not None and not with_form:
        raise ValueError(f"{held.name}: the column {titles!r} has no short form of the held-out texts; leave it out")
    return with_form


def _report(request: AdaptRequest, folder: Path, trial: Trial, choice: Choice) -> dict[str, Any]:
    workspace = trial.workspace
    scored = candidates(workspace.stages)
    compared = next((name for name in (choice.result, choice.candidate, *scored) if name not in (None, START)), START)
    rows = [trial.corpus.row(row) for row in range(len(trial.corpus))]
    changed = changed_neighbours(workspace.kept(START), workspace.kept(str(compared)), rows)
    axes = {
        axis: {side: scored[name]["scores"][measure] for side, name in (("start", START), ("result", choice.result))}
        if measure in scored[START]["scores"] else None
        for axis, measure in MEASURES.items()
    }  # fmt: skip
    return {
        "run": workspace.run, "decision": choice.result, "chosen": choice.result, "candidate": choice.candidate,
        "verdict": choice.sentence, **axes, "for": request.purpose,
        "start": trial.encoder.name, "data": request.data, "held_out": len(trial.held),
        "fitted": len(trial.vectors(START, OWN).fit),
        "stages": workspace.stages, "seconds": workspace.spent, "compared": compared,
        "commands": _commands(request, folder, choice),
        "changed": [{**change, **change["text"]} for change in changed],
    }  # fmt: skip


def _commands(request: AdaptRequest, folder: Path, choice: Choice) -> dict[str, str]:
    """Return the commands that repeat the adaptation and that judge its models, by what they do."""

    def command(name: str, words: Sequence[str], options: dict[str, Any]) -> str:
        for option, value in options.items():
            for item in value if isinstance(value, list) else [value]:
                words = [*words, *([] if item is None else [f"--{option}", str(item)])]
        return command_line(name, *words)

    data = {"column": request.column, "label": request.label, "pooling": request.pooling, "read": list(request.read)}
    options = {"output": folder, "backbone": request.backbone, **data, "seed": request.seed,
               "minutes": request.minutes, "titles": request.titles,
               "for": None if request.purpose == BOTH else request.purpose}  # fmt: skip
    commands = {"repeat this run": command("adapt", [request.data], options)}
    # A pooling given once would read the result's backbone without its projection.
    pooling = [] if request.pooling is None else [request.pooling, "own"]
    texts = {"data": request.data, "column": request.column, "pooling": pooling, "read": data["read"]}
    for what, name, model in (
        ("judge the result", choice.result, folder), ("judge the candidate", choice.candidate, folder / CANDIDATE)
    ):  # fmt: skip
        if name not in (None, START):
            commands[what] = command("judge", [request.backbone, str(model)], texts)
    return commands
