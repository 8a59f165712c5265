"""The shipped scores of the models on a task, with intervals, and the papers' numbers; no model is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app import validation
from cse.app.charts import by_model, chart, tips
from cse.app.drawing.glossary import of_scores
from cse.app.drawing.terms import MEASURES
from cse.app.models.models import Failure, free_name, trained_numbers
from cse.app.models.naming import BEFORE, title
from cse.app.result import Result, choice, records
from cse.errors import as_called, command_line
from cse.evaluation.ledger import shipped_ledger
from cse.evaluation.tasks import TASKS, find_task
from cse.methods.catalogue import UNTRAINED as READINGS
from cse.models.names import BACKBONE, START

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.app.state.app_state import AppState
    from cse.evaluation.results import ScoreColumn
    from cse.evaluation.scoreboard import Figure, Row, Scoreboard

SIZES = ("pairs", "queries", "documents")
SMALL = 10.0  # smaller figures are not percentages
MARKS = {"best": "best", "alike": "not significantly different from the best"}


@dataclass(frozen=True)
class Scores(Result):
    """The shipped scores of the models on a task."""

    key = "scores"
    title = "Scores of the bundled models"
    summary = "The models' shipped scores on a task, a record for each set and measure; no model is run."
    words = ("significance",)
    reads_corpus = False
    separable = False
    ships = False  # it is at once there
    lane = "none"
    plots = 1

    task: str = choice(
        "Task", "sts", "The task", "sts, transfer, few-shot, clustering, retrieval or geometry.",
        [(find_task(name).title, name) for name in TASKS],
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each model and column of the board: the score with its 95 % interval, and the one before.

        `mark` is "best", "alike" (not significantly different from the best) or "", `apart` says that the best one is
        significantly so. `low` and `high` are empty where a single run leaves the noise unknown. Where the visitor has
        chosen some of the models, other ones and untrained readings are left out.
        """
        board = board_of(session.state, self.task)
        names, asked = names_of(board, session.state.models.columns), {column.name for column in session.columns}
        own = {column.name for column in session.state.models.columns}
        missing = unscored(board, [column for column in session.columns if not column.name.endswith(BEFORE)])
        if missing:
            listed, command = ", ".join(title(column.name) for column in missing), scoring_command(self.task, missing)
            session.notes.append(f"No shipped scores of {listed}. To score them: {command}")
        ordered = sorted(board.rows.items(), key=partial(rank, board))
        rows = []
        for number in range(len(board.columns)):
            for label, row in ordered:
                name = names[label]
                told = {**row_of(board, label, row, name), **figure_of(board, label, row, number)}
                if name in asked or (name not in own and own <= asked):
                    rows.append(told)
                start = f"{name}{BEFORE}"
                if start in asked and told["before"] is not None:
                    alone = {"deviation": None, "runs": 0, "low": None, "high": None, "before": None, "mark": ""}
                    rows.append({**told, "model": start, "value": told["before"], "trained": 0, **alone})
        rows = [row for row in rows if row["value"] is not None]
        return pd.DataFrame(rows)

    def says(self, frame: pd.DataFrame) -> str:
        """Return which model is best in the first column, and whether its lead is more than noise."""
        rows = frame[frame["column"] == frame["column"].iloc[0]]
        best, alike = (rows.loc[rows["mark"] == mark, "model"].map(title).tolist() for mark in ("best", "alike"))
        who = f"{' and '.join(best)} {'is' if len(best) == 1 else 'are'} best by {rows['column'].iloc[0]}"
        if not best:
            return ""
        if alike:
            return f"{who}; {', '.join(alike)} {'does' if len(alike) == 1 else 'do'} not differ significantly."
        return f"{who}, significantly." if rows["apart"].any() else f"{who}; whether by more than noise is not known."

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the scores by column with their intervals, where all columns have one unit and higher is better."""
        units = frame["unit"].unique()
        if len(units) != 1 or frame["lower_is_better"].any():
            return []
        strongest = frame.loc[frame["untrained"] != "", "model"].head(1).tolist()
        shown = frame[(frame["untrained"] == "") | frame["model"].isin(strongest)]
        names = list(shown["model"].unique())
        measures = frame["measure"].unique()
        unit = f"{measures[0]} {units[0]}".strip() if len(measures) == 1 else units[0]
        score: dict[str, Any] = {"type": "quantitative", "scale": {"zero": False}, "title": unit}
        told = tips(model="Model", column="Set", value="Score#", low="from#", high="to#")
        across: dict[str, Any] = {
            "y": {"field": "column", "type": "nominal", "sort": None, "title": None},
            "yOffset": {"field": "model", "sort": None}, "color": by_model(names),
        }  # fmt: skip
        layers = [
            {"mark": {"type": "rule", "strokeWidth": 2},
             "encoding": {**across, "x": {**score, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 60},
             "encoding": {**across, "x": {**score, "field": "value"}, "tooltip": told}},
        ]  # fmt: skip
        height = 11 * len(names) * frame["column"].nunique() + 40
        return [chart(shown, "Scores of each model by set, with 95 % intervals", height=height, layer=layers)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the table: a row per model by its first score, a cell per column."""
        columns = frame.drop_duplicates("column")[["column", "measure", "unit", "lower_is_better", "score"]]
        rows = []
        for name, own in frame.groupby("model", sort=False):
            cells = {row["column"]: row for row in own.to_dict("records")}
            rows.append({"model": name, **own.iloc[0], "cells": [cells.get(column) for column in columns["column"]]})
        digits = {
            column: 3 if (values["value"].abs() < SMALL).all() else 2 for column, values in frame.groupby("column")
        }
        first = frame.iloc[0]
        return {
            "columns": columns.to_dict("records"), "lines": rows, "digits": digits, "marks": MARKS,
            "terms": of_scores(columns["score"]), "about": first["about"], "verdicts": verdicts(frame),
            "protocol": first["protocol"],
            "command": first["command"], "start": START,
        }  # fmt: skip

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a line per model; a score is bold where it is the best one, significantly."""
        frame = frame.assign(cell=[cell(row) for row in frame.to_dict("records")], model=frame["model"].map(title))
        order = list(dict.fromkeys(frame["column"]))
        wide = frame.pivot(index="model", columns="column", values="cell")[order]
        return wide.loc[list(dict.fromkeys(frame["model"]))].fillna("").reset_index()

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the task's records by model."""
        told = frame.drop(columns=["about", "protocol", "command"])
        models = {name: records(rows.drop(columns="model")) for name, rows in told.groupby("model", sort=False)}
        return {"task": self.task, "summary": find_task(self.task).summary, "models": models}


