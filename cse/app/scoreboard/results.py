"""The Results tab: the models' shipped scores, a sortable table per task. It needs no model.

The content of the tables is computed in `cse.evaluation.scoreboard` and worded in `cse.app.scoreboard.scores`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app.corpus.bar import CorpusBar
from cse.app.corpus.chosen import chosen_corpus
from cse.app.corpus.scores import corpus_scores, scores_html
from cse.app.drawing import html
from cse.app.drawing.components import heading as heading_of
from cse.app.drawing.components import script
from cse.app.drawing.glossary import of_scores, terms
from cse.app.forms.events import HIDDEN, MAPS, PROGRESS, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.models import Failure
from cse.app.models.naming import title
from cse.app.scoreboard.charts import charts_html
from cse.app.scoreboard.ledger import ledger_html
from cse.app.scoreboard.model_strip import sts_board
from cse.app.scoreboard.planes import parameters_plane, speed_plane, times_of
from cse.app.scoreboard.scores import (
    Names,
    heading,
    names_of,
    protocol_lines,
    scoring_command,
    unscored,
    verdicts,
)
from cse.app.scoreboard.speed import speeds
from cse.app.state.app_state import AppState
from cse.errors import as_called
from cse.methods.catalogue import UNTRAINED
from cse.models.names import BACKBONE, START

if TYPE_CHECKING:
    from cse.app.models.columns import Column
    from cse.evaluation.results import ScoreColumn
    from cse.evaluation.scoreboard import Figure, Row, Scoreboard, Verdict

ASK = "<p>Do a text's nearest ones, and k-means groups, have its label? The demo corpus is labelled by topic.</p>"
READING = (
    "<p>The best of a column is bold on a tint; ≈ marks scores that do not differ significantly from it: the 95 % "
    "interval of the difference (Welch's) contains zero. “Before” is the same model before training. Press a heading "
    f"to sort by it. The command under a table makes it again.</p><p>{html.escape(START)}</p>"
)
MARKS = {"best": "best", "alike": "not significantly different from the best"}
SMALL = 10.0  # smaller figures are not percentages


def results_html(state: AppState) -> str:
    """Return all boards, one after the other, or the reason there are none."""
    if isinstance(state.boards, Failure):
        return html.failure(state.boards)
    boards = "".join(board_html(board, titles_of(board, state.models.columns)) for board in state.boards.values())
    return advice_html(state.boards, state.models.columns) + boards + ledger_html(state)


def titles_of(board: Scoreboard, columns: Sequence[Column]) -> Names:
    """Return the names of a board's models, those of methods as the papers write them."""
    return {label: titled(name, board.rows[label]) for label, name in names_of(board, columns).items()}


def titled(name: str, row: Row) -> str:
    """Return a model's name; the readings of this project's untrained backbone are named by their pooling."""
    return f"{title(BACKBONE)} ({row.pooling})" if row.pooling and row.record.model == BACKBONE else title(name)


def advice_html(boards: dict[str, Scoreboard], columns: Sequence[Column]) -> str:
    """Return the command that scores the columns without results; empty if there are none."""
    missing = unscored(boards, columns)
    if not missing or not boards:
        return ""
    task, *others = boards
    listed = html.escape(", ".join(title(column.name) for column in missing))
    command = html.escape(scoring_command(task, missing))
    return (
        f'<p class="cse-note">No shipped results of {listed}. Score them: <code>{command}</code>, '
        f"likewise {', '.join(others)}.</p>"
    )


def board_html(board: Scoreboard, names: Names) -> str:
    """Return a task's section: title, summary, table, verdicts, protocol, and the command that made it."""
    task, place = board.task, f"results-{board.task.name}"
    named = terms(*of_scores(column.score for column in board.columns), "significance")
    found = "".join(f"<p><b>{what}:</b> {html.escape(text)}.</p>" for what, text in verdicts(board, names).items())
    protocol, pictures = html.escape(" ".join(protocol_lines(board))), pictures_html(board, names)
    table = html.fold("Table of scores", table_html(board, names), opened=not pictures)
    return (
        f'<section class="cse-board"><h2 id="{place}">{html.escape(task.title)}</h2>'
        f"<p>{html.escape(task.summary)}</p>{named}"
        f'<div class="cse-charts">{pictures}</div>{found}{table}<p class="cse-note">{protocol}</p>'
        f"{html.fold('Command', f'<code>{html.escape(as_called(board.results.command))}</code>')}</section>"
    )


def pictures_html(board: Scoreboard, names: Names) -> str:
    """Return the charts of a board; that of times is filled once they are measured (`speed_filler`)."""
    timed = '<div data-chart="speed"></div>' if board.task.name == "sts" else ""
    charts = charts_html(board, names)
    return f"{charts}{parameters_plane(board, names)}{timed}" if charts else ""


def measured(state: AppState) -> dict[str, Any]:
    """Return the value of `speed_filler`: each column's time in words, and the plane of times against scores."""
    known, board = speeds(state), sts_board(state)
    if board is None:
        return {"speeds": known}
    names = titles_of(board, state.models.columns)
    return {"speeds": known, "chart": speed_plane(board, names, times_of(state, board))}


