"""Methods as values: which views of a sentence are made, what is learned, and when to denoise.

Training encodes the views of each sentence, pulls the first two together and pushes the rest of the batch away;
encoding uses the first view alone. Adding a method is one `METHODS` entry, and its rows in `presets.PUBLISHED`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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


class Pooling(str, Enum):
    """Sources of the vector: the template's mask (or first token), or a mean over all tokens, special ones included."""

    TOKEN = "token"
    MEAN = "mean"
    FIRST_LAST = "first-last"  # embedding layer's output and last layer
    LAST_TWO = "last-two"  # the last two layers
    STATIC = "static"  # word embeddings
    STATIC_OUTPUT = "static-output"  # output embeddings (rows of the decoder)


READINGS = {"cls": Pooling.TOKEN, "mean": Pooling.MEAN}  # of a template without a mask


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
class Method:
    """A way to train and read sentence vectors.

    `frozen`: the backbone is not trained. `prefix`: length of the per-layer key/value prompt. `supervised`: view k
    takes text k of an example; otherwise all views take the same sentence. `specials_in_bias`: the template bias sees
    the first and last token. `mlm_weight`: initial weight of the decaying masked-LM loss. `untrained`: a pooling of
    a backbone, with nothing learned. Only `preset` reads `roberta_head` (replaces `head` on RoBERTa) and `settings_of`
    (the method whose published settings apply; empty: its own).

    For training only: `cutoff` is the share of embedding dimensions cut from view 1, `repetition` the largest share
    of its tokens that view 2 repeats, `shuffled` permutes the positions of view 2 (`cse.training.augmentation`);
    `queue` is the number of additional negatives from a momentum encoder (`cse.training.momentum`),
    `training_pooling` replaces `pooling`.
    """

    name: str
    views: tuple[View, ...]
    summary: str
    citation: str
    denoise: When = When.NEVER
    head: Head = Head.TANH
    head_when: When = When.TRAINING
    frozen: bool = False
    prefix: int = 0
    pooling: Pooling = Pooling.TOKEN
    specials_in_bias: bool = True
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
    settings_of: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.views or not all(self.views):
            raise ValueError(f"method {self.name!r} has no views")
        if not isinstance(self.prefix, int) or self.prefix < 0:
            raise ValueError(f"method {self.name!r} has prefix {self.prefix!r}, not a length")

    @property
    def template(self) -> Template:
        """The template used for encoding."""
        return self.views[0][0]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a run may change, by name (`cse.methods.settings.MethodSettings`); None: it has none."""
        names = {value: name for name, value in READINGS.items()}
        pooling = None if self.template.prompts else names.get(self.pooling)
        return {"prefix": self.prefix or None, "mlm_weight": self.mlm_weight, "pooling": pooling}

    def changed(self, *, pooling: str | None = None, **settings: Any) -> Method:
        """Return the method with other `settings`; None keeps the method's own.

        Mean pooling has no head, as in SimCSE's released code, and is the same in training. Raises ValueError for a
        setting that the method does not have.
        """
        given = {name: value for name, value in settings.items() if value is not None}
        if "prefix" in given and not self.prefix:
            raise ValueError(f"{self.name} has no prefix; `prefix` is for dcpcse")
        if pooling in (None, self.settings["pooling"]):
            return replace(self, **given)
        if self.template.prompts:
            raise ValueError(f"{self.name} reads the vector at its prompt's [MASK]; leave out `pooling`")
        given |= {"pooling": READINGS[str(pooling)], "training_pooling": None}
        return replace(self, **given, head_when=When.NEVER if pooling == "mean" else self.head_when)

    def on_roberta(self) -> Method:
        """Return the method for a RoBERTa backbone; views with several templates stay the same (ConPVP)."""
        views = tuple((ON_ROBERTA.get(view[0], view[0]),) if len(view) == 1 else view for view in self.views)
        return replace(self, views=views, head=self.roberta_head or self.head)


SIMCSE = Method(
    "simcse", ((PLAIN,), (PLAIN,)), "the same sentence twice; dropout is the only difference",
    "Gao, Yao and Chen 2021 (EMNLP)",
)  # fmt: skip
PROMPTBERT = Method(
    "promptbert", ((MEANS_OF,), (MEANS,)), "two templates read at [MASK], their bias subtracted in training",
    "Jiang et al. 2022 (EMNLP)", denoise=When.TRAINING,
    settings_of="promptbert",
)  # fmt: skip
DCPCSE = Method(
    "dcpcse", ((PLAIN,), (PLAIN,)), "frozen backbone; keys and values learned in front of every layer",
    "Jiang, Zhang and Wang 2022 (Findings of EMNLP)", frozen=True, prefix=16, settings_of="dcpcse",
)  # fmt: skip
CONPVP = Method(
    "conpvp", ((CONTINUOUS,), POSITIVE, NEGATIVE), "a continuous prompt against positive and negative prototypes",
    "Zeng et al. 2022 (Findings of EMNLP)", denoise=When.TRAINING, specials_in_bias=False,
    settings_of="conpvp",
)  # fmt: skip

METHODS = {
    method.name: method
    for method in (
        SIMCSE,
        PROMPTBERT,
        DCPCSE,
        CONPVP,
        Method(
            "optiprompt", ((OPTI,), (OPTI,)), "frozen backbone; the template's own words become learned vectors",
            "PromptBERT, section 4.3", head=Head.TRANSFORM, frozen=True,
        ),
        Method(
            "scpcse", ((SHALLOW,), (SHALLOW,)), "frozen backbone; learned input vectors only, DCPCSE made shallow",
            "DCPCSE, section 3.3 and appendix A", frozen=True,
        ),
        replace(
            SIMCSE, name="esimcse", repetition=0.32, queue=160, citation="Wu et al. 2022 (COLING)",
            summary="SimCSE with repeated word pieces and a queue of momentum negatives",
        ),
        Method(
            "consert", ((PLAIN,), (PLAIN,)), "mean pooling; dimensions cut off against positions shuffled, no dropout",
            "Yan et al. 2021 (ACL)", head_when=When.NEVER, pooling=Pooling.LAST_TWO, training_pooling=Pooling.MEAN,
            cutoff=0.2, shuffled=True, contrast=Contrast.NT_XENT, loss_weight=0.15,
        ),
        replace(
            CONPVP, name="conpvp-manual", views=((MANUAL,), POSITIVE, NEGATIVE),
            summary="ConPVP with a manual anchor (Table 4)",
        ),
        replace(
            PROMPTBERT, name="promptbert-same", views=((MEANS_OF,),) * 2, denoise=When.NEVER,
            summary="PromptBERT with one template, dropout differs (Table 8)",
        ),
        replace(
            PROMPTBERT, name="promptbert-no-denoising", denoise=When.NEVER,
            summary="PromptBERT with two templates, not denoised (Table 8)",
        ),
        replace(DCPCSE, name="dcpcse-mlm", summary="DCPCSE with the masked-LM term (Table 2)"),
        replace(DCPCSE, name="dcpcse-no-mlm", summary="DCPCSE without the masked-LM term (Table 2)"),
        replace(CONPVP, name="conpvp-no-negative", views=CONPVP.views[:2], summary="ConPVP without c- (Table 4)"),
        replace(
            CONPVP, name="conpvp-no-prototypes", views=((CONTINUOUS,), (CONTINUOUS,)), denoise=When.NEVER,
            summary="ConPVP without c+ and c-: the continuous prompt twice (Table 4)",
        ),
    )
}  # fmt: skip

# Texts are premise, entailed, contradicted; the head is kept for encoding (the methods' released evaluation).
SUPERVISED = {
    "simcse": replace(SIMCSE, views=((PLAIN,),) * 3, supervised=True, head_when=When.ALWAYS),
    "promptbert": replace(
        PROMPTBERT,
        views=((MEANS_OF,),) * 3,
        supervised=True,
        denoise=When.ALWAYS,
        head=Head.TRANSFORM,
        head_when=When.ALWAYS,
        roberta_head=Head.TANH,  # as in the released code
    ),
    "dcpcse": replace(DCPCSE, views=((PLAIN,),) * 3, supervised=True, head_when=When.ALWAYS, prefix=12),
}


def _pooling(name: str, summary: str, template: Template = PLAIN, citation: str = "", **fields: Any) -> Method:
    return Method(name, ((template,),), summary, citation, untrained=True, **{"head_when": When.NEVER, **fields})


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
