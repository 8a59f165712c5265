"""The Tokens tab: the likeliest words at [MASK], before and after denoising."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import gradio as gr

from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.components import heading, result, settings, submit
from cse.app.drawing.glossary import term
from cse.app.drawing.verdicts import denoising, flat, still_said
from cse.app.forms.events import PROGRESS, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, Models, divided
from cse.app.state.app_state import AppState
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

MOST, DEFAULT = 30, 8
WIDTH = 28.0  # rem of a model's three lists
SENTENCES = [
    "The doctor treated the patient in hospital.",
    "I am not happy.",
    "The orchestra played a slow symphony.",
    "The bank raised its interest rates.",
]
FOREIGN = "This model reads no [MASK]: the template is only used here, to ask it for words."
DENOISED = term("denoising", "Denoised")
FULL = 1.0  # of the template subtracted
EXPLANATION = (
    "<p>The model predicts words from the vector that it makes of your sentence: the likeliest ones say what the "
    "vector encodes.</p><p>A template pulls every sentence towards the same words: those under <b>Template alone</b>. "
    "<b>Denoised</b> subtracts them, so that what is left comes from the sentence. PromptBERT and ConPVP do so while "
    "they train. In the options, 0 subtracts nothing and 1 all. All bars have the same scale.</p>"
)


class Reading(NamedTuple):
    """The likeliest tokens with their probabilities, best first, and the template whose [MASK] predicts them.

    `before` is for the sentence in the template, `alone` for the template, `after` for their difference.
    """

    before: list[tuple[str, float]]
    alone: list[tuple[str, float]]
    after: list[tuple[str, float]]
    template: str
    own: bool  # the method encodes with that template


def tokens(
    models: Models, sentence: str, k: int, share: float = FULL, report: Report = silent
) -> dict[str, Reading | Failure]:
    """Return each model's `k` likeliest tokens at [MASK]; `after` subtracts `share` of the template's logits."""
    text = validation.sentence(sentence, "The sentence")
    count = validation.whole(k, "k", 1, MOST)
    subtracted = validation.between(share, "What is subtracted", 0.0, FULL)

    def read(column: Column, encoder: Encoder) -> Reading:
        spoken, alone = encoder.mask_logits(text)
        before, only, after = (
            encoder.likeliest(logits, count) for logits in (spoken, alone, spoken - subtracted * alone)
        )
        return Reading(before, only, after, *template(encoder))

    return models.apply(read, report=report)


def template(encoder: Encoder) -> tuple[str, bool]:
    """Return the template whose [MASK] predicts an encoder's tokens, and True if the method encodes with it."""
    return encoder.prompt_template.text, encoder.prompt_template == encoder.reading.template


def readings_html(sentence: str, answers: Mapping[str, Reading | Failure]) -> str:
    """Return a column per model, with all bars on one scale."""
    readings, _ = divided(answers)
    words = (
        pair
        for reading in readings.values()
        for found in (reading.before, reading.alone, reading.after)
        for pair in found
    )
    top = max((probability for _, probability in words), default=1.0)
    return html.columns(answers, lambda reading: reading_html(sentence, reading, top), width=WIDTH)


def reading_html(sentence: str, reading: Reading, top: float) -> str:
    """Return the sentence in its grey template, and three word lists with bars relative to the probability `top`."""
    lists = (("Sentence", reading.before), ("Template alone", reading.alone), (DENOISED, reading.after))
    columns = [f"<div><h4>{title}</h4>{token_list(found, top)}</div>" for title, found in lists]
    note = "" if reading.own else f'<p class="cse-note">{FOREIGN}</p>'
    before, alone, after = ([word for word, _ in found] for _, found in lists)
    sentences = denoising(before, alone, after), flat(reading.after), still_said(sentence, after)
    verdict = html.verdict(" ".join(filter(None, sentences)))
    return f'<div class="cse-three">{"".join(columns)}</div>{verdict}{template_html(reading.template, sentence)}{note}'


def template_html(template: str, sentence: str) -> str:
    """Return a sentence in its template, which is grey."""
    before, after = (f"<span>{html.escape(part)}</span>" for part in template.split("[X]"))
    return f'<p class="cse-template">{before}{html.shortened(sentence)}{after}</p>'


def token_list(found: list[tuple[str, float]], top: float) -> str:
    """Return words, bars relative to the probability `top`, and percentages."""
    rows = [
        f'<li><span class="cse-token">{html.escape(token) or "·"}</span>{html.bar(probability / top)}'
        f'<span class="cse-score">{100 * probability:.1f} %</span></li>'
        for token, probability in found
    ]
    return f'<ol class="cse-tokens">{"".join(rows)}</ol>'


def tokens_tab(state: AppState, first: dict[str, Reading] | None = None) -> Linked:
    """Add the tab's content, with first results if given. Returns its part of the address."""
    heading("Which words does the vector encode?", more=EXPLANATION)
    with gr.Row(equal_height=True, elem_classes="cse-fields"):
        sentence = gr.Textbox(SENTENCES[0], label="Sentence", scale=4, min_width=200)
        button = submit("Show words")
    with gr.Row(elem_classes="cse-tries"):
        with settings(), gr.Row():
            k = gr.Slider(1, MOST, DEFAULT, step=1, label="Words per list", min_width=160)
            share = gr.Slider(0, FULL, FULL, step=0.05, label="Share of the template to subtract", min_width=160)
        examples = gr.Examples([[text] for text in SENTENCES], [sentence], label="Try", api_visibility="private")
    hint = html.hint("Press Show words.")
    output = result("tokens", readings_html(SENTENCES[0], first) if first else hint)

    def show(sentence: str, k: int, share: float, progress: gr.Progress = PROGRESS) -> str:
        return readings_html(sentence, tokens(state.models, sentence, k, share, reporter(progress)))

    run = refusing(show, {"The sentence": sentence, "k": k, "What is subtracted": share}, [output])
    triggers = (button.click, sentence.submit, k.release, share.release)
    private(triggers, run, examples)
    shown = Result("The tokens", "tokens", ("sentence", "k", "share"))
    return Linked(("sentence", "k", "share"), run, triggers, examples=examples, results=[shown])
