"""The pairs on which the models disagree most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import gradio as gr
import numpy as np

from cse.analysis.calibration import Disagreement, disagreements
from cse.app import validation
from cse.app.corpus.bar import CorpusBar
from cse.app.corpus.chosen import chosen_corpus
from cse.app.corpus.pairs import near_pairs
from cse.app.drawing import html
from cse.app.drawing.components import heading, result, submit
from cse.app.forms.events import HIDDEN, PROGRESS, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

LEAST_PAIRS, MOST_PAIRS, SHOWN = 3, 200, 10
SOURCES = {"graded": "The demo's graded pairs", "corpus": "Near pairs of the corpus", "lines": "Your pairs"}
PAIRS = """The shop is open. | The shop is closed.
The dog bites the man. | The man bites the dog.
He arrived before noon. | He came in the morning.
She bought two tickets. | She bought three tickets.
The film was not bad. | The film was good."""
PLACES = (
    "<p>Every model orders all pairs from 0 (least alike) to 100 (most alike). The pairs on which the models' places "
    "differ most come first.</p>"
)


def pairs_of(state: AppState, source: str, lines: str, corpus: str, key: str | None = None) -> list[tuple[str, str]]:
    """Return the pairs to compare: the graded ones, near ones of the corpus, or those in `lines` (`lined_pairs`)."""
    match validation.one_of(source, "The source", SOURCES):
        case "graded":
            return graded_pairs()
        case "corpus":
            return near_pairs(state, chosen_corpus(state, corpus, key))
    return lined_pairs(lines)


def graded_pairs() -> list[tuple[str, str]]:
    """Return the demo's graded pairs."""
    from cse.corpus.supervised import scored_pairs

    return [(first, second) for _, first, second in scored_pairs(DEMO / "pairs.tsv")]


def lined_pairs(lines: str) -> list[tuple[str, str]]:
    """Return the pairs in `lines`, one per line, separated by "|" or a tab."""
    found = []
    for line in validation.lines(lines, LEAST_PAIRS, MOST_PAIRS):
        parts = [part.strip() for part in line.replace("\t", "|").split("|")]
        if len(parts) != 2 or not all(parts):
            reason = f'"{line[:60]}" is not a pair; write two sentences with | between them.'
            raise validation.FieldError(validation.LIST, reason)
        found.append((parts[0], parts[1]))
    return found


def disagreeing(
    state: AppState, pairs: Sequence[tuple[str, str]], report: Report = silent
) -> tuple[list[Disagreement], dict[str, Failure]]:
    """Return the pairs by the models' disagreement about their rank, and the models that failed."""
    from cse.vectors import cosines

    def likeness(column: Column, encoder: Encoder) -> np.ndarray:
        vectors = state.models.reader(encoder).encode([sentence for pair in pairs for sentence in pair])
        return cosines(vectors[::2], vectors[1::2])

    answers = state.models.apply(likeness, report=report)
    known, failures = divided(answers)
    return disagreements(known), failures


def disagreements_html(
    pairs: Sequence[tuple[str, str]], found: Sequence[Disagreement], failures: Mapping[str, Failure]
) -> str:
    """Return the pairs on which the models disagree most, with each model's rank."""
    if not found or len(found[0].places) < 2:
        return html.failures(failures) + html.hint("Two models are needed; add one with + model.")
    names = list(found[0].places)
    rows = []
    for row in found[:SHOWN]:
        first, second = (html.folded(sentence) for sentence in pairs[row.pair])
        places = (row.places[name] for name in names)
        cells = "".join(f'<td class="cse-share">{round(100 * place)}{html.bar(place)}</td>' for place in places)
        rows.append(f'<tr><th scope="row">{first}<small>{second}</small></th>{cells}</tr>')
    heads = ["Pair", *map(html.model, names)]
    shown = html.headed(heads, rows, "Pairs on which the models disagree", "cse-table cse-moves")
    return html.failures(failures) + html.fold("Pairs", shown, opened=True)


def pairs_section(state: AppState, bar: CorpusBar, first: list[Disagreement] | None) -> Linked:
    """Add a list of pairs, and those on which the models disagree most."""
    heading("Where do the models disagree?", more=PLACES)
    with gr.Row(equal_height=True):
        source = gr.Radio([(label, key) for key, label in SOURCES.items()], value="graded", label="Pairs", scale=4)
        button = submit("Find disagreements")
    lines = gr.Textbox(
        PAIRS, label=f"One pair per line: first | second ({LEAST_PAIRS} to {MOST_PAIRS} pairs)", lines=6, visible=False
    )
    hint = html.hint("Press Find disagreements.")
    output = result("disagreements", disagreements_html(graded_pairs(), first, {}) if first else hint)

    def find_pairs(source: str, lines: str, corpus: str, key: str, progress: gr.Progress = PROGRESS) -> str:
        pairs = pairs_of(state, source, lines, corpus, key)
        return disagreements_html(pairs, *disagreeing(state, pairs, reporter(progress)))

    fields = {"The source": source, validation.LIST: lines, "The corpus": bar.corpus, "The key": bar.key}
    run = refusing(find_pairs, fields, [output])
    triggers = (button.click, source.change)
    private(triggers, run)
    source.change(lambda chosen: gr.update(visible=chosen == "lines"), source, lines, show_progress="hidden", **HIDDEN)
    found = Result("The disagreements", "disagreements", ("source", "lines", "corpus", "key"))
    return Linked(("pairs", "lines"), run, triggers, results=[found])
