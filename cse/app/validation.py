"""What a client may send. Everything that arrives passes here; what is wrong becomes a ValueError with the cure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_CHARACTERS = 100_000
PAIR = ("Sentence A", "Sentence B")


def text(value: Any, what: str) -> str:
    """`value` as text that any encoding can carry. Raises ValueError for other types and for too much of it."""
    if not isinstance(value, str):
        raise ValueError(f"{what} is not text; send a string.")
    if len(value) > MAX_CHARACTERS:
        raise ValueError(f"{what} has {len(value):,} characters; give at most {MAX_CHARACTERS:,}.")
    return value.encode("utf-8", "replace").decode("utf-8")


def sentence(value: Any, what: str) -> str:
    """`value` as text with something in it."""
    found = text(value, what).strip()
    if not found:
        raise ValueError(f"{what} is empty; write a few words.")
    return found


def pair(first: Any, second: Any) -> list[str]:
    """Two sentences with something in them, called as in `PAIR`."""
    return [sentence(value, what) for what, value in zip(PAIR, (first, second), strict=True)]


def lines(value: Any, least: int, most: int) -> list[str]:
    """The non-empty lines of `value`, between `least` and `most` of them, each as long as a text may be."""
    if not isinstance(value, str):
        raise ValueError("The list is not text; send a string.")
    found = [line.strip() for line in value.splitlines() if line.strip()]
    if not found:
        raise ValueError(f"The list is empty; paste {least} to {most:,} sentences, one per line.")
    if not least <= len(found) <= most:
        count = "1 sentence" if len(found) == 1 else f"{len(found):,} sentences"
        raise ValueError(f"The list has {count}; paste {least} to {most:,}, one per line.")
    return [text(line, f"Line {number} of the list") for number, line in enumerate(found, start=1)]


def texts(value: Any, most: int) -> list[str]:
    """A list of 1 to `most` texts with something in them, together no longer than one text may be."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        wrong = f"{len(value):,}" if isinstance(value, list) else "no list"
        raise ValueError(f"The texts are {wrong}; send a list of 1 to {most:,}.")
    found = [sentence(each, f"Text {number}") for number, each in enumerate(value, start=1)]
    if (total := sum(map(len, found))) > MAX_CHARACTERS:
        raise ValueError(f"The texts have {total:,} characters together; give at most {MAX_CHARACTERS:,}.")
    return found


def whole(value: Any, what: str, least: int, most: int) -> int:
    """`value` as a whole number between `least` and `most`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or value != value or not least <= value <= most or int(value) != value:
        raise ValueError(f"{what} must be a whole number from {least} to {most}.")
    return int(value)


def between(value: Any, what: str, least: float, most: float) -> float:
    """`value` as a number between `least` and `most`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise ValueError(f"{what} must be a number from {least:g} to {most:g}.")
    return float(value)


def one_of(value: Any, what: str, known: Iterable[str]) -> str:
    """`value` where it is one of the `known` names."""
    choices = list(known)
    if value not in choices:
        raise ValueError(f"{what} is unknown; choose {' or '.join(choices)}.")
    return value
