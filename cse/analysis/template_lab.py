"""A model under another template: its score on graded pairs and its likeliest words.

With a template that it was not trained with, a checkpoint's scores are an experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.supervised import Pair
from cse.evaluation.metrics import Difference, correlation, pair_cosines, paired_bootstrap
from cse.methods.method import EMBEDDINGS, JOINED, Pooling
from cse.methods.templates import Template

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.evaluation import Encode


@dataclass(frozen=True)
class Trial:
    """A template's Spearman x 100 on graded pairs, and the denoised words at its [MASK] with their probabilities."""

    template: str
    score: float
    words: list[tuple[str, float]]


@dataclass(frozen=True)
class Comparison:
    """A model's own template and another on the same pairs, and the other's gain in points."""

    own: Trial
    other: Trial
    gain: Difference


def under(encoder: Encoder, template: Template) -> Encoder:
    """Return the encoder with `template` instead of its own, sharing all weights; itself if they are equal.

    Prefix, head and denoising stay; learned slots exist in its own template only. A model that averages tokens is read
    at the [MASK]. Raises ValueError for a template without one in that case, or that `Encoder.prompt_of` refuses, and
    for a model that averages embeddings.
    """
    if template == encoder.reading.template:
        return encoder
    if encoder.reading.pooling in EMBEDDINGS:
        raise ValueError(
            f"{encoder.name} averages the embeddings of a sentence's tokens, which no template changes; open the model "
            "with the pooling prompt to read it at [MASK]"
        )
    if encoder.reading.pooling in JOINED:
        raise ValueError(
            f"{encoder.name} joins two readings of a sentence, which no [MASK] replaces; give another model"
        )
    if encoder.reading.pooling is not Pooling.TOKEN and not template.prompts:
        raise ValueError(f"{encoder.name} averages a sentence's tokens; give a template with [MASK], to read it there")
    encoder.prompt_of(template)  # raises
    return encoder.reading_by(replace(encoder.reading, template=template, pooling=Pooling.TOKEN))


@dataclass(frozen=True)
class Question:
    """The graded pairs to score, and the `sentence` to read `k` words of, under both templates."""

    pairs: Sequence[Pair]
    sentence: str
    k: int


def compare(encoder: Encoder, template: Template, question: Question, known: Encode | None = None) -> Comparison:
    """Compare an encoder's own template with another one on a question.

    `known` replaces `encoder.encode` under its own template, for callers that have its vectors.
    """
    readers = (encoder, under(encoder, template))
    grades = np.array([grade for grade, _, _ in question.pairs])
    cosines = [pair_cosines(encode, question.pairs) for encode in (known or encoder.encode, readers[1].encode)]
    own, other = (
        Trial(
            reader.reading.template.text,
            round(correlation(of_reader, grades, f"the template {reader.reading.template.text!r}"), 2),
            reader.top_tokens(question.sentence, question.k),
        )
        for reader, of_reader in zip(readers, cosines, strict=True)
    )
    return Comparison(own, other, paired_bootstrap({"pairs": (cosines[1], cosines[0], grades)}))


def template_of(encoder: Encoder, text: str) -> Template:
    """The template of a text; the encoder's own, with its learned slots, if the texts are equal.

    Raises ValueError for a text without exactly one [X].
    """
    own = encoder.reading.template
    return own if text == own.text else Template(text)