def table_html(board: Scoreboard, names: Names) -> str:
    """Return the table: a row per model, a sorting heading per column."""
    heads = heading_html("Model", "", "ascending") + "".join(score_heading(board, column) for column in board.columns)
    kinds = [digits([row.figures[place] for row in board.rows.values()]) for place in range(len(board.columns))]
    rows = []
    for label, row in board.rows.items():
        cells = [
            cell_html(figure, place, mark(label, verdict), before)
            for figure, place, verdict, before in zip(
                row.figures, kinds, board.verdicts, row.start or repeat(None, len(kinds)), strict=True
            )
        ]
        heading = model_html(names[label], row, strongest=label == board.strongest)
        rows.append(f"<tr>{heading}{''.join(cells)}</tr>")
    inside = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return html.table(inside, f"{board.task.title}: models by score", "cse-table cse-scores")


def score_heading(board: Scoreboard, column: ScoreColumn) -> str:
    """Return the heading of a column of figures: the set and the measure."""
    return heading_html(*heading(board, column), "ascending" if column.score in board.task.lower else "descending")


def heading_html(name: str, unit: str, first: str) -> str:
    """Return a heading that sorts its column, in the direction `first` at the first click."""
    below = f"<small>{html.escape(unit)}</small>" if unit else ""
    return (
        f'<th scope="col" data-first="{first}"><button type="button" class="cse-sort">{html.escape(name)}{below}'
        "</button></th>"
    )


def model_html(name: str, row: Row, *, strongest: bool = False) -> str:
    """Return a row's heading: the model, and its seeds or the pooling of an untrained backbone."""
    shown, pooling = html.escape(name), row.pooling
    if pooling:
        badge = f'<span class="cse-badge">{"strongest " if strongest else ""}untrained</span>'
        below = f"{badge} {html.escape(UNTRAINED[pooling].summary)}"
    elif len(row.seeds) > 1:
        own = "" if row.average is None else f": {row.average:.2f}"
        below = f"{len(row.seeds)} seeds; shipped {row.record.seed}{own}"
    else:
        below = f"seed {row.record.seed}" if row.record.seed is not None else "not trained here"
    chip = "" if pooling else html.chip(row.record.model)
    return f'<th scope="row" data-value="{shown}">{chip}{shown}<small>{below}</small></th>'


def digits(figures: Sequence[Figure | None]) -> int:
    """Return the decimals of a column: three for cosines and the like, two for percentages."""
    return 3 if all(abs(figure.value) < SMALL for figure in figures if figure) else 2


def mark(label: str, verdict: Verdict) -> str:
    """Return `best`, `alike` (inside the noise of the best) or an empty string."""
    return "best" if label in verdict.best else "alike" if label in verdict.alike else ""


def cell_html(figure: Figure | None, places: int, kind: str, before: Figure | None = None) -> str:
    """Return a figure with its deviation and that `before` training; `kind` is marked, also for screen readers."""
    if figure is None:
        return "<td>–</td>"
    sign = {"alike": '<span aria-hidden="true">≈ </span>'}.get(kind, "")
    marked = f' <span class="cse-hidden">({MARKS[kind]})</span>' if kind else ""
    spread = "" if figure.deviation is None else f" <small>± {figure.deviation:.{places}f}</small>"
    start = "" if before is None else f' <small class="cse-before">before {before.value:.{places}f}</small>'
    return (
        f'<td class="cse-{kind or "other"}" data-value="{figure.value!r}">{sign}<span class="cse-figure">'
        f"{figure.value:.{places}f}</span>{spread}{marked}{start}</td>"
    )


def results_tab(state: AppState, bar: CorpusBar) -> Linked:
    """Add the scores on the labels of the corpus, on request, and the shipped ones, complete when the page opens."""
    heading_of("Scores of the bundled models", "Higher is better.", READING)
    gr.HTML(results_html(state), apply_default_css=False, js_on_load=script("results"), elem_id="results")
    heading_of("Scores on the labels of your corpus", more=ASK)
    with gr.Row(elem_classes="cse-draw"):
        button = gr.Button("Score the corpus", size="sm", scale=0, min_width=160)
    output = gr.HTML("", apply_default_css=False, elem_id="label-scores")

    def score(corpus: str, key: str, progress: gr.Progress = PROGRESS) -> str:
        chosen = chosen_corpus(state, corpus, key)
        return scores_html(chosen, corpus_scores(state, chosen, reporter(progress)))

    run = refusing(score, {"The corpus": bar.corpus, "The key": bar.key}, [output])
    gr.on([button.click], run.fn, list(run.inputs), list(run.outputs), **HIDDEN, **MAPS)
    labels = Result("Scores on the labels of the corpus", "labels", ("corpus", "key"))
    return Linked((), run, (), results=[labels, Result("Time against score", "times", ())])
