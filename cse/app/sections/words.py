"""Attribution of a pair's cosine to its words, which are tinted by their contribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np

from cse.analysis.attribution import words
from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.components import result
from cse.app.drawing.ramps import DIFFERENCES, signed, tint
from cse.app.forms.events import PROGRESS, private, reporter
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, Models, divided
from cse.corpus.words import word_notes
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.analysis.attribution import Attribution
    from cse.encoder.encoder import Encoder

WIDTH = 30.0  # rem of a model's two sentences
ASK = html.hint("Press Which words matter? to leave out each word in turn and see what it adds to the cosine.")
MEANING = (
    "A word's number is how much the cosine falls without it: + draws the sentences together, \N{MINUS SIGN} pushes "
    "them apart. Words act together, so the numbers need not add up. The completeness error is their sum minus the "
    "fall without all words of that sentence."
)


def attributions(models: Models, s1: str, s2: str, report: Report = silent) -> dict[str, Attribution | Failure]:
    """Return the contribution of each word to the cosine of two sentences, by model."""
    from cse.analysis.attribution import attribute, words_within

    pair = validation.pair(s1, s2)
    for field, text in zip(validation.PAIR, pair, strict=True):
        try:
            words_within(text, field)
        except ValueError as error:
            raise validation.FieldError(field, str(error)) from error

    def of_model(column: Column, encoder: Encoder) -> Attribution:
        return attribute(models.reader(encoder).encode, *pair)

    return models.apply(of_model, report=report)


def words_html(pair: Sequence[str], answers: Mapping[str, Attribution | Failure]) -> str:
    """Return a column per model with both sentences, their words tinted on one scale."""
    known, _ = divided(answers)
    largest = max((float(np.abs(values).max()) for found in known.values() for values in found.values), default=0.0)

    def body(found: Attribution) -> str:
        sentences = zip(pair, found.values, strict=True)
        first, second = map(signed, found.errors)
        return (
            "".join(f'<p class="cse-words">{tinted(text, values, largest)}</p>' for text, values in sentences)
            + f'<p class="cse-note">Cosine {found.cosine:.3f}; completeness error {first} in A, {second} in B.</p>'
        )

    notes = "".join(f" {note}." for note in word_notes(pair, pair))
    return f"{html.columns(answers, body, width=WIDTH)}{html.hint(MEANING + notes)}"


def tinted(text: str, values: np.ndarray, largest: float) -> str:
    """Return a sentence with the value (W,) of each of its W words and a tint relative to `largest`."""
    parts, end = [], 0
    for (start, stop), value in zip(words(text), values.tolist(), strict=True):
        style, word = tint(value / largest if largest else 0.0, DIFFERENCES), html.escape(text[start:stop])
        parts.append(html.escape(text[end:start]))
        parts.append(f'<span class="cse-tint" style="{style}">{word}&nbsp;<small>{signed(value)}</small></span>')
        end = stop
    return "".join([*parts, html.escape(text[end:])])


def plain_words(pair: Sequence[str], found: Attribution) -> dict[str, Any]:
    """Return an attribution as JSON values."""
    named = [
        [[text[start:stop], value] for (start, stop), value in zip(words(text), values.tolist(), strict=True)]
        for text, values in zip(pair, found.values, strict=True)
    ]
    return {"cosine": found.cosine, "words": named, "errors": list(found.errors)}


def words_section(models: Models, inputs: Sequence[gr.Textbox]) -> gr.HTML:
    """Add a button for the attribution of the pair in `inputs`. Returns its output."""
    button = gr.Button("Which words matter?", size="sm", elem_classes="cse-ask")
    output = result("words", ASK)

    def explain(s1: str, s2: str, progress: gr.Progress = PROGRESS) -> str:
        return words_html(validation.pair(s1, s2), attributions(models, s1, s2, reporter(progress)))

    private([button.click], refusing(explain, dict(zip(validation.PAIR, inputs, strict=True)), [output]))
    return output
