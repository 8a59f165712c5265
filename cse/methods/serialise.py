"""Methods as JSON, for checkpoints and encoder fingerprints."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from cse.methods.method import Contrast, Head, Method, Pooling, When
from cse.methods.templates import Template

FORMAT_1 = (
    "name", "views", "summary", "citation", "denoise", "head", "head_when", "frozen", "prefix", "pooling",
    "specials_in_bias", "supervised", "mlm_weight",
)  # fmt: skip


def to_json(method: Method) -> dict[str, Any]:
    """Return the method as plain JSON values; fields added after format 1 only if they differ from their default."""
    values = asdict(method)
    written = [field for field in fields(method) if field.compare]
    return {
        field.name: values[field.name]
        for field in written
        if field.name in FORMAT_1 or values[field.name] != field.default
    }


def encoding_json(method: Method) -> str:
    """Return the method's part of an encoder fingerprint: the fields of format 1, in that order.

    Add a later field only if encoding depends on it, and then only if it differs from its default: the fingerprints
    of existing checkpoints, indexes and results must not change.
    """
    values = asdict(method)
    return json.dumps({name: values[name] for name in FORMAT_1 if name not in ("summary", "citation")})


def from_json(value: dict[str, Any]) -> Method:
    """Read the output of `to_json`. Raises ValueError for unknown or missing fields."""
    try:
        views = tuple(tuple(Template(**template) for template in view) for view in value["views"])
        enums = {
            "denoise": When,
            "head": Head,
            "head_when": When,
            "pooling": Pooling,
            "contrast": Contrast,
            "training_pooling": Pooling,
        }
        known = {field.name for field in fields(Method)}
        if unknown := value.keys() - known:
            raise ValueError(f"unknown fields {sorted(unknown)}")
        return Method(
            **{**value, "views": views, **{key: enum(value[key]) for key, enum in enums.items() if key in value}}
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"incomplete method: {error}") from error
