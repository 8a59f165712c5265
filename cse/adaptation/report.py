"""The report of an adaptation: a page without scripts, and the short form for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cse.adaptation.choice import AXES, MEASURES, START, Stages, called, candidates, gains_of
from cse.analysis.votes import NEIGHBOURS, differences
from cse.vectors import nearest_others

MAX_SHOWN_TEXTS = 10  # texts whose neighbours changed most


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


def table(stages: Stages, chosen: str, judged: str | None) -> list[list[str]]:
    """Return the rows of the scores, the header first; gains over the start have the 95 % interval's half width.

    The candidate that is `chosen` and the one that is to be `judged` are marked.
    """
    scored = candidates(stages)
    measures = list(scored[START]["scores"])
    rows = [["model", "dimension", *measures, *(f"gain at {axis}" for axis in AXES if MEASURES[axis] in measures), ""]]
    for name, scores in scored.items():
        gains = [f"{gain.value:+.1f} ± {(gain.high - gain.low) / 2:.1f}" for gain in gains_of(scores).values()]
        marks = [mark for mark, other in (("chosen", chosen), ("to be judged", judged)) if name == other]
        rows.append(
            [called(name), str(scores["dimension"]), *(f"{scores['scores'][each]:.1f}" for each in measures),
             *(gains or [""] * (len(rows[0]) - 3 - len(measures))), ", ".join(marks)]
        )  # fmt: skip
    for name, stage in stages.items():
        missing = {f"{name} {variant}": reason for variant, reason in stage.get("missing", {}).items()}
        missing |= {name: stage["left_out"]} if "left_out" in stage else {}
        rows += [[called(part), *[""] * (len(rows[0]) - 2), f"left out: {reason}"] for part, reason in missing.items()]
    return rows


def explained(report: dict[str, Any]) -> str:
    """Return the meaning of the columns of `table` in a sentence."""
    measures = report["stages"]["start"]["scores"]
    labels = f"neighbours: percent of the {NEIGHBOURS} nearest texts with the text's label; "
    items = (
        "recall@1, mrr: how often and how far up a text is found by a short form of it, among the held-out texts and "
        "up to 2,000 others; "
    )
    return (
        (labels if "neighbours" in measures else "") + (items if "recall@1" in measures else "")
        + "all x 100, on texts that nothing "
        + ("but the start " if report["stages"]["start"].get("fitted") else "")
        + "was fitted on, with 95 % intervals of the gains."
    )  # fmt: skip


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines for a terminal."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def lines(report: dict[str, Any]) -> list[str]:
    """Return the short form of a report."""
    shown = aligned(table(report["stages"], report["decision"], report["candidate"]))
    warning = [report["facts"]["warning"]] if report["facts"]["warning"] else []
    commands = [f"{what}: {command}" for what, command in report["commands"].items()]
    return [report["summary"], *warning, "", *shown, "", explained(report), "", report["verdict"], *commands]


def model_card(report: dict[str, Any]) -> str:
    """Return the card of an adapted model: what it came from, the verdict, and the scores."""
    header, *rows = table(report["stages"], report["decision"], report["candidate"])
    table_lines = ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(
        ["---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags: [cse]", "---", "",
         f"# {report['start']}, adapted", "", report["verdict"], "", *table_lines, "", explained(report), ""]
    )  # fmt: skip


def page(report: dict[str, Any]) -> str:
    """Return the report as one HTML page: no script, no other file, every text of the user escaped."""
    import jinja2  # comes with PyTorch

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((Path(__file__).parent / "report.html").read_text(encoding="utf-8"))
    return template.render(
        report=report, scores=table(report["stages"], report["decision"], report["candidate"]),
        explained=explained(report), compared=called(report["compared"]),
    )  # fmt: skip
