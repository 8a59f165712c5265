"""Arguments of `SentenceModel.encode`: prompts, names in other versions, and checks of their values.

A prompt is a text put before a sentence. It is part of the sentence, which the template surrounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from cse.vectors import PRECISIONS

METHOD = TypeVar("METHOD", bound=Callable[..., Any])
QUERY = ("query",)
DOCUMENT = ("document", "passage", "corpus")  # the first of these names that a model has


class Prompts:
    """A model's `prompts` by name, and `default_prompt_name`, used if none is given."""

    prompts: dict[str, str]
    default_prompt_name: str | None = None

    def named_prompt(self, name: str | None) -> str:
        """Return the prompt of this name, else the default one, else "".

        Raises ValueError, with the names there are, for another name.
        """
        argument, name = (
            ("prompt_name", name) if name is not None else ("default_prompt_name", self.default_prompt_name)
        )
        if name is not None and name not in self.prompts:
            raise ValueError(f"`{argument}` is {name!r}; `prompts` of this model has {', '.join(self.prompts)}")
        return "" if name is None else self.prompts[name]

    def own_prompt(self, name: str | None, prompt: str | None, names: Sequence[str]) -> str | None:
        """Return `name` or, if neither `name` nor `prompt` is given, the first of `names` in `prompts`."""
        if name is not None or prompt is not None:
            return name
        return next((own for own in names if own in self.prompts), None)


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
