"""Check values that clients send. A wrong one raises FieldError, which says what to send instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MAX_CHARACTERS, MAX_FILE_BYTES = 100_000, 16 * 2**20
PAIR = ("Sentence A", "Sentence B")
LIST = "The list"
KEY = re.compile(r"[0-9a-f]{32}")  # a visitor's


class FieldError(ValueError):
    """A wrong value of a `field`, which is its name in messages; `reason` is the whole message, in one line."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field, self.reason = field, reason


def counted(number: int, what: str) -> str:
    """Return a number of things in words: 1 text, 2,000 texts."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def text(value: Any, field: str, what: str = "") -> str:
    """Return `value` as text that UTF-8 can encode. Raises FieldError for other types and for too long a text."""
    what = what or field
    if not isinstance(value, str):
        raise FieldError(field, f"{what} is not text; send a string.")
    if len(value) > MAX_CHARACTERS:
        raise FieldError(field, f"{what} has {len(value):,} characters; give at most {MAX_CHARACTERS:,}.")
    return value.encode("utf-8", "replace").decode("utf-8")


def sentence(value: Any, field: str) -> str:
    """Return `value` as a text that is not empty, without surrounding whitespace."""
    stripped = text(value, field).strip()
    if not stripped:
        raise FieldError(field, f"{field} is empty; write a few words.")
    return stripped


def lines(value: Any, least: int, most: int, field: str = LIST) -> list[str]:
    """Return the non-empty lines of a field: `least` to `most` of them, each as long as a text may be."""
    if not isinstance(value, str):
        raise FieldError(field, f"{field} is not text; send a string.")
    sentences = [line.strip() for line in value.splitlines() if line.strip()]
    if not sentences:
        raise FieldError(field, f"{field} is empty; paste {least} to {most:,} sentences, one per line.")
    if not least <= len(sentences) <= most:
        number = counted(len(sentences), "sentence")
        raise FieldError(field, f"{field} has {number}; paste {least} to {most:,}, one per line.")
    what = field[:1].lower() + field[1:]
    return [text(line, field, f"Line {number} of {what}") for number, line in enumerate(sentences, start=1)]


def texts(value: Any, most: int) -> list[str]:
    """Return a list of 1 to `most` non-empty texts, each as long as a text may be."""
    field = "The texts"
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        wrong = f"{len(value):,}" if isinstance(value, list) else "not a list"
        raise FieldError(field, f"{field} are {wrong}; send a list of 1 to {most:,}.")
    return [sentence(item, f"Text {number}") for number, item in enumerate(value, start=1)]


def whole(value: Any, field: str, least: int, most: int) -> int:
    """Return `value` as a whole number between `least` and `most`."""
    if not is_between(value, least, most) or int(value) != value:
        raise FieldError(field, f"{field} must be a whole number from {least} to {most}.")
    return int(value)


def between(value: Any, field: str, least: float, most: float) -> float:
    """Return `value` as a number between `least` and `most`."""
    if not is_between(value, least, most):
        raise FieldError(field, f"{field} must be a number from {least:g} to {most:g}.")
    return float(value)


def is_between(value: Any, least: float, most: float) -> bool:
    """True for a number, which is no truth value and not NaN, within the bounds."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def one_of(value: Any, field: str, known: Iterable[str]) -> str:
    """Return `value`, one of the `known` names."""
    choices = list(known)
    if value not in choices:
        raise FieldError(field, f"{field} is unknown; choose {' or '.join(choices)}, not {str(value)[:60]!r}.")
    return value


def checked_key(key: Any, what: str) -> str:
    """Return a visitor's key, under which `what` is kept. Raises FieldError for an invalid one."""
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise FieldError("The key", f"This page has no key to keep {what} under; reload it.")
    return key
