"""Rows of a table that an SQL condition picks, such as `label = 'billing' and price > 10`, by SQLite."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus.corpus import free_name
from cse.corpus.dialect import DATE
from cse.corpus.source import as_json, values_of

log = logging.getLogger("cse.corpus")
MAX_STEPS = 2_000_000_000  # of SQLite's machine: a minute, so that no condition runs for ever
STEPS_AT_ONCE = 1_000_000
NUMBER = re.compile(r"[-+]?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")  # not 007, which is a text
COMMA_NUMBER, THOUSANDS = re.compile(r"[-+]?(0|[1-9]\d*)(,\d+)?"), re.compile(r",\d{3}$")  # 1,500 may be 1500
BY_SIZE, BY_NULL = re.compile(r"[<>]|\bbetween\b", re.IGNORECASE), re.compile(r"\bnull\b", re.IGNORECASE)
AMOUNT = re.compile(r"\D{0,4}\d[\d.,]*\D{0,4}")  # 1,5 or $1,200 or 5 %
BARE_DATE = re.compile(r"\b(\d{4}([-/])\d{1,2}\2\d{1,2}|\d{1,2}/\d{1,2}/\d{4})\b")  # SQL takes it for a sum
WHOLE_DATE = re.compile(rf"{DATE.pattern}([ T]\d.*)?")  # and perhaps a time
ORDERED_DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d.*)?")  # its texts stand in the order of time
QUOTED = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)\"""")  # a text, or a name
LONG_NUMBER = re.compile(r"[-+]?\d{19,}")  # of more than 64 bits: as numbers two ids would be one
MOSTLY = 0.5  # of the values of a column: numbers, so that the user may take it for one of numbers
EXAMPLE_ROWS, EXAMPLE_CHARACTERS = 1_000, 30  # looked at for an example of a condition
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)


