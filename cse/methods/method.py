"""Methods as values: which views of a sentence are made, what is learned, and when to denoise.

Training encodes the views of each sentence, pulls the first two together and pushes the rest of the batch away;
encoding uses the first view alone. `cse.methods.catalogue` holds the methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from cse.methods.templates import ON_ROBERTA, Template

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
    """Sources of the vector: the template's mask (or first token), or a reading of all tokens, special ones included.

    Three of them join two readings, one after the other, in a vector of twice the width.
    """

    TOKEN = "token"
    MEAN = "mean"
    WEIGHTED_MEAN = "weighted-mean"  # the weight of a token is its place in the row, from 1
    MEAN_SQRT_LEN = "mean-sqrt-len"  # the sum over the root of the number of tokens
    MAX = "max"  # of every dimension
    LAST = "last"  # the last token
    FIRST_LAST = "first-last"  # embedding layer's output and last layer
    LAST_TWO = "last-two"  # the last two layers
    STATIC = "static"  # word embeddings
    STATIC_OUTPUT = "static-output"  # output embeddings (rows of the decoder)
    CLS_MEAN = "cls-mean"  # the first token's state, then the mean
    MEAN_CLS = "mean-cls"
    CLS_FIRST_LAST = "cls-first-last"  # as cls-mean, of the layers of first-last


TRAINED_POOLINGS = {"cls": Pooling.TOKEN, "mean": Pooling.MEAN}  # of a template without a mask
# Layers that are averaged before anything is read; 0 is the embedding layer's output, -1 the last layer.
LAYERS: dict[Pooling, tuple[int, ...]] = {
    Pooling.FIRST_LAST: (0, -1), Pooling.LAST_TWO: (-2, -1), Pooling.CLS_FIRST_LAST: (0, -1),
}  # fmt: skip
LAST_LAYER = (-1,)  # of every other pooling
JOINED = {
    Pooling.CLS_MEAN: (Pooling.TOKEN, Pooling.MEAN), Pooling.MEAN_CLS: (Pooling.MEAN, Pooling.TOKEN),
    Pooling.CLS_FIRST_LAST: (Pooling.TOKEN, Pooling.MEAN),
}  # fmt: skip
EMBEDDINGS = (Pooling.STATIC, Pooling.STATIC_OUTPUT)  # a mean over rows of a matrix, without any layer


class Head(str, Enum):
    """Heads on the pooled vector: a linear layer with tanh (SimCSE's is a new one), the masked LM's own transform, a
    linear layer alone, or several `layers` (both as in sentence-transformers).
    """

    TANH = "tanh"
    LINEAR = "linear"
    TRANSFORM = "transform"
    LAYERS = "layers"


LAYER_KINDS = ("linear", "tanh", "norm", "unit")  # of `Head.LAYERS`


class Contrast(str, Enum):
    """Negatives of a view: the second views of the batch, or all its other views, in both directions."""

    INFO_NCE = "info-nce"
    NT_XENT = "nt-xent"


@dataclass(frozen=True)
class Reading:
    """How a vector is read: all that it depends on besides the parameters.

    `template` is that of the first view. `frozen`: the backbone's parameters are not learned. `prefix`: length of the
    per-layer key/value prompt. `specials_in_bias`: the template bias sees the first and last token.
    The rest are settings of sentence-transformers' folders. `normalised`: the vector is scaled to length 1.
    `prompt_pooled`: the pooling reads the tokens of a prompt too. `typed_specials`: a typed "[MASK]" is that token, not
    text. `lower_case`: the text is lower-cased first. `layers` are those of `Head.LAYERS` in turn: linear, tanh, norm
    (a layer normalisation) and unit (the vector is scaled to length 1).
    """

    template: Template
    denoise: When = When.NEVER
    head: Head = Head.TANH
    head_when: When = When.TRAINING
    frozen: bool = False
    prefix: int = 0
    pooling: Pooling = Pooling.TOKEN
    specials_in_bias: bool = True
    normalised: bool = False
    prompt_pooled: bool = True
    typed_specials: bool = False
    lower_case: bool = False
    layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, int) or self.prefix < 0:
            raise ValueError(f"prefix {self.prefix!r} is not a length")
        if odd := [layer for layer in self.layers if layer not in LAYER_KINDS]:
            raise ValueError(f"layer {odd[0]!r} is unknown; choose from {', '.join(LAYER_KINDS)}")

    @property
    def at_mask(self) -> bool:
        """True if the vector is read at the template's [MASK]."""
        return self.pooling is Pooling.TOKEN and self.template.prompts

    @property
    def head_layers(self) -> tuple[str, ...]:
        """The kinds of the layers of the head in encoding, as in `layers`; none for a transform or no head."""
        if self.head_when is not When.ALWAYS or self.head is Head.TRANSFORM:
            return ()
        return {Head.TANH: ("linear", "tanh"), Head.LINEAR: ("linear",)}.get(self.head, self.layers)

    def width(self, hidden: int) -> int:
        """The numbers of a vector before its head, for a backbone of `hidden` dimensions."""
        return hidden * len(JOINED.get(self.pooling, (self.pooling,)))


@dataclass(frozen=True)
class Method:
    """A reading, and what training needs besides.

    `further` are the views after the first. `supervised`: view k takes text k of an example; otherwise all views take
    the same sentence. `mlm_weight`: initial weight of the decaying masked-LM loss. `untrained`: a pooling of a
    backbone, with nothing learned. `cutoff` is the share of embedding dimensions cut from view 1, `repetition` the
    largest share of its tokens that view 2 repeats, `shuffled` permutes the positions of view 2
    (`cse.training.step`); `queue` is the number of additional negatives from a momentum encoder
    (`cse.training.losses`), `training_pooling` replaces the reading's. `roberta_head` replaces its head on RoBERTa.
    `title` is the name as its paper writes it, empty for a variant; `arxiv` the paper's number on arXiv.
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
    title: str = field(default="", compare=False)
    arxiv: str = field(default="", compare=False)

    @property
    def views(self) -> tuple[View, ...]:
        """The views of training; the first is that of the reading."""
        return ((self.reading.template,), *self.further)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a run may change, by name (`cse.methods.settings.METHOD_SETTINGS`); None: it has none."""
        names = {value: name for name, value in TRAINED_POOLINGS.items()}
        pooling = None if self.reading.template.prompts else names.get(self.reading.pooling)
        # Mean pooling has no head anyway; where one token is read, a run was told to leave it out.
        head = False if self.reading.head_when is When.NEVER and pooling != "mean" else None
        return {"prefix": self.reading.prefix or None, "mlm_weight": self.mlm_weight, "pooling": pooling, "head": head}

    @property
    def in_encoding(self) -> Method:
        """The method without further views and without steps of training alone."""
        denoise, head_when = self.reading.denoise.in_encoding, self.reading.head_when.in_encoding
        return self.replaced(further=(), denoise=denoise, head_when=head_when)

    def replaced(self, **values: Any) -> Method:
        """Return the method with other values of its fields and of those of its reading."""
        of_reading = {setting.name: values.pop(setting.name) for setting in fields(Reading) if setting.name in values}
        return replace(self, reading=replace(self.reading, **of_reading), **values)

    def changed(self, *, pooling: str | None = None, head: bool | None = None, **settings: Any) -> Method:
        """Return the method with other `settings`; None keeps the method's own.

        Mean pooling has no head, as in SimCSE's released code, and is the same in training. Raises ValueError for a
        setting that the method does not have.
        """
        changes = {name: value for name, value in settings.items() if value is not None}
        if "prefix" in changes and not self.reading.prefix:
            raise ValueError(f"{self.name} has no prefix; `prefix` is for dcpcse")
        if pooling not in (None, self.settings["pooling"]):
            if self.reading.template.prompts:
                raise ValueError(f"{self.name} reads the vector at its prompt's [MASK]; leave out `pooling`")
            changes |= {"pooling": TRAINED_POOLINGS[str(pooling)], "training_pooling": None}
            changes |= {"head_when": When.NEVER} if pooling == "mean" else {}
        if head is False:
            changes["head_when"] = When.NEVER
        elif head and changes.get("head_when", self.reading.head_when) is When.NEVER:
            raise ValueError(
                f"{self.name} has no head{' over mean pooling' if pooling == 'mean' else ''}; leave out `head`"
            )
        return self.replaced(**changes)

    def on_roberta(self) -> Method:
        """Return the method for a RoBERTa backbone; views with several templates stay the same (ConPVP)."""
        further = tuple((ON_ROBERTA.get(view[0], view[0]),) if len(view) == 1 else view for view in self.further)
        template = ON_ROBERTA.get(self.reading.template, self.reading.template)
        return self.replaced(template=template, further=further, head=self.roberta_head or self.reading.head)
