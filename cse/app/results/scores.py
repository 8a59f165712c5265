"""What models reach: shipped scores with intervals, the papers' numbers, and scores on the labels of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app import validation
from cse.app.charts import by_model, chart, intervals, tips
from cse.app.corpus.corpora import FIELD
from cse.app.models.models import Column, Failure, checkpoint_of, free_name
from cse.app.models.naming import BEFORE, title
from cse.app.result import Result, by_models, choice, listed, stacked, titled
from cse.app.results.map import fitted_counts, fitted_notes
from cse.corpus.corpus import Corpus
from cse.errors import as_called, command_line
from cse.evaluation.clustering import label_scores, neighbour_values
from cse.evaluation.metrics import mean_difference
from cse.evaluation.reproduction import shipped_ledger
from cse.evaluation.results import AVERAGE
from cse.evaluation.tasks import TASKS, find_task
from cse.methods.catalogue import UNTRAINED as READINGS
from cse.models.names import BACKBONE, START, canonical_name

if TYPE_CHECKING:
    from cse.app.corpus.corpora import ChosenCorpus
    from cse.app.models.models import Opening
    from cse.app.state import AppState, Session
    from cse.evaluation.results import Row, Scoreboard, Verdict

MEASURES = {  # name and unit of each score
    "spearman": ("Spearman", "× 100"), "pearson": ("Pearson", "× 100"), "subset_mean": ("mean of subsets", "× 100"),
    "accuracy": ("accuracy", "%"), "f1": ("F1", "%"), "neighbours": ("neighbours", "%"), "purity": ("purity", "%"),
    "nmi": ("NMI", "× 100"), "ndcg@10": ("nDCG@10", "× 100"), "mrr@10": ("MRR@10", "× 100"),
    "recall@10": ("recall@10", "%"), "recall@100": ("recall@100", "%"), "anisotropy": ("anisotropy", "cosine"),
    "separation": ("separation", "cosine"), "alignment": ("alignment", "squared distance"),
    "uniformity": ("uniformity", "logarithm"), "K=0": ("K=0", "Spearman × 100"), "K=100": ("K=100", "Spearman × 100"),
}  # fmt: skip
TERMS = {  # those that explain a score
    "spearman": ("STS", "Spearman"), "K=0": ("STS",), "neighbours": ("label neighbours",), "purity": ("purity",),
    "nmi": ("NMI",), "ndcg@10": ("nDCG",), "anisotropy": ("anisotropy",), "alignment": ("alignment",),
    "uniformity": ("uniformity",),
}  # fmt: skip
HELD_OUT = "label neighbours, held out"  # in Clusters they are those of all texts
OF_LABELS = ("neighbours", "purity", "nmi", "ndcg@10")
MOST_LABELS = 200
FOLDER = "FOLDER"  # of a model, in a command
SMALL = 10.0  # smaller figures are not percentages
UNKNOWN = "whether by more than noise is not known"
MARKS = {"best": "best", "alike": "not significantly different from the best"}


@dataclass(frozen=True)
class Scores(Result):
    """The shipped scores of the models on a task."""

    key = "scores"
    title = "Scores of the bundled models"
    words = ("significance",)
    bold = "the best of a column, significantly (95 % interval of the difference, Welch's)"
    italics = "the best of a column, not known to be so significantly"
    reads_corpus = False
    ships = False  # it is at once there
    lane = "none"
    plots = 1
    chart_fold = "The scores as a chart"

    task: str = choice(
        "Task", "sts", "The task", "sts, transfer, few-shot, clustering, retrieval or geometry.",
        [(find_task(name).title, name) for name in TASKS],
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each model and column of the board: the score with its 95 % interval, and the one before.

        `mark` is "best", "alike" (not significantly different from the best) or "", `apart` says that the best one is
        significantly so, all among the models of the table. `low` and `high` are empty where a single run leaves the
        noise unknown. Where the visitor has chosen some of the models, the others are left out.
        `attrs` has the task's `about`, `protocol` and `command`.
        """
        board = board_of(session.state, self.task)
        names, asked = names_of(board, session.state.models.columns), {column.name for column in session.columns}
        own = {column.name for column in session.state.models.columns}
        scored = {opened_by(row) for row in board.rows.values()}
        missing = [
            column for column in session.columns
            if column.opened_by not in scored and not column.name.endswith(BEFORE)
        ]  # fmt: skip
        if missing:
            unscored, command = ", ".join(title(column.name) for column in missing), scoring_command(self.task, missing)
            first = "download the model under Your model first if it is yours, then: " if FOLDER in command else ""
            session.notes.append(f"No shipped scores of {unscored}. To score them: {first}{command}")

        def rank(label: str, start: bool = False) -> float:
            figure = (board.rows[label].start or [None])[0] if start else board.rows[label].figures[0]
            lower = board.columns[0].score in board.task.lower
            return float("inf") if figure is None else figure.value if lower else -figure.value

        rows, ranks = [], {f"{names[label]}{BEFORE}": rank(label, start=True) for label in board.rows}
        ranks |= {names[label]: rank(label) for label in board.rows}
        others = {label for label, name in names.items() if name not in own and own <= asked}
        shown = [label for label, row in board.rows.items() if row.pooling or label in others or names[label] in asked]
        for number in range(len(board.columns)):
            verdict = board.verdict(number, shown)
            of_column = []
            for label in board.rows:
                told, start = figure_of(board, label, number, verdict), f"{names[label]}{BEFORE}"
                if label in shown:
                    of_column.append({"model": names[label], **told})
                if start in asked and told["before"] is not None:
                    alone = {"deviation": None, "runs": 0, "low": None, "high": None, "before": None, "mark": "",
                             "apart": False, "seeds": ""}  # fmt: skip
                    of_column.append({"model": start, **told, "value": told["before"], "trained": 0, **alone})
            rows += sorted(of_column, key=lambda row: ranks[row["model"]])
        frame = pd.DataFrame([row for row in rows if row["value"] is not None])
        unknown = [column.name for column in session.columns if column.name.endswith(BEFORE)]
        if unknown := [name for name in unknown if name not in set(frame["model"])]:
            session.notes.append(f"No scores of {listed(unknown)} on this task.")
        same = repeated(frame)
        session.notes += [f"{title(name)} is {title(reading)}, whose row it has." for name, reading in same.items()]
        frame = frame[~frame["model"].isin(same)].reset_index(drop=True)
        frame.attrs = {"about": board.task.summary, "protocol": " ".join(protocol_lines(board)),
                       "command": as_called(board.results.command)}  # fmt: skip
        return frame

    def says(self, frame: pd.DataFrame) -> str:
        rows = frame[frame["column"] == frame["column"].iloc[0]]
        if len(rows) < len(frame) and rows["column"].iloc[0] != AVERAGE:  # one set of several says little
            best = frame[frame["mark"] == "best"].groupby("model", sort=False)["apart"].agg(["size", "sum"])
            parts = [
                f"{title(name)} in {count}" + (f" ({leads} significantly)" if leads else "")
                for name, count, leads in best.sort_values("size", ascending=False, kind="stable").itertuples()
            ]
            tested, lead = frame.groupby("column")["deviation"].any(), UNKNOWN
            if tested.any():
                lead = f"no lead is significant{'' if tested.all() else ' where noise is known'}"
            level = "" if best["sum"].any() else f"; {lead}"
            return f"Best of the {frame['column'].nunique()} columns: {', '.join(parts)}{level}." if parts else ""
        best, alike = (rows.loc[rows["mark"] == mark, "model"].map(title).tolist() for mark in ("best", "alike"))
        if not best:
            return ""
        who = f"{' and '.join(best)} {'is' if len(best) == 1 else 'are'} best by {rows['column'].iloc[0]}"
        if alike:
            return f"{who}; {', '.join(alike)} {'does' if len(alike) == 1 else 'do'} not differ significantly."
        others = rows[rows["mark"] != "best"].sort_values("value", ascending=rows["lower_is_better"].iloc[0])
        if len(best) == 1 and len(others):
            lead = abs(rows.loc[rows["mark"] == "best", "value"].iloc[0] - others["value"].iloc[0])
            who += f", {lead:.2f} ahead of {title(others['model'].iloc[0])}"
        return f"{who}, significantly." if rows["apart"].any() else f"{who}; {UNKNOWN}."

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        shown, units = charted(frame), frame["unit"].unique()
        if shown.empty:
            return []
        names = list(shown["model"].unique())
        measures = frame["measure"].unique()
        unit = f"{measures[0]} {units[0]}".strip() if len(measures) == 1 else units[0]
        rows = {"axis": {"grid": True, "tickBand": "extent"}, "scale": {"padding": 0}}
        across = {"y": {"field": "column", "type": "nominal", "sort": None, "title": None, **rows},
                  "yOffset": {"field": "model", "sort": names, "scale": {"paddingOuter": 1.5}},
                  "color": by_model(names)}  # fmt: skip
        told = tips(model="Model", column="Set", value="Score#", low="from#", high="to#")
        known = ", with 95 % intervals" if shown["low"].notna().any() else ""
        layers = intervals(across, "value", f"{unit}{known}", told)
        height = max(9 * len(names), 20) * frame["column"].nunique() + 40  # of eight models it fits a printed page
        return [chart(shown, f"Scores of each model by set{known}", height=height, layer=layers)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        columns, started = frame.drop_duplicates("column").to_dict("records"), set(frame["model"])
        rows = []
        for name, own in by_models(frame).items():
            cells = {row["column"]: row for row in own.to_dict("records")}
            if f"{name}{BEFORE}" in started:  # which has a line of its own
                cells = {column: {**row, "before": None} for column, row in cells.items()}
            rows.append({**own.iloc[0], "model": name, "cells": [cells.get(column["column"]) for column in columns]})
        digits = {
            column: 3 if (values["value"].abs() < SMALL).all() else 2 for column, values in frame.groupby("column")
        }
        return {
            "columns": columns, "lines": rows, "digits": digits, "marks": MARKS, **frame.attrs,
            "marked": {*frame["mark"]}, "apart": frame["apart"].any(),
            "begun": frame["before"].notna().any() or any(name.endswith(BEFORE) for name in started),
            "terms": dict.fromkeys(name for column in columns for name in TERMS.get(column["score"], ())),
            "start": START, "before": BEFORE, "left_out": 0 < len(charted(frame)) < len(frame),
        }  # fmt: skip

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        order = dict.fromkeys(name for model in frame["model"].unique() for name in (model, f"{model}{BEFORE}"))
        frame, cells = with_lines_before(frame), []
        frame = frame[~frame["model"].isin(repeated(frame))]
        for row in frame.to_dict("records"):
            value = f"{row['value']:.3f}" if abs(row["value"]) < SMALL else f"{row['value']:.2f}"
            spread = printed_deviation(row["deviation"])
            look = "" if row["mark"] != "best" else "**" if row["apart"] else "*"
            tied = "≈ " if row["mark"] == "alike" else ""
            cells.append(f"{tied}{look}{value}{look}{spread}")
        heads = frame["column"] + np.where(frame["lower_is_better"], " (lower is better)", "")
        shown = titled(frame).assign(cell=cells, column=heads)
        table = shown.pivot(index="model", columns="column", values="cell").fillna("")
        lines = [title(name) for name in order if name in set(frame["model"])]
        return table.loc[lines, shown["column"].unique()].reset_index()

    def facts(self, frame: pd.DataFrame) -> list[str]:
        tied = (
            ["≈: not significantly different from the best of the column."] if (frame["mark"] == "alike").any() else []
        )
        scales = ", ".join(dict.fromkeys(filter(None, (frame["measure"] + " " + frame["unit"]).str.strip())))
        scale = [f"Numbers: {scales}."] if scales else []
        alike = [
            f"{title(start)} is {title(reading)}." for start, reading in repeated(with_lines_before(frame)).items()
        ]
        return [frame.attrs["about"], *scale, frame.attrs["protocol"], *tied, *alike, START]


def with_lines_before(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with those of the models before training that have none on the page."""
    starts = frame[frame["before"].notna()]
    starts = starts.assign(model=starts["model"] + BEFORE, value=starts["before"], deviation=None, mark="")
    return pd.concat([frame, starts[~starts["model"].isin(frame["model"])]], ignore_index=True)


def repeated(frame: pd.DataFrame) -> dict[str, str]:
    """Return the models before training whose numbers are all those of an untrained reading beside them, with that."""
    scores = {name: dict(zip(rows["column"], rows["value"], strict=True)) for name, rows in by_models(frame).items()}
    readings = frame.loc[frame["untrained"] != "", "model"].unique()
    equal = {name: [one for one in readings if scores[one] == own] for name, own in scores.items()}
    return {name: found[0] for name, found in equal.items() if found and name.endswith(BEFORE)}


def charted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the chart of scores: of the untrained readings the strongest, and those that are best.

    It has none if the columns have several units, or lower is better in one of them.
    """
    if frame["unit"].nunique() != 1 or frame["lower_is_better"].any():
        return frame.iloc[:0]
    untrained = frame[frame["untrained"] != ""]
    strongest = {*untrained["model"].head(1), *untrained.loc[untrained["mark"] == "best", "model"]}
    return frame[(frame["untrained"] == "") | frame["model"].isin(strongest)]


def printed_deviation(deviation: float | None) -> str:
    """Return a deviation as papers print it after a score; "" for none."""
    return f" ± {deviation:.2f}" if deviation and deviation == deviation else ""


def board_of(state: AppState, task: str) -> Scoreboard:
    """Return a task's scoreboard. Raises ValueError for an unknown task, or if the results cannot be read."""
    if isinstance(state.boards, Failure):
        raise ValueError(state.boards.reason)
    return state.boards[validation.one_of(task, "The task", state.boards)]


def opened_by(row: Row) -> Opening:
    """Return what opens a row's model."""
    return Column("", row.record.model, row.pooling, row.record.family).opened_by


def names_of(board: Scoreboard, columns: Sequence[Column]) -> dict[str, str]:
    """Return the names of a board's models by label: those of the page's columns, and readings of the backbone."""
    known = {column.opened_by: column.name for column in columns if not column.name.endswith(BEFORE)}
    taken = [column.name for column in columns]
    return {
        label: known.get(opened_by(row))
        or (f"untrained ({row.pooling})" if row.pooling and row.record.model == BACKBONE else None)
        or free_name((label, f"shipped {label}"), taken)
        for label, row in board.rows.items()
    }


def scoring_command(task: str, columns: Sequence[Column]) -> str:
    """Return the command that scores the columns on a task, without paths of the server."""
    words = [task]
    for option in ("model", "pooling", "family"):
        raw = (getattr(column, option) for column in columns)
        values = dict.fromkeys(FOLDER if value and Path(value).is_absolute() else value for value in raw)
        words += [word for value in values if value for word in (f"--{option}", value)]
    return command_line("evaluate", *words, "--data", task)


def figure_of(board: Scoreboard, label: str, number: int, verdict: Verdict) -> dict[str, Any]:
    """Return a model's figure in a column of the board, whose name is unique, with its interval by Student's t."""
    row, column = board.rows[label], board.columns[number]
    figure, before, low, high = row.figures[number], row.start[number] if row.start else None, None, None
    if figure is not None and figure.deviation is not None and figure.count > 1:
        from scipy.special import stdtrit  # not scipy.stats, whose import takes longer than all else here

        half = float(stdtrit(figure.count - 1, 0.975)) * figure.deviation / figure.count**0.5
        low, high = figure.value - half, figure.value + half
    measure, unit = MEASURES.get(column.score, (column.score, ""))
    checkpoint = checkpoint_of(row.record.model)
    trained = 0 if canonical_name(row.record.model) == BACKBONE else checkpoint and checkpoint[1].learned_numbers
    name, of = measure, ""
    if board.task.unit_headings:
        alone = [other.unit for other in board.columns].count(column.unit) == 1
        name, of = column.unit if alone else f"{column.unit} {measure}", measure
    return {
        "untrained": READINGS[row.pooling].summary if row.pooling else "", "seeds": ", ".join(map(str, row.seeds)),
        "strongest": label == board.strongest, "trained": trained,
        "column": name, "measure": of, "unit": unit, "score": column.score,
        "value": None if figure is None else figure.value, "deviation": figure and figure.deviation,
        "runs": figure.count if figure else 0, "low": low, "high": high, "before": before and before.value,
        "mark": "best" if label in verdict.best else "alike" if label in verdict.alike else "",
        "apart": bool(verdict.apart) and not verdict.alike and len(verdict.best) == 1,
        "lower_is_better": column.score in board.task.lower,
    }  # fmt: skip


def protocol_lines(board: Scoreboard) -> list[str]:
    """Return sentences about the figures: what ± covers, their date, the data digest, and warnings."""
    from cse.evaluation.results import warnings

    known = board.results.models
    lines = ["One run of one checkpoint each: how much another seed would change is not known"]
    seeds = dict.fromkeys(", ".join(map(str, row.seeds)) for row in board.rows.values() if len(row.seeds) > 1)
    if seeds:
        of = f"over the training seeds {'; '.join(seeds)}; untrained ones have none"
        lines = [f"Trained models: mean ± standard deviation {of}"]
    elif repeats := board.task.repeats:
        lines = [f"± is the standard deviation over {repeats.count} {repeats.what}; one checkpoint each"]
    dates = " and ".join(dict.fromkeys(record.date or "an unknown day" for record in known.values()))
    lines += [f"Scored {dates}, data digest {board.results.protocol.data}", *warnings(board.task, known)]
    return [f"{line[:1].upper()}{line[1:].rstrip('.')}." for line in lines]


@dataclass(frozen=True)
class Ledger(Result):
    """What the papers published beside what the bundled models obtained."""

    key = "ledger"
    title = "The papers' numbers beside them"
    reads_corpus = False
    ships = False
    lane = "none"

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each published average that a bundled model has a counterpart of."""
        if isinstance(session.state.boards, Failure):
            raise ValueError(session.state.boards.reason)
        entries = [entry for board in session.state.boards.values() for entry in shipped_ledger(board)]
        return pd.DataFrame(
            {
                "row": entry.row, "task": entry.task, "published": entry.published,
                "published_deviation": entry.published_deviation, "published_on": entry.published_on,
                "obtained": entry.mean, "obtained_deviation": entry.deviation, "difference": entry.difference,
                "verdict": entry.verdict or "", "on": entry.backbone, "seeds": ", ".join(map(str, entry.seeds)),
                "note": entry.note or "", "remarks": entry.source,
            }
            for entry in entries
        )  # fmt: skip

    def says(self, frame: pd.DataFrame) -> str:
        return (
            "Averages of the seven STS sets, Spearman × 100. The papers' backbone is far larger, and the bundled one "
            "began from a model trained on labelled pairs: no difference here says which is better. The command "
            "reproduce tries any backbone."
        )

    def facts(self, frame: pd.DataFrame) -> list[str]:
        said = ("published_on", "on", "seeds")
        papers, backbones, seeds = ("; ".join(filter(None, frame[name].unique())) for name in said)
        return [f"Published on {papers}; obtained here on the {backbones} backbone, trained rows with seeds {seeds}.",
                self.says(frame)]  # fmt: skip

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        shown = frame[["row", "published", "obtained", "difference", "remarks"]].copy()
        for name in ("published", "obtained"):
            pairs = zip(frame[name].astype(float), frame[f"{name}_deviation"], strict=True)
            shown[name] = [
                f"{value:.2f}{printed_deviation(spread)}" if value == value else "" for value, spread in pairs
            ]
        shown["difference"] = [f"{gap:+.2f}" if gap == gap else "" for gap in frame["difference"].astype(float)]
        return shown


@dataclass(frozen=True)
class Labels(Result):
    """How well the models' vectors agree with the labels of the chosen corpus."""

    key = "labels"
    title = "Scores on the labels of your corpus"
    button = "Score the corpus"
    bold = "the best, significantly (95 % interval of the difference from each other model on the same texts)"
    words = tuple(name for score in OF_LABELS for name in TERMS[score])
    live = False
    ships = False
    lane = "maps"
    plots = 1
    chart_fold = "The intervals as a chart"

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model: the scores of the held-out texts, those that an adaptation holds out, too.

        So a model that was adapted to the corpus is scored on texts that it was not fitted on. They are encoded anew:
        vectors of a corpus may have length 1 or be of bfloat16, which k-means groups otherwise than `judge` does.
        `low` and `high` are the 95 % interval of `neighbours` by the bootstrap, `lead_low` and `lead_high` that of the
        lead of the first model on the same texts; `texts` and `labels` are what was scored, `fitted` how many of these
        texts the model was fitted on all the same, as by another way to hold texts out.
        """
        rows, labels = held_out(session.corpus)
        texts = [session.corpus.texts[row].strip() for row in rows]
        gold = np.unique(labels, return_inverse=True)[1]

        encoded = session.encoded(texts)
        values = {name: neighbour_values(vectors, gold) for name, vectors in encoded.items()}
        ordered = sorted(values, key=lambda name: -values[name].mean())

        def scores(name: str) -> dict[str, Any]:
            ends = mean_difference(values[name], np.zeros(len(rows)))
            lead = mean_difference(values[ordered[0]], values[name])
            return {**label_scores(encoded[name], labels), "low": ends.low, "high": ends.high, "lead_low": lead.low,
                    "lead_high": lead.high, "texts": len(rows), "labels": len(set(labels))}  # fmt: skip

        fitted = fitted_counts(session, texts)
        session.notes.extend(fitted_notes(fitted, texts, "scores are too good"))
        return stacked({name: {**scores(name), "fitted": fitted.get(name, 0)} for name in ordered})

    def says(self, frame: pd.DataFrame) -> str:
        best, first = frame.iloc[0], title(frame.iloc[0]["model"])
        near = [name for name in frame["model"].iloc[1:][frame["lead_low"].iloc[1:] <= 0]]
        held = "" if frame["fitted"].any() else " that nothing was fitted on"
        of = f"{best['texts']:,} texts{held}, with {best['labels']} labels"
        if len(frame) == 1:
            return f"{first}: {best['neighbours']:.1f} % of the five nearest have the text's label, on {of}."
        differ = f"{'does' if len(near) == 1 else 'do'} not differ significantly"
        level = f"; {listed(near)} {differ}" if near else ", significantly"
        return f"{first} has most neighbours of the same label, {best['neighbours']:.1f} %{level}. On {of}."

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        names = frame["model"].tolist()
        across = {"y": {"field": "model", "type": "nominal", "sort": None, "title": None},
                  "color": by_model(names, False)}  # fmt: skip
        told = tips(model="Model", neighbours="Neighbours#", low="from#", high="to#")
        layers = intervals(across, "neighbours", f"{HELD_OUT}, %", told)
        return [chart(frame, "Neighbours of the same label by model", height=26 * len(names) + 50, layer=layers)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        return {"measures": OF_LABELS, "terms": self.words, "first": HELD_OUT, "lines": frame.to_dict("records")}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        alone = len(frame) > 1 and bool((frame["lead_low"].iloc[1:] > 0).all())
        near = [f"{value:.1f}" for value in frame["neighbours"]]
        near[0] = f"**{near[0]}**" if alone else near[0]
        ends = [f"{row.low:.1f} to {row.high:.1f}" for row in frame.itertuples()]
        others = {name: [f"{value:.1f}" for value in frame[name]] for name in OF_LABELS[1:]}
        cells = {HELD_OUT: near, "95 % interval": ends, **others}
        return titled(frame)[["model"]].assign(**cells)

    def facts(self, frame: pd.DataFrame) -> list[str]:
        texts, labels = frame[["texts", "labels"]].iloc[0]
        return [f"{texts:,} held-out texts with {labels} labels, x 100; k-means: means of ten seeds."]


def held_out(corpus: ChosenCorpus) -> tuple[np.ndarray, list[str]]:
    """Return the (n,) rows of the labelled texts that are held out, and their labels. Raises FieldError.

    They are those of `cse adapt` by its default seed; of a corpus too small for that all are scored.
    """
    from cse.adaptation.adapt import MAX_TEXTS, MIN_TEXTS, AdaptRequest
    from cse.adaptation.facts import split

    if corpus.labels is None:
        reason = f"{corpus.label} has no labels. Upload a table and choose its column of labels to score the models."
        raise validation.FieldError(FIELD, reason)
    seed = AdaptRequest("").seed
    distinct = Corpus.of(list(corpus.texts)).distinct_sample(MAX_TEXTS, seed)
    if len(distinct) >= MIN_TEXTS:
        distinct = split(distinct, seed)[0]
    rows = np.array([row for row in distinct.numbers - 1 if corpus.labels[row]], np.int64)
    labels = [corpus.labels[row] for row in rows]
    if not 2 <= (count := len(set(labels))) <= min(MOST_LABELS, len(rows) // 2):
        of = f"{validation.counted(count, 'label')} for {validation.counted(len(rows), 'labelled text')}"
        reason = f"{corpus.label} has {of} that are held out; 2 to {MOST_LABELS} can be scored."
        raise validation.FieldError(FIELD, reason)
    return rows, labels
