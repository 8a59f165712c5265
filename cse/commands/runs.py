"""List the training runs and adaptations below a folder, compare their settings, draw their curves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cse.commands import cli
from cse.errors import command_line

if TYPE_CHECKING:
    from cse.adaptation.workspace import AdaptationRecord
    from cse.training.listing import RunRecord

COLUMNS = ("run", "state", "method", "data", "scored on", "start", "best", "gain", "steps", "time")
ADAPTATION_COLUMNS = ("adaptation", "state", "data", "grouping", "finding", "time", "verdict")
CELL_WIDTH = 60  # characters of a cell


def main(
    folder: Path = typer.Argument(..., help="A folder of runs of train and adapt, at any depth."),
    compare: tuple[Path, Path] | None = cli.option(
        "Compare the settings of two runs, by name or folder.", metavar="A B"
    ),
    plot: Path | None = cli.option("Draw losses and dev scores to a .png or .svg file.", metavar="FILE"),
    json_output: bool = cli.flag("Print the runs as JSON."),
) -> None:
    """List the runs below FOLDER: dev scores at the start and at best, the gain, steps and time of training.

    Scores on pairs are Spearman x 100; those on held-out texts are no proof of a better model. Adaptations have
    their two axes, of start and result, and their verdict.

    Example: cse runs runs --plot curves.svg

    Example: cse runs runs --compare first second
    """
    from cse.adaptation.workspace import list_adaptations
    from cse.training.listing import list_runs, read_run

    if plot is not None and plot.suffix.lower() not in (".png", ".svg"):
        raise typer.BadParameter(f"--plot is {str(plot)!r}; give a file name that ends in .png or .svg")
    if compare:  # by their names below the folder, or else as folders
        paths = [folder / name if (folder / name).is_dir() else name for name in compare]
        runs = [read_run(path, str(name)) for path, name in zip(paths, compare, strict=True)]
    else:
        runs = list_runs(folder)
    adaptations = [] if compare else list_adaptations(folder)
    inside = {run.name for run in runs for record in adaptations if record.path in (run.path, *run.path.parents)}
    runs = [run for run in runs if run.name not in inside]
    if not runs and not adaptations:
        cli.log(f"no runs of {command_line('train')} or {command_line('adapt')} below {folder}")
    _print(runs, adaptations, compare is not None, json_output)
    problems = {record.name: record.problem for record in runs} | {one.name: one.problem for one in adaptations}
    for name, problem in problems.items():
        if problem:
            cli.log(f"{name}: {problem}")
    if plot is not None:
        from cse.evaluation.figures import training_curves

        logs = {run.name: run.log for run in runs if run.log}
        if not logs:
            raise ValueError("no run has a log to draw; train one, or leave out `plot`")
        starts = {run.name: run.dev["start"] for run in runs if run.dev.get("start") is not None}
        cli.log(f"wrote {training_curves(logs, starts, plot, 'Training runs')}")


def _print(
    runs: Sequence[RunRecord], adaptations: Sequence[AdaptationRecord], compared: bool, json_output: bool
) -> None:
    from cse.training.listing import differences

    if json_output:
        shown = [run.to_json() for run in runs] + [record.to_json() for record in adaptations]
        if not compared:
            shown.sort(key=lambda record: str(record["path"]))
        cli.print_json({"runs": shown, "differences": differences(*runs)} if compared else shown)
        return
    if runs:
        _print_table([COLUMNS, *map(_cells, runs)])
    if adaptations:
        if runs:
            typer.echo("")
        _print_table([ADAPTATION_COLUMNS, *map(_adaptation_cells, adaptations)])
    if compared:
        rows = [(name, *map(_shown, pair)) for name, pair in differences(*runs).items()]
        typer.echo("" if rows else "\nthe same settings")
        _print_table([("setting", *(run.name for run in runs)), *rows] if rows else [])


def _cells(run: RunRecord) -> tuple[str, ...]:
    values = run.to_json()
    method = f"{values['method']} supervised" if run.settings.get("method.supervised") else values["method"]
    scores = [None if values[name] is None else f"{values[name]:.2f}" for name in ("start", "best")]
    gain = None if run.gain is None else f"{run.gain:+.2f}"
    time = _time(run.seconds)
    return tuple(
        map(_shown, (run.name, run.state.value, method, values["data"], run.scored_on, *scores, gain, run.steps, time))
    )


def _adaptation_cells(record: AdaptationRecord) -> tuple[str, ...]:
    values = record.to_json()
    axes = [
        None if scores is None else f"{scores['start']:.1f} -> {scores['result']:.1f}"
        for scores in (values["grouping"], values["finding"])
    ]
    cells = map(_shown, (record.name, record.state.value, values["data"], *axes, _time(values["seconds"])))
    return *cells, str(values["verdict"] or "-")  # the whole sentence, last in its line


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else str(timedelta(seconds=round(seconds)))


def _shown(value: Any) -> str:
    return cli.shortened("-" if value is None else value if isinstance(value, str) else json.dumps(value), CELL_WIDTH)


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


app = cli.command(main)
