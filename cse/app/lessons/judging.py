"""What judges share: values in words, how many claims hold, and in which band values lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cse.app.lessons.lesson import Measured
from cse.app.models.naming import title

NONE, SOME, ALL = "none", "some", "all"
YES, NO = "yes", "no"
MIXED = "mixed"
Form = Callable[[float], str]


def two_digits(value: float) -> str:
    """Return a cosine or a score difference with two decimals."""
    return f"{value:.2f}"


def by_model(values: Mapping[str, float], form: Form = two_digits) -> str:
    """Return each model's value in words, once where all are the same."""
    words = {name: form(value) for name, value in values.items()}
    if len(words) > 1 and len(set(words.values())) == 1:
        return f"{next(iter(words.values()))} in every model"
    return ", ".join(f"{title(name)} {shown}" for name, shown in words.items())


def count(claims: Sequence[bool]) -> str:
    """Return whether none, some or all of the claims hold."""
    return ALL if all(claims) else SOME if any(claims) else NONE


def banded(values: Mapping[str, float], bands: Mapping[str, float]) -> str:
    """Return the band that holds all values, or `MIXED`; `bands` are lower bounds, ascending, the first -inf."""
    found = {max((low, name) for name, low in bands.items() if value >= low)[1] for value in values.values()}
    return found.pop() if len(found) == 1 else MIXED


def absent(name: str) -> Measured:
    """Say that a model is not among those that answered."""
    return Measured("", (f"{title(name)} gave no answer on this page.",))
