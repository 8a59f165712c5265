"""What a sentence vector says: the words a model reads at [MASK], before and after denoising."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import gradio as gr

from cse.progress import Report, silent
from ui import html, validation
from ui.components import heading, result, submit
from ui.events import PROGRESS, Run, guarded, private, reporter
from ui.models import Column, Failure, Models
from ui.state import AppState

if TYPE_CHECKING:
    from cse.encoder import Encoder

MOST, DEFAULT = 30, 8
SENTENCES = [
    "The doctor treated the patient in hospital.",
    "The orchestra played a slow symphony.",
    "The soldiers attacked the city at night.",
    "The bank raised its interest rates.",
]
EXPLANATION = (
    "The model's own word predictor is shown the sentence vector and names the likeliest words. A template pulls every "
    "sentence towards the same words; **denoising** subtracts what the template alone would say, so that what is left "
    "comes from the sentence (PromptBERT, section 4.2). The bundled backbone was pretrained to name a sentence's words "
    'at [MASK]; denoising takes the common ones out and moves rarer, telling ones up. Try "I am not happy."'
)


class Reading(NamedTuple):
    """The likeliest tokens with their probabilities, best first, and the template whose [MASK] predicts them."""

    before: list[tuple[str, float]]
    after: list[tuple[str, float]]
    template: str
    own: bool  # whether the method encodes with that template


def tokens(models: Models, sentence: str, k: int, report: Report = silent) -> dict[str, Reading | Failure]:
    """Each model's `k` likeliest tokens at [MASK] before and after denoising."""
    text = validation.sentence(sentence, "The sentence")
    count = validation.whole(k, "k", 1, MOST)

    def read(column: Column, encoder: Encoder) -> Reading:
        before, after = (encoder.top_tokens(text, count, denoise) for denoise in (False, True))
        return Reading(before, after, *template(encoder))

    return models.apply(read, report=report)


def template(encoder: Encoder) -> tuple[str, bool]:
    """The text whose [MASK] predicts an encoder's tokens, and whether it is the template it encodes with."""
    return encoder.prompt_template.text, encoder.prompt_template == encoder.method.template


def reading_html(reading: Reading) -> str:
    """Two lists of words with bars, and the template that predicted them."""
    top = max((probability for _, probability in (*reading.before, *reading.after)), default=1.0)
    lists = (("Before", reading.before), ("After denoising", reading.after))
    columns = [f"<div><h4>{title}</h4>{token_list(found, top)}</div>" for title, found in lists]
    note = "Asked with" if reading.own else "Reads no [MASK] itself; asked with"
    note_html = f'<p class="cse-note">{note} <code>{html.escape(reading.template)}</code></p>'
    return f'<div class="cse-two">{"".join(columns)}</div>{note_html}'


def token_list(found: list[tuple[str, float]], top: float) -> str:
    """Words, bars relative to the probability `top`, and percentages."""
    rows = [
        f'<li><span class="cse-token">{html.escape(token) or "·"}</span>{html.bar(probability / top)}'
        f'<span class="cse-score">{100 * probability:.1f} %</span></li>'
        for token, probability in found
    ]
    return f'<ol class="cse-tokens">{"".join(rows)}</ol>'


def tokens_tab(state: AppState, first: dict[str, Reading] | None = None) -> None:
    """The tab's content with its first results, where there are some."""
    heading("The words a vector says")
    gr.Markdown(EXPLANATION)
    with gr.Row(equal_height=True):
        sentence = gr.Textbox(SENTENCES[0], label="Sentence", scale=4, min_width=240)
        k = gr.Slider(1, MOST, DEFAULT, step=1, label="Words per list", scale=2, min_width=160)
        button = submit("Show words")
    examples = gr.Examples([[text] for text in SENTENCES], [sentence], label="Try", api_visibility="private")
    hint = html.hint("Press Enter or Show words.")
    output = result("tokens", html.columns(first, reading_html) if first else hint)

    def show(sentence: str, k: int, progress: gr.Progress = PROGRESS) -> str:
        return html.columns(tokens(state.models, sentence, k, reporter(progress)), reading_html)

    run = Run(guarded(show), [sentence, k], [output])
    private([button.click, sentence.submit], run, examples)
