"""Scoreboards in words and as JSON: names, protocol, verdicts, and the command for models without results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cse.app import validation
from cse.app.drawing.terms import MEASURES
from cse.app.models.columns import Column, free_name
from cse.app.models.models import Failure
from cse.app.state.app_state import AppState
from cse.app.state.records import record_of
from cse.errors import command_line

if TYPE_CHECKING:
    from cse.evaluation.results import ScoreColumn
    from cse.evaluation.scoreboard import Row, Scoreboard

SIZES = ("pairs", "queries", "documents")
Names = dict[str, str]  # the page's name of the model of each label


def board_of(state: AppState, task: str) -> Scoreboard:
    """Return a task's scoreboard. Raises ValueError for an unknown task, or if the results cannot be read."""
    if isinstance(state.boards, Failure):
        raise ValueError(state.boards.reason)
    return state.boards[validation.one_of(task, "The task", state.boards)]


def names_of(board: Scoreboard, columns: Sequence[Column]) -> Names:
    """Return the names of a board's models: those of the page's columns, and the labels of others."""
    known = {column.opened_by: column.name for column in columns}
    taken = [column.name for column in columns]
    return {
        label: known.get(opened_by(row)) or free_name((label, f"shipped {label}"), taken)
        for label, row in board.rows.items()
    }


def opened_by(row: Row) -> tuple[str, str | None, str | None]:
    """Return the name, pooling and family of a row's model, as `Column.opened_by`."""
    return row.record.model, row.pooling, row.record.family


def unscored(boards: dict[str, Scoreboard], columns: Sequence[Column]) -> list[Column]:
    """Return the columns without a row in any board."""
    scored = {opened_by(row) for board in boards.values() for row in board.rows.values()}
    return [column for column in columns if column.opened_by not in scored]


def scoring_command(task: str, columns: Sequence[Column]) -> str:
    """Return the command that scores the columns on a task."""
    words = [task]
    for option in ("model", "pooling", "family"):
        given = dict.fromkeys(getattr(column, option) for column in columns)
        words += [word for value in given if value for word in (f"--{option}", value)]
    return command_line("evaluate", *words, "--data", task)


def plain_board(board: Scoreboard, names: Names) -> dict[str, Any]:
    """Return a board as JSON values."""
    columns = [
        {
            "unit": column.unit, "score": column.score, "lower_is_better": column.score in board.task.lower,
            "best": [names[label] for label in verdict.best],
            "inside_the_noise": [names[label] for label in verdict.alike],
        }
        for column, verdict in zip(board.columns, board.verdicts, strict=True)
    ]  # fmt: skip
    models = {names[label]: plain_row(row) for label, row in board.rows.items()}
    protocol = " ".join(protocol_lines(board))
    return {"task": board.task.name, "summary": board.task.summary, "protocol": protocol, "columns": columns} | {
        "models": models
    }


def plain_row(row: Row) -> dict[str, Any]:
    """Return a row as JSON values: a figure per column, also before training, seeds, pooling of an untrained model.

    `trained_parameters` is None if the model's folder is not here.
    """
    figures, before = (
        [figure and {"value": figure.value, "deviation": figure.deviation, "runs": figure.count} for figure in each]
        for each in (row.figures, row.start)
    )
    return {
        "figures": figures, "before_training": before, "seeds": list(row.seeds), "untrained": row.pooling,
        "shipped_seed": row.record.seed, "trained_parameters": record_of(row.record.model).trained,
    }  # fmt: skip


def protocol_lines(board: Scoreboard) -> list[str]:
    """Return sentences about the figures: runs, sets, options, date and data digest."""
    from cse.evaluation.results import warnings

    records, protocol = board.results.models, board.results.protocol
    dates = " and ".join(dict.fromkeys(record.date or "an unknown day" for record in records.values()))
    extras = {
        "texts end in a full stop": protocol.final_period, "texts as SentEval tokenised them": protocol.tokenised,
        f"classifier: {protocol.classifier}": "classifier" in board.task.options,
    }  # fmt: skip
    options = "; ".join(text for text, given in extras.items() if given)
    lines = [runs_line(board), f"Sets: {', '.join(sets(board))}." if board.task.unit_headings else "", options]
    lines += [f"Scored {dates}, data digest {protocol.data}.", *warnings(board.task, records)]
    return [f"{line[:1].upper()}{line[1:].rstrip('.')}." for line in lines if line]


def runs_line(board: Scoreboard) -> str:
    """Return a sentence about the runs that ± covers."""
    seeds = dict.fromkeys(row.seeds for row in board.rows.values() if len(row.seeds) > 1)
    if seeds:
        listed = "; ".join(", ".join(map(str, each)) for each in seeds)
        return f"Trained models: mean ± standard deviation over the training seeds {listed}; untrained ones have none."
    if repeats := board.task.repeats:
        return f"± is the standard deviation over {repeats.count} {repeats.what}; one checkpoint each."
    return "One run of one checkpoint each: how much another seed would change is not known."


def sets(board: Scoreboard) -> list[str]:
    """Return the sets, with their sizes if the results have them."""
    found = {}
    for record in board.results.models.values():
        for unit, scores in record.scores.items():
            sizes = ", ".join(f"{scores[size]:,} {size}" for size in SIZES if size in scores)
            found[unit] = f"{unit} ({sizes})" if sizes else unit
    return list(found.values())


def heading(board: Scoreboard, column: ScoreColumn) -> tuple[str, str]:
    """Return a column's heading, the set or the score, and the line beneath it, the score and its unit."""
    name, unit = MEASURES.get(column.score, (column.score, ""))
    lower = ", lower is better" if column.score in board.task.lower else ""
    if board.task.unit_headings:
        return column.unit, f"{name}{',' if unit == '%' else ''} {unit}{lower}".strip()
    return name, f"{unit}{lower}"


def column_phrase(board: Scoreboard, column: ScoreColumn) -> str:
    """Return a column's name in a sentence: its set, and the score if the set has several."""
    name, _ = MEASURES.get(column.score, (column.score, ""))
    if not board.task.unit_headings:
        return name
    return column.unit if [each.unit for each in board.columns].count(column.unit) == 1 else f"{column.unit} {name}"


def verdicts(board: Scoreboard, names: Names) -> dict[str, str]:
    """Return sentences about the best models by column, by the noise of their lead; empty groups are left out."""
    ahead: dict[str, dict[str, list[str]]] = {"Significantly best": {}, "Best score; significance not tested": {}}
    certain, uncertain = ahead.values()
    alike = []
    for column, verdict in zip(board.columns, board.verdicts, strict=True):
        best = " and ".join(names[label] for label in verdict.best)
        if not verdict.alike:
            (certain if verdict.apart else uncertain).setdefault(best, []).append(column_phrase(board, column))
            continue
        others = ", ".join(names[label] for label in verdict.alike)
        every = len(verdict.best) + len(verdict.alike) == len(board.rows)
        alike.append(f"{column_phrase(board, column)} ({'all models' if every else f'{best} ≈ {others}'})")
    found = {
        what: [f"{name} ({', '.join(columns)})" for name, columns in groups.items()] for what, groups in ahead.items()
    }
    return {what: "; ".join(texts) for what, texts in {**found, "No significant difference": alike}.items() if texts}
