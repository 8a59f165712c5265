"""`cse.train`: training as a function, on texts in memory or in files."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cse.corpus.supervised import is_items
from cse.encoder.devices import PRECISIONS
from cse.encoder.processes import together
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.settings import CALLED, SETTINGS
from cse.models.checkpoint import read_checkpoint_config
from cse.models.config import Storage, openers
from cse.models.names import BACKBONE
from cse.training.loop import train as train_steps
from cse.training.output import reserved_output
from cse.training.recipe import Recipe, chosen_recipe, read_recipe
from cse.training.records import LogEntry, TrainingResult
from cse.training.run import Run, TrainRequest, prepare
from cse.training.tracking import Tracker, check_trackers, main_process, step_bar, tracking
from cse.versions import check_versions

Note = Callable[[str], object]
Callback = Callable[[LogEntry], object]


@dataclass(frozen=True)
class JobOptions:
    """The checkpoint folder of a job, and how it is written: see `cse.training.loop.train`.

    `storage` and `precision` are by default the recipe's, or else float32 and auto; `report_to` are
    the trackers of `cse.training.tracking`.
    """

    output: Path
    resume: bool = False
    overwrite: bool = False
    storage: str | None = None
    precision: str | None = None
    report_to: Sequence[Tracker] = ()

    def check(self) -> None:
        """Raise the errors that can be found before any data are read."""
        check_trackers(self.report_to)
        if main_process():
            with reserved_output(self.output, resume=self.resume, overwrite=self.overwrite):
                pass


def assemble(request: TrainRequest, recipe: Recipe, backbone: str | None, note: Note) -> tuple[TorchEncoder, Run]:
    """The encoder and the run of a request completed by a recipe. Raises as `prepare` and `Recipe.check` do."""
    completed = recipe.request(request, backbone)
    completed.preset("bert-base")  # refuses wrong settings, on any backbone, before data and backbone are read
    encoder, run = prepare(completed, note)
    recipe.check(encoder.method)
    return encoder, run


def run_job(
    encoder: TorchEncoder,
    run: Run,
    options: JobOptions,
    recipe: Recipe,
    *,
    note: Note,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> TrainingResult:
    """Train the encoder and write its checkpoint; `note` gets lines for the user, `callbacks` the entry of each step.

    With `progress` a bar is on stderr. Only the main process calls the callbacks.
    """
    if not run.selects:
        note("no dev pairs: trains to the end and selects nothing")
    if run.held_out:
        note(f"{len(run.held_out)} texts are held out: they show a collapse, but a higher score is not proof of better")
    with ExitStack() as stack:
        show = stack.enter_context(step_bar(encoder.name, run.steps)) if progress else None
        called: list[Callback] = [show] if show else []
        with together():
            if main_process():
                method = encoder.method
                settings = {
                    "method": method.name, "supervised": method.supervised, "backbone": encoder.backbone,
                    "data": Path(run.source).name, "examples": len(run.examples), **asdict(run.config),
                    **method.settings,
                }  # fmt: skip
                settings = {name: value for name, value in settings.items() if value is not None}
                called.append(stack.enter_context(tracking(options.report_to, options.output, settings)))
                called += callbacks

        def report(entry: LogEntry) -> None:
            if "note" in entry:
                if show:
                    show(entry)
                note(entry["note"])
                return
            for callback in called:
                callback(entry)

        result = train_steps(
            encoder, run, options.output, resume=options.resume, overwrite=options.overwrite,
            storage=Storage(options.storage or recipe.storage or "float32"),
            precision=options.precision or recipe.precision or "auto", report=report,
        )  # fmt: skip
    if main_process():
        note(f"{options.output}: {openers(read_checkpoint_config(options.output))}")
    if result.best is not None and result.start is not None and result.best <= result.start:
        cure = "compare the two on your own texts" if run.held_out else "lower the learning rate or give more text"
        note(f"no evaluation beat the untrained start: {cure}")
    return result


log = logging.getLogger("cse.training")


def train(
    method: str | None,
    data: Any,
    *,
    output: str | Path,
    backbone: str | Path | None = None,
    dev: Any = None,
    supervised: bool | None = None,
    column: str | None = None,
    limit: int | None = None,
    recipe: str | Path | None = None,
    storage: str | None = None,
    precision: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Callback | Sequence[Callback] = (),
    report_to: Tracker | Sequence[Tracker] = (),
    progress: bool = True,
    **settings: Any,
) -> TrainingResult:
    """Train a method on your text, write a checkpoint folder and return the result, whose `load()` opens the model.

    The command `train` does the same with the same settings, so both write the same checkpoint.

        texts = ["a cat sleeps", "the dog runs", ...]
        result = cse.train("promptbert", texts, output="runs/mine", dev=[(4.5, "a cat", "one cat"), ...], seed=43)
        print(result.start, result.best)
        vectors = result.load().encode(texts)

    Args:
        method: simcse, promptbert, dcpcse, conpvp or another of `cse.methods.catalogue.METHODS`, with its citation;
            None takes the recipe's.
        data: Texts, such as a list; for supervised training tuples (premise, entailed) or (premise, entailed,
            contradicted). Or a `cse.corpus.Corpus`, a data frame, an Arrow table, a `datasets.Dataset`, the path of a
            file of any common format, an address such as s3://bucket/texts.parquet, or a hub id. At least two examples.
            A `datasets.IterableDataset` is read into a table on disk, of which each epoch shuffles all rows: to
            `limit` examples, else to those that `max_steps` batches take once, else to its end. `resume` refuses
            other rows, so shuffle it by `dataset.shuffle(buffer_size=…, seed=…)` with a seed.
        output: The checkpoint folder to write. An unfinished run is in the folder `output` + ".partial".
        backbone: Folder or hub id of a masked language model; default: the recipe's or the bundled one.
        dev: Scored pairs (score, sentence, sentence), or a file or table of them, to select on: the best
            evaluation is kept. "auto" holds out texts, ends a run that collapses, and keeps the best of a score without
            labels, which is not proof of a better model (`cse.training.held_out` has the evidence). By default, or with
            "none", nothing is selected, and the last step is kept.
        supervised: Whether `data` has pairs: tuples, or columns such as sent0, sent1 and hard_neg, or sentence1,
            sentence2 and label (docs/train.md); default: yes for a list of tuples.
        column: The column of a table that holds the texts, where it cannot be told; of pairs the columns of anchor,
            positive, and hard negative or label, separated by commas.
        limit: Use the first N examples, at least 1; default: all.
        recipe: A JSON or YAML file, checkpoint folder or bundled name whose settings are repeated where none is given.
        storage: float32 (default) or float16: the whole model, for other tools, too; or delta (float16) or int8:
            differences from the backbone, which only this project opens. A frozen backbone is never stored.
        precision: auto (default: bf16 on a GPU that has it), no or bf16.
        resume: Continue a killed run in the same `output`, to the result it would have had.
        overwrite: Replace an existing checkpoint.
        callbacks: A function or functions called after every step with a dict: `step`, `loss`, `learning_rate`,
            `sentences_per_second`, `best` (the best dev score so far, or None) and, where it was evaluated, `dev`. An
            error that one raises ends the run, which `resume` then continues from its last evaluation.
        report_to: tensorboard, wandb or trackio, a tracker of accelerate, or several: they get the values that
            callbacks get. TensorBoard's files are in the folder `tensorboard` next to `output`.
        progress: Show a bar on stderr.
        settings: Any of those below; by default those published for the method and backbone, from the tables that
            `cse.methods.presets` names.

    Raises:
        ValueError: The data, a setting or an option is bad, or `output` holds something else.
        ArtefactError: A backbone, recipe or unfinished run is missing or damaged; it is a ValueError.
    """
    check_versions()
    called = [callbacks] if callable(callbacks) else list(callbacks)
    storages = [kind.value for kind in Storage]
    for name, value, known in (("storage", storage, storages), ("precision", precision, PRECISIONS)):
        if value is not None and value not in known:
            raise ValueError(f"{name} is {value!r}; choose from {', '.join(known)}")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ValueError(f"limit is {limit!r}; give a whole number of at least 1")
    for callback in called:
        if not callable(callback):
            raise ValueError(f"callbacks: {callback!r:.60} cannot be called; give a function of one dict")
    repeated = chosen_recipe(method, None if recipe is None else read_recipe(str(recipe)))
    if not isinstance(data, str | Path) and is_items(data):
        data = list(data)
        supervised = bool(data) and isinstance(data[0], tuple | list) if supervised is None else supervised
    reports = list(report_to) if isinstance(report_to, list | tuple) else [report_to]
    options = JobOptions(Path(output), resume, overwrite, storage, precision, reports)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # tokenizers warn of it in every later fork of a notebook
    dev = None if isinstance(dev, str) and dev == "none" else dev
    request = TrainRequest(repeated.name, data, BACKBONE, bool(supervised), dev, column, limit, settings)
    with together():
        options.check()
        encoder, run = assemble(request, repeated, None if backbone is None else str(backbone), log.warning)
    return run_job(encoder, run, options, repeated, note=log.warning, callbacks=called, progress=progress)


def _add_settings(function: Callable[..., Any]) -> None:
    """Append the name, type, bounds and help of every setting to the docstring of a function."""
    lines = ["", "", "    Settings:"]
    for setting in SETTINGS.values():
        named = ("at least", setting.least), ("at most", setting.most)
        bounds = [f"{word} {bound}" for word, bound in named if not math.isinf(bound)]
        lines.append(f"        {setting.name}: {', '.join([CALLED[setting.kind], *bounds])}. {setting.help}".rstrip())
    function.__doc__ = (function.__doc__ or "").rstrip() + "\n".join([*lines, "    "])


_add_settings(train)