def cell(row: Mapping[str, Any]) -> str:
    """Return a score with its deviation as papers print it."""
    value = f"{row['value']:.3f}" if abs(row["value"]) < SMALL else f"{row['value']:.2f}"
    spread = "" if row["deviation"] != row["deviation"] or row["deviation"] is None else f" ± {row['deviation']:.2f}"
    bold = "**" if row["mark"] == "best" and row["apart"] else ""
    return f"{bold}{value}{bold}{spread}"


def verdicts(frame: pd.DataFrame) -> str:
    """Return which models are best by column, by the noise of their lead."""
    found: dict[str, list[str]] = {"Significantly best": [], "Best, significance not tested": [], "Level": []}
    for column, rows in frame.groupby("column", sort=False):
        best, alike = (rows.loc[rows["mark"] == mark, "model"].map(title).tolist() for mark in ("best", "alike"))
        if not best:
            continue
        kind = "Level" if alike else "Significantly best" if rows["apart"].any() else "Best, significance not tested"
        found[kind].append(f"{' and '.join(best)}{' ≈ ' + ', '.join(alike) if alike else ''} ({column})")
    return " ".join(f"{kind}: {merged(phrases)}." for kind, phrases in found.items() if phrases)


def merged(phrases: Sequence[str]) -> str:
    """Return phrases "who (where)" with the places of the same models together."""
    places: dict[str, list[str]] = {}
    for phrase in phrases:
        who, _, where = phrase.rpartition(" (")
        places.setdefault(who, []).append(where.removesuffix(")"))
    return "; ".join(f"{who} ({', '.join(where)})" for who, where in places.items())


def board_of(state: AppState, task: str) -> Scoreboard:
    """Return a task's scoreboard. Raises ValueError for an unknown task, or if the results cannot be read."""
    if isinstance(state.boards, Failure):
        raise ValueError(state.boards.reason)
    return state.boards[validation.one_of(task, "The task", state.boards)]


def opened_by(row: Row) -> tuple[str, str | None, str | None]:
    """Return the name, pooling and family of a row's model, as `Column.opened_by`."""
    return row.record.model, row.pooling, row.record.family


def names_of(board: Scoreboard, columns: Sequence[Column]) -> dict[str, str]:
    """Return the names of a board's models by label: those of the page's columns, and readings of the backbone."""
    known = {column.opened_by: column.name for column in columns}
    taken = [column.name for column in columns]
    return {
        label: known.get(opened_by(row))
        or (f"untrained ({row.pooling})" if row.pooling and row.record.model == BACKBONE else None)
        or free_name((label, f"shipped {label}"), taken)
        for label, row in board.rows.items()
    }


def unscored(board: Scoreboard, columns: Sequence[Column]) -> list[Column]:
    """Return the columns without a row in a board."""
    scored = {opened_by(row) for row in board.rows.values()}
    return [column for column in columns if column.opened_by not in scored]


def scoring_command(task: str, columns: Sequence[Column]) -> str:
    """Return the command that scores the columns on a task."""
    words = [task]
    for option in ("model", "pooling", "family"):
        given = dict.fromkeys(getattr(column, option) for column in columns)
        words += [word for value in given if value for word in (f"--{option}", value)]
    return command_line("evaluate", *words, "--data", task)


