"""The template lab: every model under the visitor's template and under its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import gradio as gr

from cse.analysis.template_lab import Comparison, Question, Trial, compare, template_of
from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.components import heading, result, submit
from cse.app.forms.events import PROGRESS, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.sections.tokens import MOST, SENTENCES, template_html, token_list
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO
from cse.methods.templates import MANUAL, MEANS, MEANS_OF
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.evaluation.metrics import Difference

LONGEST = 300  # characters of a template
WORDS = 6
WIDTH = 18.0  # rem of a model's two lists
OTHER = '"[X]" is a [MASK] one'
TEMPLATES = [OTHER, MEANS.text, MEANS_OF.text, MANUAL.text, "[X] [MASK] ."]
EXPLANATION = (
    "<p><b>[X]</b> is the sentence, <b>[MASK]</b> where the vector is read. The weights stay as they are, so a "
    "template that the model was not trained with is an experiment.</p><p>The score is Spearman's correlation × 100 of "
    "the cosines with the grades of the demo's 60 pairs.</p>"
)
EXPLAINED = ("[MASK] template", "Spearman", "significance")
NO_MASK = (
    "Trained without a [MASK]: its own score is that of its usual vectors; its words come from the same question as "
    "above."
)


def try_template(
    state: AppState, sentence: str, template: str, k: int = WORDS, report: Report = silent
) -> dict[str, Comparison | Failure]:
    """Return each model's words for a sentence and score on the graded pairs, under its own and another template."""
    from cse.corpus.supervised import scored_pairs

    spoken, text = validation.sentence(sentence, "The sentence"), validation.sentence(template, "The template")
    if len(text) > LONGEST:
        reason = f"The template has {len(text):,} characters; give at most {LONGEST}."
        raise validation.FieldError("The template", reason)
    if (text.count("[X]"), text.count("[MASK]")) != (1, 1):
        reason = f'The template "{text}" needs one [X], for the sentence, and one [MASK].'
        raise validation.FieldError("The template", reason)
    question = Question(scored_pairs(DEMO / "pairs.tsv"), spoken, validation.whole(k, "k", 1, MOST))

    def tried(column: Column, encoder: Encoder) -> Comparison:
        known = state.models.reader(encoder).encode
        return compare(encoder, template_of(encoder, text), question, known)

    return state.models.apply(tried, report=report)


def tried_html(sentence: str, answers: Mapping[str, Comparison | Failure]) -> str:
    """Return a column per model: its own template and the other one, with their scores and denoised words."""
    words = (
        probability
        for answer in divided(answers)[0].values()
        for each in (answer.own, answer.other)
        for _, probability in each.words
    )
    top = max(words, default=1.0)
    return html.columns(answers, lambda tried: both_html(sentence, tried, top), width=WIDTH)


def both_html(sentence: str, tried: Comparison, top: float) -> str:
    """Return a model's two trials side by side, and the gain of the other template."""
    note = "" if "[MASK]" in tried.own.template else f'<p class="cse-note">{NO_MASK}</p>'
    sides = "".join(
        trial_html(sentence, top, title, found) for title, found in (("Its own", tried.own), ("Yours", tried.other))
    )
    return f'<p class="cse-gain">{gain_html(tried.gain)}</p><div class="cse-three">{sides}</div>{note}'


def gain_html(gain: Difference) -> str:
    """Return the gain of the other template with its 95 % interval and verdict."""
    value, low, high = (f"{bound:+.1f}".replace("-", "\N{MINUS SIGN}") for bound in (gain.value, gain.low, gain.high))
    verdict = "no significant difference" if gain.noise else "a significant difference"
    return f"<b>{value}</b> <small>95 % interval {low} to {high}: {verdict}</small>"


def trial_html(sentence: str, top: float, title: str, found: Trial) -> str:
    """Return a template around the sentence, its score and its words, with bars relative to the probability `top`."""
    return (
        f'<div><h4>{title}</h4><p class="cse-number">{found.score:.1f}</p>'
        f"{template_html(found.template, sentence)}{token_list(found.words, top)}</div>"
    )


def lab_section(
    state: AppState, sentence: gr.components.Component, first: dict[str, Comparison] | None = None
) -> Linked:
    """Add the lab for the `sentence`, with its first result if given. Returns its part of the address."""
    heading("Template lab", "What if a model read another template?", EXPLANATION, EXPLAINED)
    with gr.Row(equal_height=True, elem_classes="cse-fields"):
        template = gr.Textbox(OTHER, label="Template", scale=4, min_width=200)
        button = submit("Try template")
    with gr.Row(elem_classes="cse-tries"):
        examples = gr.Examples([[text] for text in TEMPLATES], [template], label="Try", api_visibility="private")
    opened = tried_html(SENTENCES[0], first) if first else html.hint("Press Try template.")
    output = result("template-lab", opened)

    def try_it(template: str, sentence: str, progress: gr.Progress = PROGRESS) -> str:
        return tried_html(sentence, try_template(state, sentence, template, report=reporter(progress)))

    run = refusing(try_it, {"The template": template, "The sentence": sentence}, [output])
    triggers = (button.click, template.submit)
    private(triggers, run, examples)
    trial = Result("The template lab", "template", ("template", "sentence"))
    return Linked(("template",), run, triggers, examples=examples, results=[trial])
