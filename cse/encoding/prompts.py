"""Prompts: texts put before a sentence, by name. They are part of the sentence, which the template surrounds."""

from __future__ import annotations

from collections.abc import Sequence

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