def rank(board: Scoreboard, item: tuple[str, Row]) -> float:
    """Return the place of a row in the order of the table: the better in the first column the earlier."""
    figure = item[1].figures[0]
    if figure is None:
        return float("inf")
    return figure.value if board.columns[0].score in board.task.lower else -figure.value


def row_of(board: Scoreboard, label: str, row: Row, name: str) -> dict[str, Any]:
    """Return what all rows of a model say: its seeds, the reading of an untrained one, and what was trained."""
    return {
        "model": name, "untrained": READINGS[row.pooling].summary if row.pooling else "",
        "seeds": ", ".join(map(str, row.seeds)), "strongest": label == board.strongest,
        "trained": trained_numbers(row.record.model), "about": board.task.summary,
        "protocol": " ".join(protocol_lines(board)), "command": as_called(board.results.command),
    }  # fmt: skip


def figure_of(board: Scoreboard, label: str, row: Row, number: int) -> dict[str, Any]:
    """Return a model's figure in a column of the board."""
    column, verdict, figure = board.columns[number], board.verdicts[number], row.figures[number]
    before = row.start[number] if row.start else None
    name, measure, unit = heading(board, column)
    low, high = interval(figure)
    return {
        "column": name, "measure": measure, "unit": unit, "score": column.score,
        "value": None if figure is None else figure.value, "deviation": figure and figure.deviation,
        "runs": figure.count if figure else 0, "low": low, "high": high, "before": before and before.value,
        "mark": "best" if label in verdict.best else "alike" if label in verdict.alike else "",
        "apart": bool(verdict.apart) and not verdict.alike and len(verdict.best) == 1,
        "lower_is_better": column.score in board.task.lower,
    }  # fmt: skip


def interval(figure: Figure | None) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a mean of several runs by Student's t; None and None for a single run."""
    if figure is None or figure.deviation is None or figure.count < 2:
        return None, None
    from scipy.special import stdtrit  # not scipy.stats, whose import takes longer than all else here

    half = float(stdtrit(figure.count - 1, 0.975)) * figure.deviation / figure.count**0.5
    return figure.value - half, figure.value + half


def heading(board: Scoreboard, column: ScoreColumn) -> tuple[str, str, str]:
    """Return the name of a column, which is unique in its board, its measure, and the unit."""
    measure, unit = MEASURES.get(column.score, (column.score, ""))
    if not board.task.unit_headings:
        return measure, "", unit
    alone = [each.unit for each in board.columns].count(column.unit) == 1
    return (column.unit if alone else f"{column.unit} {measure}"), measure, unit


def protocol_lines(board: Scoreboard) -> list[str]:
    """Return sentences about the figures: runs, sets, options, date and data digest."""
    from cse.evaluation.results import warnings

    known, protocol = board.results.models, board.results.protocol
    dates = " and ".join(dict.fromkeys(record.date or "an unknown day" for record in known.values()))
    extras = {
        "texts end in a full stop": protocol.final_period, "texts as SentEval tokenised them": protocol.tokenised,
        f"classifier: {protocol.classifier}": "classifier" in board.task.options,
    }  # fmt: skip
    options = "; ".join(text for text, given in extras.items() if given)
    lines = [runs_line(board), f"Sets: {', '.join(sets(board))}." if board.task.unit_headings else "", options]
    lines += [f"Scored {dates}, data digest {protocol.data}.", *warnings(board.task, known)]
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


@dataclass(frozen=True)
class Ledger(Result):
    """What the papers published beside what the bundled models obtained."""

    key = "ledger"
    title = "The papers' numbers beside them"
    summary = "Published scores and those of the bundled models, from the shipped results; no model is run."
    reads_corpus = False
    separable = False
    ships = False
    lane = "none"

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each published average that a bundled model has a counterpart of."""
        if isinstance(session.state.boards, Failure):
            raise ValueError(session.state.boards.reason)
        entries = [entry for board in session.state.boards.values() for entry in shipped_ledger(board)]
        rows = []
        for entry in entries:
            own = entry.comparison
            rows.append({
                "row": entry.row, "task": entry.task, "published": entry.published,
                "published_deviation": entry.published_deviation, "published_on": entry.published_on,
                "obtained": own and own.mean, "obtained_deviation": own and own.deviation,
                "difference": own and own.difference, "verdict": (own and own.verdict) or "",
                "on": entry.backbone, "seeds": ", ".join(map(str, entry.seeds)), "note": entry.note or "",
                "remarks": entry.source,
            })  # fmt: skip
        return pd.DataFrame(rows)

    def says(self, frame: pd.DataFrame) -> str:
        """Return how many averages differ, and why a gap is expected."""
        apart = int((frame["verdict"] == "a difference").sum())
        return (
            f"{apart} of {len(frame)} published averages differ from those obtained here by more than noise. The "
            "papers' backbone is far larger, so a gap is expected; the command reproduce tries any backbone."
        )

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the scores of the table."""
        return frame[["row", "published", "obtained", "difference", "verdict"]]

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the records."""
        return records(frame)
