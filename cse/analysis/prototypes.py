"""ConPVP's prototypes of a sentence: its vectors in positive and negative templates, compared with its own vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cse.encoding.rows import render
from cse.methods.catalogue import METHODS
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder
    from cse.methods.method import View


class Prototype(NamedTuple):
    """A training `template`, of the positive or negative view, and its cosine with the sentence's own vector."""

    template: str
    positive: bool
    cosine: float


def has_prototypes(encoder: Encoder) -> bool:
    """True if the model was trained with templates drawn from sets."""
    return bool(_sets(encoder))


def prototypes(encoder: Encoder, sentence: str) -> list[Prototype]:
    """A sentence's prototypes, nearest first (ConPVP, section 3.1).

    The vectors are those of the loss, without the training head, which checkpoints do not keep: hidden states at
    [MASK] minus the template's bias. Raises ValueError for a model without prototypes.
    """
    sets = _sets(encoder)
    if not sets:
        raise ValueError(f"{encoder.name} was trained without prototypes")
    drawn = [(template, view == 0) for view, templates in enumerate(sets) for template in templates]
    templates = [encoder.views[0][0], *(render(template, encoder.tokenizer) for template, _ in drawn)]
    contents = encoder.tokenise([sentence] * len(templates), templates)
    spoken, alone = encoder.mask_states(contents, templates)
    vectors = spoken - alone
    near = cosines(vectors[:1].repeat(len(drawn), 0), vectors[1:])
    found = [
        Prototype(template.text, positive, float(cosine))
        for (template, positive), cosine in zip(drawn, near, strict=True)
    ]
    return sorted(found, key=lambda prototype: -prototype.cosine)


def _sets(encoder: Encoder) -> tuple[View, ...]:
    """The positive templates and the negative ones, if any.

    A published checkpoint has only its first view; the other views are taken from its method.
    """
    method = encoder.method
    views = method.views if len(method.views) > 1 else getattr(METHODS.get(method.name), "views", ())
    return views[1:] if any(len(view) > 1 for view in views[1:]) else ()
