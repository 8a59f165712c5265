"""Two sentences in every model, and the words behind their cosine."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.analysis.calibration import input_notes
from cse.app import validation
from cse.app.corpus.bar import CorpusBar
from cse.app.corpus.chosen import FIELD, ChosenCorpus, DemoCorpus, chosen_corpus, reference_corpus
from cse.app.corpus.pairs import DRAWN, drawn_pair
from cse.app.drawing import html
from cse.app.drawing.components import heading, result, submit
from cse.app.drawing.distribution import Placed, placed_html
from cse.app.forms.events import PRIVATE, PROGRESS, Run, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, Models, divided
from cse.app.models.naming import title
from cse.app.sections.words import ASK, words_section
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY
from cse.training.records import Report, silent

if TYPE_CHECKING:
    import numpy as np

    from cse.encoder.encoder import Encoder

PAIRS: dict[str, tuple[str, str]] = {
    "paraphrase": ("A man is playing a guitar on stage.", "Someone plays the guitar for an audience."),
    "negation": ("The restaurant is open on Sundays.", "The restaurant is not open on Sundays."),
    "word order": ("The dog chased the cat.", "The cat chased the dog."),
    "unrelated": ("She planted tomatoes in the garden.", "The train to Berlin leaves at noon."),
}
LESSONS = {
    "paraphrase": "Other words, the same event: this should be closer than almost every random pair.",
    "negation": "One word reverses the meaning. A model that puts this pair high misses that word.",
    "word order": "The same words, another meaning. A model that puts this pair high ignores their order.",
    "unrelated": "Nothing in common: this pair should lie among the random pairs.",
}


def similarity(models: Models, s1: str, s2: str) -> dict[str, float | Failure]:
    """Return each model's cosine of the two sentences."""
    pair = validation.pair(s1, s2)
    return models.apply_to(pair, lambda _, encoder, vectors: cosine(vectors))


def placed(
    state: AppState, s1: str, s2: str, report: Report = silent, reference: ChosenCorpus | None = None
) -> tuple[dict[str, Placed | Failure], dict[str, list[str]]]:
    """Return each model's cosine among those of random pairs of the `reference`, by default the demo; and notes.

    The notes are about each sentence.
    """
    from cse.analysis.calibration import histogram, percentile

    pair, corpus = validation.pair(s1, s2), reference or DemoCorpus(state)
    notes: dict[str, dict[str, list[str]]] = {what: {} for what in validation.PAIR}

    def place(column: Column, encoder: Encoder, vectors: np.ndarray) -> Placed:
        others, found = corpus.random_cosines(state, column, encoder), cosine(vectors)
        for what, text in zip(notes, pair, strict=True):
            for note in input_notes(encoder, text):
                notes[what].setdefault(note, []).append(title(column.name))
        return Placed(found, percentile(found, others), histogram(others))

    answers = state.models.apply_to(pair, place, report=report)
    count = len(divided(answers)[0])
    hints = {
        what: [note if len(names) == count else f"{note} ({', '.join(names)})" for note, names in about.items()]
        for what, about in notes.items()
    }
    return answers, hints


def cosine(vectors: np.ndarray) -> float:
    """Return the cosine of two vectors (2, d)."""
    from cse.vectors import cosines

    return float(cosines(vectors[:1], vectors[1:])[0])


def name_of(corpus: ChosenCorpus) -> str:
    """Return a corpus's name in a sentence about its random pairs."""
    return "the demo corpus" if corpus.key == DEMO_KEY else corpus.label


def pair_section(state: AppState, bar: CorpusBar, first: dict[str, Placed] | None) -> Linked:
    """Add two sentences, typed or drawn from the corpus, a row per model on one axis, and the attribution to words."""
    heading("Two sentences")
    with gr.Row(equal_height=True, elem_classes="cse-fields"):
        one, other = (
            gr.Textbox(text, label=name, scale=4, min_width=240)
            for name, text in zip(validation.PAIR, PAIRS["paraphrase"], strict=True)
        )
        button = submit("Compare")
    pairs = [list(pair) for pair in PAIRS.values()]
    with gr.Row(elem_classes="cse-tries"):
        examples = gr.Examples(pairs, [one, other], label="Try", example_labels=list(PAIRS), api_visibility="private")
        with gr.Row(elem_classes="cse-draw"):
            buttons = {kind: gr.Button(label, size="sm", scale=0, min_width=100) for kind, label in DRAWN.items()}

    def drawing(kind: str) -> Run:
        def draw(corpus: str, key: str) -> tuple[str, str]:
            return drawn_pair(state, chosen_corpus(state, corpus, key), kind, Random())

        return refusing(draw, {FIELD: bar.corpus, "The key": bar.key}, [one, other])

    drawn = [(each.click, drawing(kind)) for kind, each in buttons.items()]
    hint = html.hint("The cosine of each model appears here.")
    output = result("similarity", placed_html(first, {}, LESSONS["paraphrase"]) if first else hint)
    words = words_section(state.models, [one, other])

    def compare(s1: str, s2: str, corpus: str, key: str, progress: gr.Progress = PROGRESS) -> tuple[str, str]:
        lesson = next((LESSONS[name] for name, pair in PAIRS.items() if pair == (s1, s2)), "")
        # `ASK` replaces the words of the previous pair.
        reference = reference_corpus(state, corpus, key)
        answers = placed(state, s1, s2, reporter(progress), reference)
        return placed_html(*answers, lesson, name_of(reference)), ASK

    run = refusing(compare, dict(zip(validation.PAIR, (one, other), strict=True)), [output, words])
    run = run._replace(inputs=[one, other, bar.corpus, bar.key])  # a refusal of the corpus is not about this

    def compare_again(number: int, *shown: Any) -> Any:
        """Compare with random pairs of another corpus; an opened page reports a change of 0."""
        return run.fn(*shown) if number else [gr.skip()] * len(run.outputs)

    triggers = [button.click, one.submit, other.submit]
    private(triggers, run, examples)
    bar.changed.change(compare_again, [bar.changed, *run.inputs], list(run.outputs), **PRIVATE)
    for click, draw in drawn:
        click(draw.fn, list(draw.inputs), list(draw.outputs), **PRIVATE).success(
            run.fn, list(run.inputs), list(run.outputs), **PRIVATE
        )
    results = [
        Result("Two sentences", "similarity", ("s1", "s2", "corpus", "key")),
        Result("Words of the pair", "words", ("s1", "s2")),
    ]
    return Linked(("a", "b"), run, triggers, examples=examples, results=results)
