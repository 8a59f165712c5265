"""What another template makes of a model: its vectors, the words they say and how well they agree with grades.

A checkpoint read with a template that it was not trained with is an experiment; with its own it is the checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation.metrics import correlation, pair_cosines
from cse.evaluation.significance import Difference, paired_bootstrap
from cse.methods.method import Pooling
from cse.methods.templates import Template
from cse.text.sentences import Pair

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder
    from cse.evaluation import Encode


@dataclass(frozen=True)
class Trial:
    """A template's Spearman x 100 on graded pairs, and the words at its [MASK] with their probabilities, denoised."""

    template: str
    score: float
    words: list[tuple[str, float]]


@dataclass(frozen=True)
class Comparison:
    """A model's own template and another one on the same pairs, and what the other gains in points."""

    own: Trial
    other: Trial
    gain: Difference


def under(encoder: Encoder, template: Template) -> Encoder:
    """The encoder with `template` in place of its own, all weights shared; itself for the one it encodes with.

    Its prefix, head and denoising stay; learned slots stand in its own template alone. Raises ValueError for a model
    that averages tokens, and for a template that `Encoder.prompt_of` refuses.
    """
    if template == encoder.method.template:
        return encoder
    if encoder.method.pooling is not Pooling.TOKEN:
        raise ValueError(f"{encoder.name} averages the tokens of a sentence; a template is for models that read one")
    prompt, other = encoder.prompt_of(template), copy(encoder)
    other.forget_biases()  # the encoder's memory of them would grow with every template tried
    other.method = replace(encoder.method, views=((template,),))
    other.views = ((prompt,),)
    other.prompt_template, other.prompt = template, prompt
    return other


@dataclass(frozen=True)
class Question:
    """The graded pairs and the sentence that both templates are asked about, the latter in `k` words."""

    pairs: Sequence[Pair]
    sentence: str
    k: int


def compare(encoder: Encoder, template: Template, question: Question, known: Encode | None = None) -> Comparison:
    """What an encoder makes of a question under its own and another template.

    `known` encodes as the encoder does under its own template, where somebody knows its vectors already.
    """
    readers = (encoder, under(encoder, template))
    grades = np.array([grade for grade, _, _ in question.pairs])
    cosines = [pair_cosines(encode, question.pairs) for encode in (known or encoder.encode, readers[1].encode)]
    own, other = (
        Trial(
            reader.method.template.text,
            round(correlation(found, grades, f"the template {reader.method.template.text!r}"), 2),
            reader.top_tokens(question.sentence, question.k),
        )
        for reader, found in zip(readers, cosines, strict=True)
    )
    return Comparison(own, other, paired_bootstrap({"pairs": (cosines[1], cosines[0], grades)}))


def template_of(encoder: Encoder, text: str) -> Template:
    """The template of a text: the encoder's own where it reads so, with what it learned for it.

    Raises ValueError for a text without exactly one [X].
    """
    own = encoder.method.template
    return own if text == own.text else Template(text)
