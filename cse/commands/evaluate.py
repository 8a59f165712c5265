"""Score models on evaluation tasks."""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cse.commands import cli
from cse.evaluation.tasks import TASKS, find_task

if TYPE_CHECKING:
    import numpy as np

    from cse.evaluation.results import ModelRecord, Results
    from cse.evaluation.tasks import Task


MODELS, SCORING, RESULTS = "Models", "Data and scoring", "Results"


def main(
    task: str = typer.Argument(..., help=f"{', '.join(TASKS)}.", **cli.choices("task", TASKS)),
    model: list[str] = cli.model_option(
        "A model or word vectors; repeatable; published: all published ids.", default=..., panel=MODELS
    ),
    data: Path = cli.option(
        "The task's folder (docs/evaluation.md); `hub` downloads STS or transfer.", default=..., panel=SCORING
    ),
    pooling: list[str] | None = cli.option(
        f"{cli.POOLING[:-1]}, top-tokens, top-tokens-denoised; repeatable.", panel=MODELS
    ),
    family: str | None = cli.option(f"{cli.FAMILY} For every model not trained here.", panel=MODELS),
    postprocess: str | None = cli.option("whitening, fitted on --fit.", panel=MODELS),
    fit: Path | None = cli.option("Sentences for --postprocess; the first 20,000.", panel=MODELS),
    backend: str = cli.option(cli.BACKEND, default="auto", panel=MODELS),
    bare: bool = cli.flag("Read checkpoints without head and denoising.", panel=MODELS),
    start: bool = cli.flag("Score each checkpoint's own start too: before training.", panel=MODELS),
    details: bool = cli.flag("sts: Pearson and every subset too.", panel=SCORING),
    tokenised: Path | None = cli.option("sts, geometry: folder with SentEval's tokenised text.", panel=SCORING),
    sentences: Path | None = cli.option("geometry: text for the anisotropy instead of STS-B test's.", panel=SCORING),
    classifier: str | None = cli.option(
        "transfer: logistic (the default), or senteval for SentEval's own.", panel=SCORING
    ),
    store: str | None = cli.option("retrieval: search in a temporary milvus://HOST:PORT/COLLECTION.", panel=SCORING),
    smooth: int = cli.option(
        "retrieval: mix documents with their K nearest, as build_index.", default=0, panel=SCORING, min=0
    ),
    expand: int | None = cli.option(
        "retrieval: mix queries with their K nearest; default: as --smooth.", panel=SCORING, min=0
    ),
    final_period: bool = cli.flag("Append PromptBERT's final full stop.", panel=SCORING),
    compare: bool = cli.flag(
        "sts: paired bootstrap of the first model against the others and each --start.", panel=SCORING
    ),
    figures: Path | None = cli.option("few-shot, geometry: folder for the figures.", panel=RESULTS),
    batch_size: int = cli.option("Sentences in one pass of a model.", default=128, panel=MODELS, min=1),
    json_output: str | None = cli.option(
        "Results file, saved by sets and continued; - prints it.", "--json", panel=RESULTS
    ),
    overwrite: bool = cli.flag("Start a new results file.", panel=RESULTS),
) -> None:
    """Score models on a task and print a table, with published scores where there are any.

    Example: cse evaluate sts --model promptbert --model simcse --data STS_FOLDER --start --compare
    """
    from cse.evaluation.harness import Evaluation, ModelSelection
    from cse.evaluation.tasks import LOGISTIC, TaskData, fetch

    options = {
        "compare": compare, "details": details, "tokenised": tokenised, "sentences": sentences, "figures": figures,
        "final_period": final_period, "classifier": classifier, "store": store, "smooth": smooth, "expand": expand,
    }  # fmt: skip
    _check_options(task, [name for name, value in options.items() if value])
    expand = smooth if expand is None else expand
    if store is not None:
        from index.stores import store_of

        if "://" not in store:
            raise typer.BadParameter(f"--store {store}: is no address; give milvus://HOST:PORT/COLLECTION")
        if smooth or expand:
            raise typer.BadParameter("--smooth and --expand search in FAISS; leave out --store")
        store_of(store).check_free(store)
    if str(data) == "hub" and not data.exists():
        data = fetch(task)
    search = partial(_index_search, store=store, smooth=smooth, expand=expand)
    task_data = TaskData(
        data, tokenised, details, sentences, search, classifier=classifier or LOGISTIC, smooth=smooth, expand=expand
    )
    failures: dict[str, Exception] = {}
    evaluation = Evaluation(
        find_task(task), task_data,
        ModelSelection(model, pooling or (), postprocess, fit, family, bare, backend, start),
        Path(json_output) if json_output not in (None, "-") else None, cli.log, partial(_note, failures),
        batch_size, final_period, compare, keep_points=figures is not None, progress=sys.stderr.isatty(),
    )  # fmt: skip
    called = shlex.join(["cse", "evaluate", *sys.argv[2 if sys.argv[1:2] == ["evaluate"] else 1 :]])
    results = evaluation.results(called, overwrite)
    models = evaluation.run(results)
    if models:
        _show(evaluation.task, models, results, json_output, figures)
    if failures:
        if models:
            cli.log(f"failed: {', '.join(failures)}; everything else is scored")
        raise next(iter(failures.values()))


def _show(
    task: Task, models: Mapping[str, ModelRecord], results: Results, json_output: str | None, figures: Path | None
) -> None:
    from cse.evaluation.results import seed_lines, table, warnings

    if json_output == "-":
        cli.print_json(results.to_json())
    else:
        for line in warnings(task, models):
            cli.log(line)
        typer.echo("\n".join([*table(task, models), *seed_lines(task, models), *results.comparisons]))
    if figures:
        from cse.evaluation.figures import draw

        for figure in draw(task, models, figures):
            cli.log(f"wrote {figure}")


def _note(failures: dict[str, Exception], name: str, error: Exception) -> None:
    """Log a failure once, and keep the error without its frames, which hold a whole model."""
    traceback.clear_frames(error.__traceback__)
    if name not in failures:
        cli.log(f"{name} failed: {' '.join(str(error).split())}")
        failures[name] = error


def _check_options(task: str, names: list[str]) -> None:
    """Raise a usage error for the first given option that the task lacks, naming the tasks that have it."""
    for name in names:
        if name not in find_task(task).options:
            flag, *names = (
                f"--{name.replace('_', '-')}",
                *(other for other in TASKS if name in find_task(other).options),
            )
            having = f"the {names[0]} task" if len(names) == 1 else f"the tasks {', '.join(names)}"
            raise typer.BadParameter(f"{flag}: only for {having}, not for {task}")


def _index_search(
    corpus: np.ndarray, queries: np.ndarray, k: int, *, store: str | None, smooth: int, expand: int
) -> np.ndarray:
    """Rows (q, k) of the corpus nearest to each query, found with an exact temporary index.

    The index is in a temporary folder, or in the new collection `store`. `smooth` and `expand` are `VectorIndex`'s.
    """
    from index import BuildSettings
    from index.stores import store_of

    batches = [([str(row) for row in range(len(corpus))], corpus)]
    with store_of(store or Path()).temporary(batches, store, settings=BuildSettings(smooth=smooth)) as index:
        return index.search(queries, k, expand=expand)[1]


app = cli.command(main)
