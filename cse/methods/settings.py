"""The settings of a training run, each with its default, bounds and help; options, recipes and the API read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from typing import Any, get_type_hints

from cse.methods.method import TRAINED_POOLINGS, Contrast, Head, Method, Pooling, Reading, When
from cse.methods.templates import Template

KINDS = {"bool": bool, "int": int, "float": float, "str": str}
MAX_SEED = 2**32 - 1  # that scikit-learn and every generator here take
CALLED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _setting(
    default: Any, help_text: str, least: float = -math.inf, most: float = math.inf, choices: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"help": help_text, "least": least, "most": most, "choices": choices})


@dataclass(frozen=True)
class TrainConfig:
    """Settings of one training run; the defaults are what the methods share (SimCSE's released scripts).

    A setting whose help is empty has no option on the command line.
    """

    batch_size: int = _setting(64, "Examples per step; 64 to 512 by method.", 2)
    learning_rate: float = _setting(3e-5, "Peak learning rate, decayed to 0; 5e-7 to 3e-2 by method.", 0.0)
    epochs: int = _setting(1, "Passes over the data; 1 unless the paper says more.", 1)
    max_steps: int | None = _setting(None, "Stop after N batches drawn from all the data; default: no limit.", 1)
    max_length: int = _setting(32, "Tokens kept of a sentence; with [CLS] and [SEP] if it has no prompt; 32.", 3)
    temperature: float = _setting(0.05, "Divisor of the cosines in the loss; 0.05.", 1e-4)
    eval_every: int = _setting(125, "Steps between evaluations and saved states; 125.", 1)
    clip: float = _setting(1.0, "", 0.0)  # of the gradients' norm
    dropout: float | None = _setting(None, "Rate of every dropout; default: the preset's or the backbone's.", 0.0, 0.9)
    freeze_embeddings: bool = _setting(False, "Keep the word embeddings fixed; by default they are trained.")
    start_share: float = _setting(
        0.0, "Share of the initial weights averaged into those evaluated and saved (WiSE-FT); 0.", 0.0, 1.0
    )
    hinge: float = _setting(0.0, "Weight of PromCSE's energy-based hinge (10 there), for supervised dcpcse; 0.", 0.0)
    chunk: int | None = _setting(None, "Rows per forward pass, computed twice to save memory; default: all.", 1)
    compile: str = _setting(
        "auto",
        "Compile the passes of training: auto (on an NVIDIA GPU, in runs long enough to win it back), no or yes; auto.",
        choices=("auto", "no", "yes"),
    )
    seed: int = _setting(42, "Seed of data order, dropout and new parameters; 42.", 0, MAX_SEED)


@dataclass(frozen=True)
class Setting:
    """The values a setting takes: of type `kind`, from `least` to `most`, or one of `choices`."""

    name: str
    kind: type
    help: str
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()

    def check(self, value: Any) -> None:
        """Raise ValueError for a value of another type or out of bounds; None stands for the preset's."""
        if value is None:
            return
        if self.kind is str:
            if value not in self.choices:
                raise ValueError(f"{self.name} is {value!r}; give {' or '.join(self.choices)}")
            return
        if type(value) not in ((int, float) if self.kind is float else (self.kind,)):
            raise ValueError(f"{self.name} is {value!r}; give {CALLED[self.kind]}")
        if not self.least <= value < math.inf:
            raise ValueError(f"{self.name} is {value!r}; give at least {self.least}")
        if value > self.most:
            raise ValueError(f"{self.name} is {value!r}; give at most {self.most}")


METHOD_SETTINGS = {  # of the `Method`; None keeps the method's own
    setting.name: setting
    for setting in (
        Setting("prefix", int, "Prompt length of dcpcse; 4 to 16 by backbone.", 1),
        Setting(
            "mlm_weight", float, "Initial weight of the decaying masked-LM loss; 0, or 0.1 for dcpcse on RoBERTa.", 0.0
        ),
        Setting(
            "pooling", str,
            "Source of the vector if the method has no prompt: cls or mean; default: what a sentence-transformers "
            "folder records, else the method's.",
            choices=tuple(TRAINED_POOLINGS),
        ),
        Setting(
            "head", bool,
            "Train with the linear layer and tanh over the vector (SimCSE's MLP); mean pooling has none; default: the "
            "method's.",
        ),
    )
}  # fmt: skip
SETTINGS = {
    declared.name: Setting(declared.name, KINDS[str(declared.type).removesuffix(" | None")], **declared.metadata)
    for declared in fields(TrainConfig)
} | METHOD_SETTINGS


ENUMS: dict[str, Callable[[Any], Any]] = {
    "denoise": When, "head": Head, "head_when": When, "pooling": Pooling, "training_pooling": Pooling,
    "contrast": Contrast, "layers": tuple,
}  # fmt: skip
# Fields that are part of a fingerprint only if they differ from these values, with which older models are known.
NEWER = {"normalised": False, "prompt_pooled": True, "typed_specials": False, "lower_case": False, "layers": ()}
READING = {setting.name for setting in fields(Reading)} - {"template"}
KNOWN = {setting.name for setting in fields(Method)} - {"reading", "further"} | READING | {"views"}


def identity(method: Method) -> dict[str, Any]:
    """Return a method's part of an encoder's fingerprint: its reading.

    The name, the further views and two settings of training are in it because every index built so far is known by
    such a fingerprint; no other field of `Method` is.
    """
    reading = {name: item for name, item in asdict(method.reading).items() if name not in NEWER or item != NEWER[name]}
    views = ((reading.pop("template"),), *asdict(method)["further"])
    training = {"supervised": method.supervised, "mlm_weight": method.mlm_weight}
    return {"name": method.name, "views": views, **reading, **training}


def to_json(method: Method) -> dict[str, Any]:
    """Return a method as one object of plain JSON values: its identity, texts, and fields that are not the default."""
    values = asdict(method)
    changed = [item.name for item in fields(method) if item.compare and values[item.name] != item.default]
    first = dict.fromkeys(("name", "views", "summary", "citation"))
    return first | identity(method) | {name: values[name] for name in changed if name not in ("reading", "further")}


def from_json(value: dict[str, Any]) -> Method:
    """Read the output of `to_json`. Raises ValueError for unknown or missing fields."""
    if unknown := value.keys() - KNOWN:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    try:
        values = {name: ENUMS[name](item) if name in ENUMS else item for name, item in value.items()}
        views = [tuple(Template(**template) for template in view) for view in values.pop("views")]
        if not views or not all(views):
            raise ValueError("it has no views")
        (template,), *further = views
        reading = Reading(template, **{name: values.pop(name) for name in READING & values.keys()})
        method = Method(reading=reading, further=tuple(further), **values)
        parts: list[Any] = [method, reading, *chain.from_iterable(method.views)]
        for part in parts:
            _check_types(part)
        return method
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a method: {error}") from error


def _check_types(part: Any) -> None:
    """Raise TypeError for a number, a text or a claim of another type in a dataclass: `soft` 0.5 would be true."""
    for name, hint in get_type_hints(type(part)).items():
        value = getattr(part, name)
        kinds = (int, float) if hint is float else (hint,)
        if hint in (str, bool, int, float) and type(value) not in kinds:
            raise TypeError(f"its {name} is {value!r:.40}, not {hint.__name__}")
