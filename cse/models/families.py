"""The families of published checkpoints as values: how each is read, and what tells it from the others.

Adding a family is one entry of `FAMILIES`. Layouts and key names are those of the released training code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cse.errors import ArtefactError
from cse.methods.method import METHODS, SUPERVISED, Method, When
from cse.methods.templates import Template
from cse.storage.hub import split_revision

HEADS = ("mlp.", "pooler.")  # where a head lies as the training code saves it, and as SimCSE's converter renames it

Fit = Callable[[Method, int], Method]


def _as_it_is(method: Method, rows: int) -> Method:
    return method


def _prefix(method: Method, rows: int) -> Method:
    return replace(method, prefix=rows)


def _slots_before_the_mask(method: Method, rows: int) -> Method:
    return replace(method, views=((Template(f"[X] {'[P]' * rows} [MASK] ."),),))


@dataclass(frozen=True)
class Family:
    """A format of checkpoints: the `method` whose encoding reads it, and the `ids` under which it is published.

    `tensor` is the key of what it learned beside the backbone and the head, `learned` what `Encoder` calls that, and
    `fit` makes the method fit its number of rows. `mark` is a pattern of keys that no other family stores.
    """

    name: str
    method: Method
    ids: tuple[str, ...] = ()
    mark: str | None = None
    tensor: str | None = None
    learned: str = ""
    fit: Fit = _as_it_is

    def reading(self, roberta: bool, rows: int) -> Method:
        """The method that encodes as the family does: its first view, its head only where encoding has it.

        `rows` is the number of rows of `tensor`.
        """
        method = self.fit(self.method.on_roberta() if roberta else self.method, rows)
        return replace(
            method, views=method.views[:1], head_when=When.ALWAYS if method.head_when is When.ALWAYS else When.NEVER
        )


def _ids(owner: str, start: str, *ends: str) -> tuple[str, ...]:
    return tuple(f"{owner}/{start}-{end}" for end in ends)


SIZES = ("bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large")
PROMCSE = {"mark": r"prefix_encoder\..+", "tensor": "prefix_encoder.embedding.weight", "learned": "prefix"}

# Where a file has the marks of several families, the first of them has it.
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
        # Its RoBERTa has spaces and pads between sentence and slots; here nothing stands there (docs/decisions.md).
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
    """The first key that only some families store, and these families; an empty key and none where there is none."""
    for family in FAMILIES.values():
        if family.mark and (found := sorted(key for key in keys if re.fullmatch(family.mark, key))):
            return found[0], tuple(other for other in FAMILIES.values() if other.mark == family.mark)
    return "", ()


def identify(name: str, keys: frozenset[str], asked: str | None) -> Family | None:
    """The family of the model `name` that stores `keys`; None where nothing says that it is of one.

    The keys decide, then the table of published ids, then the family that is `asked` for by name. Raises ValueError
    where these contradict each other, ArtefactError where the keys leave more than one family.
    """
    key, possible = marked(keys)
    published = PUBLISHED_IDS.get(split_revision(name)[0])
    stated = FAMILIES[asked] if asked else published
    if stated and published and stated is not published:
        raise ValueError(f"{name} is published as {published.name}, not as {stated.name}; leave out `family`")
    if stated and possible and stated not in possible:
        raise ValueError(f"{name}: only {_names(possible)} has {key}, not {stated.name}; give that `family` or none")
    if stated or len(possible) < 2:
        return stated or next(iter(possible), None)
    raise ArtefactError(f"{name}: {key} may be of {_names(possible)}; give one of them as `family`")


def check_plain(name: str, keys: frozenset[str]) -> None:
    """Raise ArtefactError where a model that nothing else identifies looks like a converted or raw checkpoint.

    That is one with a contrastive head, or with a pooler that lies where SimCSE's converter puts the head; a pretrained
    model has its pooler among the keys of its backbone.
    """
    if head := sorted(key for key in keys if key.startswith(HEADS)):
        raise ArtefactError(
            f"{name}: its {head[0]} is a trained head or a plain pooler, which its files do not tell; give `family` "
            f"({', '.join(FAMILIES)}), or a `pooling` to read it as a plain backbone"
        )


def _names(families: Iterable[Family]) -> str:
    return " or ".join(family.name for family in families)
