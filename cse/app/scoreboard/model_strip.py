"""The models above the tabs: summary, learned numbers and score of each; opened, also its paper and cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from cse.app.drawing import html
from cse.app.drawing.components import result
from cse.app.forms.events import Run, guarded
from cse.app.models.models import Column, Failure, Models
from cse.app.models.remembered import fingerprint_of
from cse.app.models.state import AppState
from cse.app.scoreboard.scores import opened_by
from cse.app.scoreboard.speed import UNKNOWN, in_words
from cse.methods.method import Pooling, Reading
from cse.models.names import BACKBONE, START, location

if TYPE_CHECKING:
    from cse.benchmark.scoreboard import Row
    from cse.encoding.encoder import Encoder

WIDTH = 15.0  # rem of a model's cell
TITLES = {
    "simcse": "SimCSE", "promptbert": "PromptBERT", "dcpcse": "DCPCSE", "conpvp": "ConPVP", "esimcse": "ESimCSE",
    "consert": "ConSERT", "optiprompt": "OptiPrompt", "scpcse": "SCPCSE",
}  # fmt: skip
PAPERS = {  # arXiv ids
    "simcse": "2104.08821", "promptbert": "2201.04337", "optiprompt": "2201.04337", "dcpcse": "2203.06875",
    "scpcse": "2203.06875", "conpvp": "2211.03348", "esimcse": "2109.04380", "consert": "2105.11741",
}  # fmt: skip


class Description(TypedDict):
    """A model's description; `learned` counts the trained numbers, `parameters` all that it computes with.

    `added` counts the tokens of the template and the prefix; `megabytes` is the size of the weight files, 0 without a
    folder. `start` describes the initialisation of the bundled backbone, empty for others.
    """

    method: str
    summary: str
    citation: str
    learned: int
    parameters: int
    megabytes: float
    added: int
    dimension: int
    pooling: str
    template: str
    fingerprint: str
    start: str


def descriptions(models: Models) -> dict[str, Description | Failure]:
    """Return each model's description."""
    return models.apply(description)


def description(column: Column, encoder: Encoder) -> Description:
    """Return one model's description, from the fields of its method."""
    method, reading, folder = encoder.method, encoder.reading, Path(location(column.model))
    weights = sum(path.stat().st_size for path in folder.glob("model*.safetensors")) if folder.is_dir() else 0
    return Description(
        method=method.name, summary=method.summary, citation=method.citation,
        learned=encoder.learned_count,
        parameters=encoder.parameter_count,
        megabytes=round(weights / 1e6, 2), added=encoder.views[0][0].length + reading.prefix,
        dimension=encoder.dim, pooling=where_read(reading), template=reading.template.text,
        fingerprint=fingerprint_of(encoder), start=START if encoder.backbone == BACKBONE else "",
    )  # fmt: skip


def where_read(reading: Reading) -> str:
    """Return in words from which tokens the vector is read."""
    if reading.pooling is not Pooling.TOKEN:
        return reading.pooling.value
    return "at [MASK]" if reading.at_mask else "at the first token"


def strip_html(state: AppState, answers: Mapping[str, Description | Failure]) -> str:
    """Return a cell per model."""
    scored = {column.name: scores(state, column) for column in state.models.columns}
    known = {column.name: in_words(state.speeds.get(column.opened_by)) for column in state.models.columns}
    cells = "".join(
        cell(name, answer, scored.get(name, ""), known.get(name, UNKNOWN)) for name, answer in answers.items()
    )
    return f'<div class="cse-columns cse-strip-of-models" style="--cse-column:{WIDTH}rem">{cells}</div>'


def cell(name: str, answer: Description | Failure, scored: str, speed: str) -> str:
    """Return a model's cell, which can be opened, or the reason it has none."""
    if isinstance(answer, Failure):
        return f'<section class="cse-card"><h2>{html.escape(name)}</h2>{html.failure(answer)}</section>'
    title = TITLES.get(answer["method"], answer["method"])
    own = "" if title.lower() == name.lower() else f" <small>{html.escape(name)}</small>"
    learned = f"{answer['learned']:,} learned numbers" if answer["learned"] else "nothing learned"
    facts = "".join(f"<dt>{what}</dt><dd>{value}</dd>" for what, value in details(answer).items())
    return (
        f'<details class="cse-card"><summary><h2>{html.escape(title)}{own}</h2>'
        f'<span>{html.escape(answer["summary"])}</span><span class="cse-note">{learned}{scored}</span></summary>'
        f'<dl>{facts}<dt>Speed</dt><dd data-speed="{html.escape(name)}">{html.escape(speed)}</dd></dl></details>'
    )


def details(found: Description) -> dict[str, str]:
    """Return the content of an opened cell, as HTML by heading."""
    paper = PAPERS.get(found["method"])
    cited = html.escape(found["citation"])
    link = f'<a href="https://arxiv.org/abs/{paper}" target="_blank" rel="noopener">{cited}</a>' if paper else cited
    learned = f"{found['megabytes']:g} MB learned, " if found["learned"] and found["megabytes"] else ""
    place = found["pooling"] if found["pooling"].startswith("at ") else f"by pooling {found['pooling']}"
    facts = {
        "Paper": link,
        "Vector": f"{found['dimension']} numbers, read {html.escape(place)} in "
        f"<code>{html.escape(found['template'])}</code>",
        "Cost": f"{found['added']} tokens beside the sentence's; {learned}{found['parameters']:,} parameters in all",
        "Fingerprint": f"<code>{found['fingerprint']}</code>",
        "Start": html.escape(found["start"]),
    }
    return {what: value for what, value in facts.items() if value}


def scores(state: AppState, column: Column) -> str:
    """Return a column's mean over the STS tasks and the best untrained pooling of the backbone; empty if unknown."""
    board = None if isinstance(state.boards, Failure) else state.boards.get("sts")
    if board is None:
        return ""
    own = [row for row in board.rows.values() if opened_by(row) == column.opened_by]
    untrained = {row.pooling: average(row) for row in board.rows.values() if row.pooling}
    if not own or not untrained:
        return ""
    best = max(untrained, key=lambda reading: untrained[reading])
    return f"; STS {average(own[0]):.1f}, untrained ({best}) {untrained[best]:.1f}"


def average(row: Row) -> float:
    """Return the first figure of a row, the mean over the sets."""
    figure = row.figures[0]
    return figure.value if figure else float("nan")


def model_strip(state: AppState, first: dict[str, Description] | None = None) -> Run:
    """Add the strip. Returns the run that fills it if it has no `first` content."""
    output = result("models", strip_html(state, first) if first else html.hint("The models are being opened."))

    def describe() -> str:
        return strip_html(state, descriptions(state.models))

    return Run(guarded(describe), [], [output])
