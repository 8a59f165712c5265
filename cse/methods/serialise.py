"""Methods as JSON, for checkpoints and encoder fingerprints."""

from __future__ import annotations

from dataclasses import asdict, fields
from itertools import chain
from typing import Any, get_type_hints

from cse.methods.method import Contrast, Head, Method, Pooling, Reading, When
from cse.methods.templates import Template

ENUMS = {
    "denoise": When, "head": Head, "head_when": When, "pooling": Pooling, "training_pooling": Pooling,
    "contrast": Contrast,
}  # fmt: skip
# Fields that are part of a fingerprint only if they differ from these values, with which older models are known.
NEWER = {"normalised": False, "prompt_pooled": True, "typed_specials": False, "lower_case": False}
READING = {each.name for each in fields(Reading)} - {"template"}
KNOWN = {each.name for each in fields(Method)} - {"reading", "further"} | READING | {"views"}


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
    written = [each.name for each in fields(method) if each.compare and values[each.name] != each.default]
    first = dict.fromkeys(("name", "views", "summary", "citation"))
    return first | identity(method) | {name: values[name] for name in written if name not in ("reading", "further")}


def from_json(value: dict[str, Any]) -> Method:
    """Read the output of `to_json`. Raises ValueError for unknown or missing fields."""
    if unknown := value.keys() - KNOWN:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    try:
        given = {name: ENUMS[name](each) if name in ENUMS else each for name, each in value.items()}
        views = [tuple(Template(**each) for each in view) for view in given.pop("views")]
        if not views or not all(views):
            raise ValueError("it has no views")
        (template,), *further = views
        reading = Reading(template, **{name: given.pop(name) for name in READING & given.keys()})
        method = Method(reading=reading, further=tuple(further), **given)
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
