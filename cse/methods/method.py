"""Methods as values: which views of a sentence are made, what is learned, and when to denoise.

Training encodes the views of each sentence, pulls the first two together and pushes the rest of the batch away;
encoding uses the first view alone. Adding a method is one `METHODS` entry, and its rows in `presets.PUBLISHED`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from cse.methods.templates import (
    CONTINUOUS,
    MANUAL,
    MEANS,
    MEANS_OF,
    NEGATIVE,
    ON_ROBERTA,
    OPTI,
    PLAIN,
    POSITIVE,
    SHALLOW,
    Template,
)

View = tuple[Template, ...]  # one template, or several of which each sentence draws one


class When(str, Enum):
    """Phases in which an encoder step applies."""

    NEVER = "never"
    TRAINING = "training"
    ALWAYS = "always"

    @property
    def in_encoding(self) -> When:
        """The phase without training: `ALWAYS` or `NEVER`."""
        return When.ALWAYS if self is When.ALWAYS else When.NEVER


class Pooling(str, Enum):
    """Sources of the vector: the template's mask (or first token), or a mean over all tokens, special ones included."""

    TOKEN = "token"
    MEAN = "mean"
    FIRST_LAST = "first-last"  # embedding layer's output and last layer
    LAST_TWO = "last-two"  # the last two layers
    STATIC = "static"  # word embeddings
    STATIC_OUTPUT = "static-output"  # output embeddings (rows of the decoder)


POOLINGS = {"cls": Pooling.TOKEN, "mean": Pooling.MEAN}  # of a template without a mask


class Head(str, Enum):
    """Heads on the pooled vector: a linear layer with tanh (SimCSE's is a new one), the masked LM's own transform, or
    a linear layer alone (as in sentence-transformers).
    """

    TANH = "tanh"
    LINEAR = "linear"
    TRANSFORM = "transform"


class Contrast(str, Enum):
    """Negatives of a view: the second views of the batch, or all its other views, in both directions."""

    INFO_NCE = "info-nce"
    NT_XENT = "nt-xent"


@dataclass(frozen=True)
class Reading:
    """How a vector is read: all that it depends on besides the parameters.

    `template` is that of the first view. `frozen`: the backbone's parameters are not learned. `prefix`: length of the
    per-layer key/value prompt. `specials_in_bias`: the template bias sees the first and last token.
    """

    template: Template
    denoise: When = When.NEVER
    head: Head = Head.TANH
    head_when: When = When.TRAINING
    frozen: bool = False
    prefix: int = 0
    pooling: Pooling = Pooling.TOKEN
    specials_in_bias: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, int) or self.prefix < 0:
            raise ValueError(f"prefix {self.prefix!r} is not a length")

    @property
    def at_mask(self) -> bool:
        """True if the vector is read at the template's [MASK]."""
        return self.pooling is Pooling.TOKEN and self.template.prompts


