"""Families of published checkpoints as values: how each is read and recognised.

To add a family, add an entry to `FAMILIES`. Layouts and key names are those of the released training code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cse.errors import ArtefactError
from cse.files.hub import split_revision
from cse.methods.catalogue import METHODS, SUPERVISED
from cse.methods.method import Method, Reading
from cse.methods.templates import Template

HEADS = ("mlp.", "pooler.")  # key prefixes of a head in the training code's files and after SimCSE's converter

Fit = Callable[[Reading, int], Reading]


def _as_it_is(reading: Reading, rows: int) -> Reading:
    return reading


def _prefix(reading: Reading, rows: int) -> Reading:
    return replace(reading, prefix=rows)


def _slots_before_the_mask(reading: Reading, rows: int) -> Reading:
    return replace(reading, template=Template(f"[X] {'[P]' * rows} [MASK] ."))


@dataclass(frozen=True)
class Family:
    """A format of checkpoints: the `method` that encodes like it, and the hub `ids` it is published under.

    `tensor` is the key of a learned tensor other than backbone and head, `learned` the attribute of `Encoder` for it,
    and `fit` adapts the reading to its number of rows. `mark` is a pattern of keys that only this format stores.
    """

    name: str
    method: Method
    ids: tuple[str, ...] = ()
    mark: str | None = None
    tensor: str | None = None
    learned: str = ""
    fit: Fit = _as_it_is

    def published(self, roberta: bool, rows: int) -> Method:
        """Return the method of a checkpoint: the first view only, and the head only if encoding uses it.

        `rows` is the number of rows of `tensor`.
        """
        method = self.method.on_roberta() if roberta else self.method
        reading = self.fit(method.reading, rows)
        return replace(method, further=(), reading=replace(reading, head_when=reading.head_when.in_encoding))


def _ids(owner: str, start: str, *ends: str) -> tuple[str, ...]:
    return tuple(f"{owner}/{start}-{end}" for end in ends)


SIZES = ("bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large")
PROMCSE = {"mark": r"prefix_encoder\..+", "tensor": "prefix_encoder.embedding.weight", "learned": "prefix"}

# If a file has the marks of several families, the first one applies.
FAMILIES = {
    family.name: family
    for family in (
        Family("simcse", METHODS["simcse"], _ids("princeton-nlp", "unsup-simcse", *SIZES)),
        Family("simcse-supervised", SUPERVISED["simcse"], _ids("princeton-nlp", "sup-simcse", *SIZES)),
        Family(
            "esimcse", METHODS["esimcse"],
            _ids("ffgcc", "esimcse", *SIZES), r"momentum_model\..+",
        ),
        Family("promptbert", METHODS["promptbert"], _ids("royokong", "unsup", "PromptBERT", "PromptRoBERTa")),
        Family(
            "promcse", METHODS["dcpcse"], ("YuxinJiang/unsup-promcse-bert-base-uncased",), fit=_prefix, **PROMCSE
        ),
        Family(
            "promcse-supervised", SUPERVISED["dcpcse"], _ids("YuxinJiang", "sup-promcse", *SIZES[2:]), fit=_prefix,
            **PROMCSE,
        ),
        # Its RoBERTa form has spaces and pads between sentence and slots; they are omitted here (docs/decisions.md).
        Family(
            "conpvp", METHODS["conpvp"], mark="endp", tensor="endp", learned="slots", fit=_slots_before_the_mask
        ),
        Family("optiprompt", METHODS["optiprompt"], mark="p_mbv", tensor="p_mbv", learned="slots"),
        Family(
            "promptbert-supervised", SUPERVISED["promptbert"], _ids("royokong", "sup", "PromptBERT", "PromptRoBERTa"),
            r"(mlp|pooler)\.LayerNorm\.weight",  # of the BERT form
        ),
    )
}  # fmt: skip
PUBLISHED_IDS = {name: family for family in FAMILIES.values() for name in family.ids}


def marked(keys: Iterable[str]) -> tuple[str, tuple[Family, ...]]:
    """Return the first key with a family's mark and the families with this mark; "" and () if there is none."""
    for family in FAMILIES.values():
        if family.mark and (marks := sorted(key for key in keys if re.fullmatch(family.mark, key))):
            return marks[0], tuple(other for other in FAMILIES.values() if other.mark == family.mark)
    return "", ()


def identify(name: str, keys: frozenset[str], requested: str | None) -> Family | None:
    """Return the family of the model `name` that stores `keys`; None if nothing identifies one.

    The keys decide, then the table of published ids, then `requested`, a family's name. Raises ValueError if these
    contradict each other, ArtefactError if more than one family remains.
    """
    key, possible = marked(keys)
    published = PUBLISHED_IDS.get(split_revision(name)[0])
    stated = FAMILIES[requested] if requested else published
    if stated and published and stated is not published:
        raise ValueError(f"{name} is published as {published.name}, not as {stated.name}; leave out `family`")
    if stated and possible and stated not in possible:
        raise ValueError(f"{name}: only {_names(possible)} has {key}, not {stated.name}; give that `family` or none")
    if stated or len(possible) < 2:
        return stated or next(iter(possible), None)
    raise ArtefactError(f"{name}: {key} may be of {_names(possible)}; give one of them as `family`")


def check_plain(name: str, keys: frozenset[str]) -> None:
    """Raise ArtefactError if a model that nothing else identifies may be a published checkpoint.

    That is one with a contrastive head, or with a pooler at the key where SimCSE's converter puts the head; a
    pretrained model has its pooler among the keys of its backbone.
    """
    # SimCSE's converter writes the keys of a plain model with its pooler: a guess would be silently wrong for one.
    if head := sorted(key for key in keys if key.startswith(HEADS)):
        raise ArtefactError(
            f"{name}: its {head[0]} may be a trained head or a plain pooler; give `family` "
            f"({', '.join(FAMILIES)}), or a `pooling` to read it as a plain backbone"
        )


def _names(families: Iterable[Family]) -> str:
    return " or ".join(family.name for family in families)
