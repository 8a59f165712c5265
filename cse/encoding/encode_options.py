"""Arguments of `SentenceModel.encode`: names in other versions, and checks of their values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from cse.vectors import PRECISIONS

METHOD = TypeVar("METHOD", bound=Callable[..., Any])


def also_sentences(encode: METHOD) -> METHOD:
    """Accept `sentences=` for `inputs`, its name before sentence-transformers 6."""

    @wraps(encode)
    def encode_either(self: Any, *args: Any, **options: Any) -> Any:
        if "sentences" in options and not args:
            options.setdefault("inputs", options.pop("sentences"))
        return encode(self, *args, **options)

    return cast("METHOD", encode_either)


def check_options(
    output_value: str, precision: str | None, truncate_dim: int | None, device: Any, pool: Any, others: dict[str, Any]
) -> None:
    """Raise ValueError, with the cure, for an argument that `encode` does not support."""
    if output_value != "sentence_embedding":
        raise ValueError(f"`output_value` is {output_value!r}; only 'sentence_embedding' is supported")
    if precision not in (None, *PRECISIONS):
        raise ValueError(f"`precision` is {precision!r}; choose from {', '.join(PRECISIONS)}")
    if truncate_dim is not None and truncate_dim < 1:
        raise ValueError(f"`truncate_dim` is {truncate_dim}; give at least 1")
    if isinstance(device, list | tuple):
        raise ValueError(f"`device` is {device!r}; give one")
    if pool is not None:
        raise ValueError("`pool` is given, but texts are encoded in this process; leave it out")
    if unknown := sorted(others.keys() - {"task"}):  # a task selects a part of a model; here there is one
        raise ValueError(f"`encode` has no argument `{unknown[0]}` here; leave it out")