@dataclass(frozen=True)
class Method:
    """A reading, and what training needs besides.

    `further` are the views after the first. `supervised`: view k takes text k of an example; otherwise all views take
    the same sentence. `mlm_weight`: initial weight of the decaying masked-LM loss. `untrained`: a pooling of a
    backbone, with nothing learned. `cutoff` is the share of embedding dimensions cut from view 1, `repetition` the
    largest share of its tokens that view 2 repeats, `shuffled` permutes the positions of view 2
    (`cse.training.augmentation`); `queue` is the number of additional negatives from a momentum encoder
    (`cse.training.momentum`), `training_pooling` replaces the reading's. `roberta_head` replaces its head on RoBERTa.
    """

    name: str
    reading: Reading
    further: tuple[View, ...]
    summary: str
    citation: str
    supervised: bool = False
    mlm_weight: float = 0.0
    untrained: bool = False
    cutoff: float = 0.0
    repetition: float = 0.0
    shuffled: bool = False
    queue: int = 0
    training_pooling: Pooling | None = None
    contrast: Contrast = Contrast.INFO_NCE
    loss_weight: float = 1.0
    roberta_head: Head | None = field(default=None, compare=False)

    @property
    def views(self) -> tuple[View, ...]:
        """The views of training; the first is that of the reading."""
        return ((self.reading.template,), *self.further)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a run may change, by name (`cse.methods.settings.MethodSettings`); None: it has none."""
        names = {value: name for name, value in POOLINGS.items()}
        pooling = None if self.reading.template.prompts else names.get(self.reading.pooling)
        return {"prefix": self.reading.prefix or None, "mlm_weight": self.mlm_weight, "pooling": pooling}

    @property
    def in_encoding(self) -> Method:
        """The method without further views and without steps of training alone."""
        denoise, head_when = self.reading.denoise.in_encoding, self.reading.head_when.in_encoding
        return self.replaced(further=(), denoise=denoise, head_when=head_when)

    def replaced(self, **values: Any) -> Method:
        """Return the method with other values of its fields and of those of its reading."""
        of_reading = {each.name: values.pop(each.name) for each in fields(Reading) if each.name in values}
        return replace(self, reading=replace(self.reading, **of_reading), **values)

    def changed(self, *, pooling: str | None = None, **settings: Any) -> Method:
        """Return the method with other `settings`; None keeps the method's own.

        Mean pooling has no head, as in SimCSE's released code, and is the same in training. Raises ValueError for a
        setting that the method does not have.
        """
        given = {name: value for name, value in settings.items() if value is not None}
        if "prefix" in given and not self.reading.prefix:
            raise ValueError(f"{self.name} has no prefix; `prefix` is for dcpcse")
        if pooling not in (None, self.settings["pooling"]):
            if self.reading.template.prompts:
                raise ValueError(f"{self.name} reads the vector at its prompt's [MASK]; leave out `pooling`")
            given |= {"pooling": POOLINGS[str(pooling)], "training_pooling": None}
            given |= {"head_when": When.NEVER} if pooling == "mean" else {}
        return self.replaced(**given)

    def on_roberta(self) -> Method:
        """Return the method for a RoBERTa backbone; views with several templates stay the same (ConPVP)."""
        further = tuple((ON_ROBERTA.get(view[0], view[0]),) if len(view) == 1 else view for view in self.further)
        template = ON_ROBERTA.get(self.reading.template, self.reading.template)
        return self.replaced(template=template, further=further, head=self.roberta_head or self.reading.head)


SIMCSE = Method(
    "simcse", Reading(PLAIN), ((PLAIN,),), "the same sentence twice; dropout is the only difference",
    "Gao, Yao and Chen 2021 (EMNLP)",
)  # fmt: skip
PROMPTBERT = Method(
    "promptbert", Reading(MEANS_OF, When.TRAINING), ((MEANS,),),
    "two templates read at [MASK], their bias subtracted in training", "Jiang et al. 2022 (EMNLP)",
)  # fmt: skip
DCPCSE = Method(
    "dcpcse", Reading(PLAIN, frozen=True, prefix=16), ((PLAIN,),),
    "frozen backbone; keys and values learned in front of every layer",
    "Jiang, Zhang and Wang 2022 (Findings of EMNLP)",
)  # fmt: skip
CONPVP = Method(
    "conpvp", Reading(CONTINUOUS, When.TRAINING, specials_in_bias=False), (POSITIVE, NEGATIVE),
    "a continuous prompt against positive and negative prototypes", "Zeng et al. 2022 (Findings of EMNLP)",
)  # fmt: skip

METHODS = {
    method.name: method
    for method in (
        SIMCSE,
        PROMPTBERT,
        DCPCSE,
        CONPVP,
        Method(
            "optiprompt", Reading(OPTI, head=Head.TRANSFORM, frozen=True), ((OPTI,),),
            "frozen backbone; the template's own words become learned vectors", "PromptBERT, section 4.3",
        ),
        Method(
            "scpcse", Reading(SHALLOW, frozen=True), ((SHALLOW,),),
            "frozen backbone; learned input vectors only, DCPCSE made shallow", "DCPCSE, section 3.3 and appendix A",
        ),
        replace(
            SIMCSE, name="esimcse", repetition=0.32, queue=160, citation="Wu et al. 2022 (COLING)",
            summary="SimCSE with repeated word pieces and a queue of momentum negatives",
        ),
        Method(
            "consert", Reading(PLAIN, head_when=When.NEVER, pooling=Pooling.LAST_TWO), ((PLAIN,),),
            "mean pooling; dimensions cut off against positions shuffled, no dropout", "Yan et al. 2021 (ACL)",
            training_pooling=Pooling.MEAN, cutoff=0.2, shuffled=True, contrast=Contrast.NT_XENT, loss_weight=0.15,
        ),
        CONPVP.replaced(name="conpvp-manual", template=MANUAL, summary="ConPVP with a manual anchor (Table 4)"),
        PROMPTBERT.replaced(
            name="promptbert-same", further=((MEANS_OF,),), denoise=When.NEVER,
            summary="PromptBERT with one template, dropout differs (Table 8)",
        ),
        PROMPTBERT.replaced(
            name="promptbert-no-denoising", denoise=When.NEVER,
            summary="PromptBERT with two templates, not denoised (Table 8)",
        ),
        replace(DCPCSE, name="dcpcse-mlm", summary="DCPCSE with the masked-LM term (Table 2)"),
        replace(DCPCSE, name="dcpcse-no-mlm", summary="DCPCSE without the masked-LM term (Table 2)"),
        replace(CONPVP, name="conpvp-no-negative", further=(POSITIVE,), summary="ConPVP without c- (Table 4)"),
        CONPVP.replaced(
            name="conpvp-no-prototypes", further=((CONTINUOUS,),), denoise=When.NEVER,
            summary="ConPVP without c+ and c-: the continuous prompt twice (Table 4)",
        ),
    )
}  # fmt: skip

# Texts are premise, entailed, contradicted; the head is kept for encoding (the methods' released evaluation).
SUPERVISED = {
    "simcse": SIMCSE.replaced(further=((PLAIN,),) * 2, supervised=True, head_when=When.ALWAYS),
    "promptbert": PROMPTBERT.replaced(
        further=((MEANS_OF,),) * 2,
        supervised=True,
        denoise=When.ALWAYS,
        head=Head.TRANSFORM,
        head_when=When.ALWAYS,
        roberta_head=Head.TANH,  # as in the released code
    ),
    "dcpcse": DCPCSE.replaced(further=((PLAIN,),) * 2, supervised=True, head_when=When.ALWAYS, prefix=12),
}


def _pooling(name: str, summary: str, template: Template = PLAIN, citation: str = "", **reading: Any) -> Method:
    return Method(
        name, Reading(template, **{"head_when": When.NEVER, **reading}), (), summary, citation, untrained=True
    )


UNTRAINED = {
    method.name: method
    for method in (
        _pooling("mean", "mean of the last layer", pooling=Pooling.MEAN),
        _pooling("cls", "last layer at the first token"),
        _pooling("pooler", "the model's own pooler (linear, tanh) over the first token", head_when=When.ALWAYS),
        _pooling("first-last", "mean of the embedding layer and the last", pooling=Pooling.FIRST_LAST),
        _pooling("last-two", "mean of the last two layers", citation="ConSERT", pooling=Pooling.LAST_TWO),
        _pooling("static", "mean of the word embeddings", pooling=Pooling.STATIC),
        _pooling(
            "static-output", "mean of the output embeddings, the rows of the decoder", pooling=Pooling.STATIC_OUTPUT,
            citation="PromptBERT, Table 12",
        ),
        _pooling("prompt", "last layer at the template's [MASK]", MEANS, "PromptBERT, Table 4"),
        _pooling(
            "prompt-denoised", "last layer at the template's [MASK], minus what the template alone says there",
            MEANS, "PromptBERT, Table 9", denoise=When.ALWAYS,
        ),
    )
}  # fmt: skip
