"""The report of an adaptation: a page without scripts, and the short form for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from cse.adaptation.choice import LABEL_MEASURE, called
from cse.analysis.votes import NEIGHBOURS, differences
from cse.vectors import nearest_others

MAX_SHOWN_TEXTS = 10  # texts whose neighbours changed most
PAGE_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222;
  background: #fff; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .6rem; vertical-align: top;
  border-bottom: 1px solid #ccc; } td.number { text-align: right; } pre { background: #f3f3f3; padding: .6rem;
  white-space: pre-wrap; } ol { margin: 0; padding-left: 1.2rem; }
"""


def changed_neighbours(start: np.ndarray, result: np.ndarray, texts: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the texts whose nearest neighbours differ most between two models (N, d), with both lists of texts.

    `texts` has what is shown of each, such as the text or its row.
    """
    near = nearest_others(start, NEIGHBOURS), nearest_others(result, NEIGHBOURS)
    order = np.argsort(-differences(start, result, near), kind="stable").tolist()
    changed = [row for row in order if set(near[0][row].tolist()) != set(near[1][row].tolist())]
    return [
        {"text": texts[row], **{name: [texts[other] for other in rows[row].tolist()]
                                for name, rows in zip(("before", "after"), near, strict=True)}}
        for row in changed[:MAX_SHOWN_TEXTS]
    ]  # fmt: skip


def table(report: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the scores, the header first."""
    labelled = "labels" in report["stages"]["start"]
    measures = [LABEL_MEASURE, "nmi"] if labelled else ["found", "concentration"]
    rows = [["model", "dimension", *measures, "seconds", ""]]
    for name, stage in report["stages"].items():
        cells = ["", "", ""]
        if "guard" in stage:
            values = stage["labels"] if labelled else stage["guard"]
            cells = [str(stage["dimension"]), *(f"{values[measure]:.2f}" for measure in measures)]
        marks = [mark for key, mark in (("decision", "chosen"), ("candidate", "to be judged")) if report[key] == name]
        rows.append(
            [called(name, report["stages"]), *cells, f"{stage['seconds']:.1f}", stage.get("left_out", ", ".join(marks))]
        )
    return rows


def explained(report: dict[str, Any]) -> str:
    """Return the meaning of the columns of `table` in a sentence."""
    if "labels" in report["stages"]["start"]:
        return (
            f"neighbours: percent of the {NEIGHBOURS} nearest texts with the text's label; nmi: agreement of groups "
            "with the labels; both on texts that nothing was fitted on."
        )
    return (
        "found: percent of shortened texts that find their original; concentration: 100 minus the effective rank in "
        "percent. Both show a collapse; neither shows which of two sound models is better."
    )


def lines(report: dict[str, Any]) -> list[str]:
    """Return the short form of a report."""
    rows = table(report)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    warning = [report["facts"]["warning"]] if report["facts"]["warning"] else []
    commands = [f"{what}: {command}" for what, command in report["commands"].items()]
    return [report["summary"], *warning, "", *shown, "", explained(report), "", report["sentence"], *commands]


def page(report: dict[str, Any]) -> str:
    """Return the report as one HTML page: no script, no other file, every text of the user escaped."""
    header, *rows = table(report)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    changed = "".join(
        f"<tr><td>{escape(row['text'])} ({row['row']})</td><td>{_list(row['before'])}</td>"
        f"<td>{_list(row['after'])}</td></tr>"
        for row in report["changed"]
    )
    warning = f"<p><strong>{escape(report['facts']['warning'])}</strong></p>" if report["facts"]["warning"] else ""
    commands = "".join(
        f"<p>{escape(what)}</p><pre>{escape(command)}</pre>" for what, command in report["commands"].items()
    )
    neighbours = (
        "<h2>Texts whose neighbours changed most</h2><p>Held-out texts with their rows, and the nearest others before "
        "and after.</p>"
        f"<table><tr><th>text</th><th>before</th><th>after: "
        f"{escape(called(report['compared'], report['stages']))}</th></tr>{changed}</table>" if changed else ""
    )  # fmt: skip
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Adaptation of '
        f"{escape(report['start'])}</title><style>{PAGE_STYLE}</style></head><body><h1>{escape(report['start'])} on "
        f"{escape(report['data'])}</h1><p><strong>{escape(report['sentence'])}</strong></p><p>"
        f"{escape(report['summary'])}</p>{warning}<h2>Scores</h2><table><tr>{head}</tr>{body}</table>"
        f"<p>{escape(explained(report))} {report['seconds']:.0f} seconds in all.</p>{neighbours}"
        f"<h2>Commands</h2>{commands}</body></html>\n"
    )


def _cell(text: str) -> str:
    number = text.replace(".", "", 1).replace("-", "", 1).isdigit()
    return f'<td class="number">{text}</td>' if number else f"<td>{escape(text)}</td>"


def _list(rows: Sequence[dict[str, Any]]) -> str:
    return "<ol>" + "".join(f"<li>{escape(row['text'])} ({row['row']})</li>" for row in rows) + "</ol>"
