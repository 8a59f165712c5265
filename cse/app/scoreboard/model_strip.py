"""The models above the tabs, on one line, each with its score and that of its own start; a press shows the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from cse.adaptation.projection import PROJECTION_RECORD
from cse.app.drawing import html
from cse.app.drawing.components import result
from cse.app.drawing.palette import own_colours
from cse.app.forms.events import Run, guarded
from cse.app.models.columns import Column
from cse.app.models.models import Failure, Models
from cse.app.models.naming import title
from cse.app.models.remembered import fingerprint_of
from cse.app.scoreboard.scores import opened_by
from cse.app.scoreboard.speed import in_words
from cse.app.state.app_state import AppState
from cse.methods.catalogue import METHODS
from cse.methods.method import Pooling, Reading
from cse.models.names import BACKBONE, START, location

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.evaluation.scoreboard import Scoreboard

MILLION = 1e6
UNTRAINED = ("nothing trained", "projection fitted on own texts")


class Scores(NamedTuple):
    """A model's mean over the STS tasks with that of its own start, as short as the line allows and in words."""

    short: str = ""
    long: str = ""


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
    """Return the line of models."""
    columns = {column.name: column for column in state.models.columns}
    cells = "".join(
        f"<li>{cell(place, columns[name], answer, scores(state, columns[name]), speed(state, columns[name]))}</li>"
        for place, (name, answer) in enumerate(answers.items())
        if name in columns
    )
    own = html.colour_styles(own_colours(columns.values()))
    return f'{own}<ul class="cse-strip-of-models" aria-label="Models">{cells}</ul>'


def speed(state: AppState, column: Column) -> str:
    """Return the time of a sentence in words."""
    return in_words(state.speeds.get(column.opened_by))


def cell(place: int, column: Column, answer: Description | Failure, scored: Scores, speed: str) -> str:
    """Return a model's button with the sheet that it opens."""
    name = column.name
    if isinstance(answer, Failure):
        note, inside = "not available", html.failure(answer)
    else:
        learned = f"{count(answer['learned'])} trained" if answer["learned"] else UNTRAINED[is_projected(column.model)]
        method = title(answer["method"])
        learned = learned if method.lower() in title(name).lower() else f"{html.escape(method)}, {learned}"
        note = learned + (f" · STS {scored.short}" if scored.short else "")
        facts = {"Trained parameters": f"{answer['learned']:,}", "STS, mean": scored.long, **details(answer)}
        listed = "".join(f"<dt>{what}</dt><dd>{value}</dd>" for what, value in facts.items() if value)
        inside = f'<dl>{listed}<dt>Speed</dt><dd data-speed="{html.escape(name)}">{html.escape(speed)}</dd></dl>'
    shown = html.model(name)
    return (
        f'<button type="button" class="cse-of-model" popovertarget="model-{place}"><b>{shown}</b> '
        f'<span class="cse-note">{note}</span></button>'
        f'<div popover class="cse-popover" id="model-{place}" role="dialog" aria-label="{html.escape(title(name))}">'
        f"<h2>{shown}</h2>{inside}</div>"
    )


def is_projected(model: str) -> bool:
    """True for a folder with a projection that was fitted on texts (`cse adapt`)."""
    return (Path(location(model)) / PROJECTION_RECORD).is_file()


def details(found: Description) -> dict[str, str]:
    """Return the content of an opened cell, as HTML by heading."""
    paper = METHODS[found["method"]].arxiv if found["method"] in METHODS else ""
    cited = html.escape(found["citation"])
    link = f'<a href="https://arxiv.org/abs/{paper}" target="_blank" rel="noopener">{cited}</a>' if paper else cited
    learned = f"{found['megabytes']:g} MB trained, " if found["learned"] and found["megabytes"] else ""
    place = found["pooling"] if found["pooling"].startswith("at ") else f"by pooling {found['pooling']}"
    facts = {
        "Method": html.escape(found["summary"]),
        "Paper": link,
        "Vector": f"{found['dimension']} numbers, read {html.escape(place)} in "
        f"<code>{html.escape(found['template'])}</code>",
        "Cost": f"{found['added']} tokens beside the sentence's; {learned}{found['parameters']:,} parameters in all",
        "Fingerprint": f"<code>{found['fingerprint']}</code>",
        "Start": html.escape(found["start"]),
    }
    return {what: value for what, value in facts.items() if value}


def count(numbers: int) -> str:
    """Return a number of parameters in words: millions with one decimal, smaller ones whole."""
    return f"{numbers / MILLION:.1f} M" if numbers >= MILLION else f"{numbers:,}"


def scores(state: AppState, column: Column) -> Scores:
    """Return a column's mean over the STS tasks, beside that of its own start; empty if unknown."""
    board = sts_board(state)
    rows = board.rows.values() if board else ()
    row = next((row for row in rows if opened_by(row) == column.opened_by), None)
    if row is None or row.figures[0] is None:
        return Scores()
    after, before = row.figures[0].value, row.start[0] if row.start else None
    if before is None:
        return Scores(f"{after:.1f}", f"{after:.1f}")
    arrow = '<span aria-hidden="true">→</span><span class="cse-hidden">before training, now</span>'
    return Scores(f"{before.value:.1f} {arrow} {after:.1f}", f"{after:.1f}; before training {before.value:.1f}")


def sts_board(state: AppState) -> Scoreboard | None:
    """Return the scoreboard of the STS tasks; None without readable results."""
    return None if isinstance(state.boards, Failure) else state.boards.get("sts")


def model_strip(state: AppState, first: dict[str, Description] | None = None) -> Run:
    """Add the strip. Returns the run that fills it if it has no `first` content."""
    output = result("models", strip_html(state, first) if first else html.hint("The models are being opened."))

    def describe() -> str:
        return strip_html(state, descriptions(state.models))

    return Run(guarded(describe), [], [output])