def rows_where(
    table: pa.Table, condition: str, max_steps: int = MAX_STEPS, note: Callable[[str], object] = log.warning
) -> np.ndarray:
    """Return the positions (n,) int64, ascending, of the rows for which an SQL condition on the columns is true.

    A column of texts that are all numbers compares as numbers; empty cells are then NULL. `note` gets a line where a
    user may expect other rows. Raises ValueError for a condition that SQLite does not understand, that does more than
    look at this table, or that takes more than `max_steps` of SQLite's machine.
    """
    names = table.schema.names
    by_case = {_folded(name): name for name in reversed(names)}
    position = free_name("position", by_case)
    # SQLite takes an unknown name in double quotes for a text, silently.
    quoted = [token.replace('""', '"') for token in QUOTED.findall(condition) if token]
    if unknown := next((text for text in quoted if _folded(text) not in by_case), None):
        raise ValueError(
            f'cannot read the condition {condition!r}: no column is called "{unknown}"; write a text in single quotes, '
            f"or give one of the columns {', '.join(names[:40])}"
        )
    if bare := BARE_DATE.search(QUOTED.sub("", condition)):
        raise ValueError(
            f"cannot read the condition {condition!r}: {bare[0]} without quotes is a calculation; write '{bare[0]}'"
        )
    with closing(sqlite3.connect(":memory:")) as base:
        untyped = ", ".join(map(_quoted, by_case.values()))
        try:
            base.execute(f"CREATE TABLE rows ({position} INTEGER PRIMARY KEY, {untyped})")
            needed = _columns_read(base, condition, names)
            if len(needed) > len(set(map(_folded, needed))):
                raise ValueError(
                    f"the columns {', '.join(map(repr, needed))} differ in capitals alone, which a condition does not "
                    "tell apart; call one of them otherwise"
                )
            base.execute("DROP TABLE rows")
            columns = {name: _values(table.schema.field(name), table.column(name)) for name in needed}
            for name, (kind, values) in columns.items():
                if kind == "TEXT" and (line := _text_note(name, values, condition)):
                    note(line)
            declared = ", ".join(f"{_quoted(name)} {kind}" for name, (kind, _) in columns.items())
            base.execute(f"CREATE TABLE rows ({position} INTEGER PRIMARY KEY{', ' * bool(declared)}{declared})")
            cells = zip(range(table.num_rows), *(values for _, values in columns.values()), strict=True)
            base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * (len(columns) + 1))})", cells)
            steps = iter(range(max_steps // STEPS_AT_ONCE))
            base.set_authorizer(_only_reading)
            base.set_progress_handler(lambda: next(steps, None) is None, STEPS_AT_ONCE)
            picked = base.execute(f"SELECT {position} FROM rows WHERE ({condition}) ORDER BY {position}").fetchall()
        except (sqlite3.Error, sqlite3.Warning) as error:
            odd = next((_quoted(name) for name in names if _named(name) != name), None)
            quotes = f" (in double quotes, as {odd}, where a name has blanks or is a word of SQL)" if odd else ""
            raise ValueError(
                f"cannot read the condition {condition!r} ({_reason(error, condition)}); give one such as "
                f"{_example(table)}, of the columns {', '.join(names[:40])}{quotes}"
            ) from error
    for name in [name for name, (kind, _) in columns.items() if kind == "TEXT" and not picked]:
        held = Counter(value.strip() for value in columns[name][1] if isinstance(value, str) and value.strip())
        shown = ", ".join(repr(text[:EXAMPLE_CHARACTERS]) for text, _ in held.most_common(3))
        note(f"{name!r} holds texts, such as {shown or 'empty ones'}")
    return np.array([position for (position,) in picked], np.int64)


def _reason(error: Exception, condition: str) -> str:
    """Return SQLite's reason, which also reads the bracket that closes the condition, or a plainer one."""
    if str(error).startswith("unrecognized token: \"'"):
        return "a text has no quote at its end"
    if (unknown := str(error).removeprefix("no such column: ")) != str(error):
        return f"there is no column {unknown}; a text stands in single quotes, as '{unknown}'"
    early = str(error) == "incomplete input" or str(error).startswith('near ")"')
    return "it ends too early" if early and condition.count(")") <= condition.count("(") else str(error)


def _example(table: pa.Table) -> str:
    """Return a condition that picks rows of the table, by a short value that repeats in a column of texts."""
    names = table.schema.names
    for name in sorted(names, key="label".__ne__):
        values = table.column(name).slice(0, EXAMPLE_ROWS).to_pylist()
        for value, count in Counter(value for value in values if isinstance(value, str)).most_common(3):
            if count > 1 and 0 < len(value) <= EXAMPLE_CHARACTERS and "'" not in value:
                return f"{_named(name)} = '{value}'"
    return f"length({_quoted(names[0])}) > 20"


def _folded(name: str) -> str:
    """Return a name without capitals of ASCII: SQL does not tell "Row" from "row", but Ä from ä."""
    return name.encode().lower().decode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _named(name: str) -> str:
    """Return a column's name as a condition has it: in quotes if it has blanks or signs, or is a word of SQL."""
    if name.isidentifier():
        with suppress(sqlite3.Error), closing(sqlite3.connect(":memory:")) as base:
            base.execute(f"SELECT {name} FROM (SELECT 1 AS {_quoted(name)})")
            return name
    return _quoted(name)


def _columns_read(base: sqlite3.Connection, condition: str, names: list[str]) -> list[str]:
    """Return the columns that a condition reads, so that only they are loaded."""
    read: set[str] = set()

    def note(action: int, table: str | None, column: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_READ and column:
            read.add(_folded(column))
        return _only_reading(action, table, column, *_)

    base.set_authorizer(note)
    base.execute(f"SELECT 1 FROM rows WHERE ({condition})")
    base.set_authorizer(None)
    return [name for name in names if _folded(name) in read]


def _only_reading(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """Deny all but looking at the table; a recursion could run for ever."""
    harmful = action == sqlite3.SQLITE_FUNCTION and second in ("load_extension", "randomblob", "zeroblob")
    return sqlite3.SQLITE_OK if action in ALLOWED and not harmful else sqlite3.SQLITE_DENY


def _values(entry: pa.Field, column: pa.ChunkedArray) -> tuple[str, list[Any]]:
    """Return the type that SQLite compares a column by, and its values; numbers may have a decimal comma."""
    values = [_plain(value) for value in values_of(entry, column)]
    texts = {value.strip() for value in values if isinstance(value, str)} - {""}
    commas = any("," in text for text in texts)
    numbers = {text for text in texts if (COMMA_NUMBER if commas else NUMBER).fullmatch(text)}
    thousands = commas and all("," not in text or THOUSANDS.search(text) for text in texts)
    if texts - numbers or thousands or any(map(LONG_NUMBER.fullmatch, texts)):
        return "TEXT", values
    texts_to_numbers = {"": None, **{text: text.replace(",", ".") for text in texts}}
    return "NUMERIC", [texts_to_numbers[value.strip()] if isinstance(value, str) else value for value in values]


def _text_note(name: str, values: list[Any], condition: str) -> str:
    """Return what is said of a column of texts in a condition: of values that differ in blanks or capitals alone, of
    empty cells, of dates that texts do not order, and of numbers, where most are; each if it matters there.
    """
    lower = condition.lower()
    by_size = bool(BY_SIZE.search(condition)) and "cast" not in lower
    written = {value for value in values if isinstance(value, str)}
    texts = {value.strip() for value in written}
    folded = {text.casefold() for text in texts}
    quoted = {match[0][1:-1] for match in QUOTED.finditer(condition)} if "lower(" not in lower else set()
    asked = {text for text in quoted if text.casefold() in folded}
    same = {text.casefold() for text in asked}
    if same and (other := next((text for text in sorted(texts - asked) if text.casefold() in same), "")):
        blanks = "trim(" not in lower and any(text.strip().casefold() in same for text in written - texts)
        cells, blank = (f'trim("{name}")', " and blanks around it") if blanks else (f'"{name}"', "")
        too = ", too" if asked & texts else ""
        return f"{name!r} has {other!r:.40}{too}; lower({cells}) = {other.lower()!r:.40} meets any capitals{blank}"
    if "trim(" not in lower and (
        twice := next((text for text in sorted(written - texts) if text.strip() in written), "")
    ):
        return f'{name!r} has cells such as {twice!r:.40} with blanks; trim("{name}") compares without them'
    if BY_NULL.search(condition) and "" in texts and None not in values:
        return f"an empty cell of {name!r} is no NULL; write \"{name}\" = ''"
    dates = {text for text in texts if WHOLE_DATE.fullmatch(text) and not ORDERED_DATE.fullmatch(text)}
    if by_size and dates:
        return f"{name!r} is compared as text, and {min(dates)!r} is out of order there; write dates as 2025-01-31"
    others = {text for text in texts - {""} if not NUMBER.fullmatch(text)}
    amounts = {text for text in others if AMOUNT.fullmatch(text)}
    if not by_size or len(others - amounts) >= (1 - MOSTLY) * len(texts - {""}):
        return ""
    said = f"{name!r} is compared as text, by which '9' > '10', since it holds {min(others)!r:.40}"
    if amounts:
        return f"{said}; for numbers write all of them with a decimal point, and nothing beside them"
    return f'{said}; for numbers write CAST("{name}" AS REAL), which takes other texts for 0'


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    if value is None or isinstance(value, str | int | float):
        return value
    return as_json(value) if isinstance(value, list | dict) else str(value)
