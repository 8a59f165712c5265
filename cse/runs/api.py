"""`cse.train`: training as a function, on texts in memory or in files."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.encoding.processes import together
from cse.engines.precision import PRECISIONS
from cse.methods.settings import CALLED, SETTINGS, Setting
from cse.models.names import BACKBONE
from cse.models.storage import Storage
from cse.runs.job import Callback, JobOptions, TrainingResult, assemble, run_job
from cse.runs.recipe import chosen_recipe, read_recipe
from cse.runs.tracking import Tracker
from cse.text.in_memory import is_items
from cse.training.run import TrainRequest
from cse.versions import check_versions

if TYPE_CHECKING:
    from datasets import Dataset

    from cse.text.in_memory import Texts
    from cse.text.sentences import Pair

log = logging.getLogger("cse.training")


def train(
    method: str | None,
    data: str | Path | Texts | Dataset,
    *,
    output: str | Path,
    backbone: str | Path | None = None,
    dev: str | Path | Sequence[Pair] | None = None,
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
            contradicted). Or a `datasets.Dataset`, a path (of text or a table, .gz and .xz too) or a hub id.
            At least two examples. Texts in memory are copied.
        output: The checkpoint folder to write. An unfinished run is in the folder `output` + ".partial".
        backbone: Folder or hub id of a masked language model; default: the recipe's or the bundled one.
        dev: Scored pairs (score, sentence, sentence), or a tab-separated file of them, to select on: the best
            evaluation is kept. "auto" holds out texts, ends a run that collapses, and keeps the best of a score without
            labels, which is not proof of a better model (`cse.training.held_out` has the evidence). By default, or with
            "none", nothing is selected, and the last step is kept.
        supervised: Whether `data` has tuples, or columns sent0, sent1 and hard_neg; default: yes for a list of tuples.
        column: The column of a table or `Dataset` that holds the texts; needed where there are several.
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
    _check(storage, precision, limit, called)
    repeated = chosen_recipe(method, None if recipe is None else read_recipe(str(recipe)))
    if not isinstance(data, str | Path) and is_items(data):
        data = list(data)
        supervised = bool(data) and isinstance(data[0], tuple | list) if supervised is None else supervised
    reports = list(report_to) if isinstance(report_to, list | tuple) else [report_to]
    options = JobOptions(Path(output), resume, overwrite, storage, precision, reports)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # tokenizers warn of it in every later fork of a notebook
    request = TrainRequest(
        repeated.name, data, BACKBONE, bool(supervised), None if dev == "none" else dev, column, limit, settings
    )
    with together():
        options.check()
        encoder, run = assemble(request, repeated, None if backbone is None else str(backbone), log.warning)
    return run_job(encoder, run, options, repeated, note=log.warning, callbacks=called, progress=progress)


def _check(storage: str | None, precision: str | None, limit: int | None, callbacks: Sequence[object]) -> None:
    for name, value, known in (
        ("storage", storage, [each.value for each in Storage]), ("precision", precision, PRECISIONS)
    ):  # fmt: skip
        if value is not None and value not in known:
            raise ValueError(f"{name} is {value!r}; choose from {', '.join(known)}")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ValueError(f"limit is {limit!r}; give a whole number of at least 1")
    for callback in callbacks:
        if not callable(callback):
            raise ValueError(f"callbacks: {callback!r:.60} cannot be called; give a function of one dict")


def _line(setting: Setting) -> str:
    """The name, type, bounds and help of a setting."""
    bounds = [f"{word} {bound}" for word, bound in (("at least", setting.least), ("at most", setting.most))
              if not math.isinf(bound)]  # fmt: skip
    return f"        {setting.name}: {', '.join([CALLED[setting.kind], *bounds])}. {setting.help}".rstrip()


def _documented(function: Callable[..., Any]) -> None:
    lines = "\n".join(map(_line, SETTINGS.values()))
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Settings:\n{lines}\n    "


_documented(train)
