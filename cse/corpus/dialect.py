"""The dialect of a delimited table, told from its first lines: delimiter, quotes, header."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from cse.corpus.lines import MAX_LINE_BYTES

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
DELIMITER_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "\\t": "\t", "pipe": "|"}
OWN_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}
TEXT_NAMES = ("sentence", "text")  # usual names of the column of texts
USUAL_NAMES = {
    *TEXT_NAMES, "id", "label", "labels", "title", "body", "content", "message", "score", "category", "class", "date",
    "sentence1", "sentence2", "sent0", "sent1", "hard_neg", "premise", "hypothesis", "anchor", "positive", "negative",
    "query", "question", "answer", "name", "review", "comment", "url", "source", "target", "document", "_id",
}  # fmt: skip
SAMPLE_LINES, SAMPLE_CHARACTERS = 400, 1 << 18
MIN_SHARE = 0.8  # of the rows of a sample that have the width of its delimiter
MAX_NAME_CHARACTERS, MAX_NAME_WORDS = 60, 6  # of a column
MAX_TITLE_ROWS = 10  # above the header
DATE = re.compile(r"\s*\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b")
TIME_NAME = re.compile(r"date|datum|fecha|time|zeit|stamp|created|received", re.IGNORECASE)
WORDS_OF_PROSE = 4  # of the median cell of a column of prose
ESCAPE = re.compile(r'\\([\\"])?')


@dataclass(frozen=True)
class Dialect:
    """How a table's lines are cut into cells: no `delimiter` means a text a line.

    A quote inside of a quoted cell is doubled, or has a backslash before it where the table `escapes` so.
    """

    delimiter: str = ""
    quotes: bool = True
    header: bool | None = False  # None: cannot be told
    skipped: int = 0  # lines before the table: Excel's "sep=;"
    escapes: bool = False

    def reader(self, lines: Iterable[str]) -> csv._reader:  # type: ignore[name-defined]
        """A strict reader of the lines."""
        csv.field_size_limit(MAX_LINE_BYTES)
        quoting = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        escape = "\\" if self.escapes else None
        if self.escapes:
            # A backslash before another sign stands for itself.
            lines = (ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", line) for line in lines)
        shape: Any = {"delimiter": self.delimiter or ",", "quoting": quoting, "escapechar": escape}
        return csv.reader(lines, **shape, strict=True)


def dialect_of(
    lines: Sequence[str],
    suffix: str,
    *,
    delimiter: str | None = None,
    quotes: bool | None = None,
    header: bool | None = None,
    skip: int | None = None,
    complete: bool = True,
) -> Dialect:
    """Return the dialect of a table's first lines (with their ends); what is given is not guessed.

    `suffix` is that of the file, which decides between equals: a .csv or .tsv has cells, another file is a text a line
    unless its lines are cut into the same number of cells by tabs, or by another delimiter under usual names.
    `complete` says that the lines are the whole file. Raises ValueError, without the name of the file, where the
    rows of a .csv differ so much in width that it may be no table.
    """
    skipped, every = skip or 0, lines
    if skip is None and lines and (match := re.fullmatch(r"sep=(.)\s*", lines[0])) and delimiter is None:
        delimiter, skipped = match[1], 1
    lines = [line for line in lines[skipped:] if line.strip()]
    own = OWN_DELIMITERS.get(suffix)
    if not lines:
        return Dialect(own or "", skipped=skipped)
    if delimiter is None:
        guesses = [_Guess.of(mark, lines, complete) for mark in DELIMITERS]
        fitting = [guess for guess in guesses if guess.fits(own is not None)]
        if not fitting:
            return _alone(lines, own, header, skipped, complete)
        best = max(fitting, key=lambda guess: (*guess.evenness, guess.delimiter == own, guess.named, guess.share))
    else:
        best = _Guess.of(delimiter, lines, complete)
    quoted = best.quotes if quotes is None else quotes
    rows = best.rows if quotes in (None, best.quotes) else _Guess.parsed(best.delimiter, lines, quoted) or best.rows
    above = title_rows(rows) if skip is None and header is not False else 0
    escapes = quoted and best.escapes
    if above and _Guess.parsed(best.delimiter, lines[above:], quoted, complete, escapes) == rows[above:]:  # a line each
        filled = [number for number, line in enumerate(every) if number >= skipped and line.strip()]
        rows, skipped = rows[above:], filled[above]
    return Dialect(best.delimiter, quoted, has_header(rows) if header is None else header, skipped, escapes)


def _alone(lines: Sequence[str], own: str | None, header: bool | None, skipped: int, complete: bool) -> Dialect:
    """Return the dialect of lines that no delimiter cuts evenly: one column of a .csv or .tsv, or a text a line."""
    if named := re.fullmatch(r"\w+([,;|\t])\w+(\1\w+)*", lines[0].strip()):  # reading names the line
        return Dialect(named[1], named[1] != "\t", True if header is None else header, skipped)
    rows = None if own is None else _Guess.parsed(own, lines if complete else lines[:-1] or lines, own == ",")
    if own is None or rows is None:  # the second: reading names the line
        return Dialect(own or "", own == ",", bool(header), skipped)
    widths = Counter(map(len, rows))
    if len(widths) > 1 and not _names(rows[0]):
        low, high = min(widths), max(widths)
        raise ValueError(
            f"its rows have {low} to {high} cells between {DELIMITERS[own]}, so it may be a text a line; say which: "
            "format=text, or quote the cells that hold a delimiter"
        )
    if header is None:
        header = rows[0][0].strip().lower() in TEXT_NAMES if widths.keys() == {1} else has_header(rows)
    return Dialect(own, own == ",", header, skipped)


@dataclass(frozen=True)
class _Guess:
    """The rows that a delimiter makes of a sample, and the share of them that has the usual width."""

    delimiter: str
    quotes: bool
    rows: list[list[str]]
    width: int
    share: float
    escapes: bool = False
    decimal: bool = False  # every delimiter stands between digits, as the comma in 12,50

    @classmethod
    def of(cls, delimiter: str, lines: Sequence[str], complete: bool) -> _Guess:
        """Cut the lines with and without quotes, and keep what cuts them more evenly; with quotes, if equal."""
        guesses = []
        for quotes in (True, False):
            rows, escapes = cls.parsed(delimiter, lines, quotes, complete), False
            if rows is None and quotes and any('\\"' in line for line in lines):
                rows, escapes = cls.parsed(delimiter, lines, quotes, complete, escapes=True), True
            if not rows:
                continue
            width, count = Counter(map(len, rows)).most_common(1)[0]
            first = len(rows[0])
            if first > width:  # cells at the end may be missing
                width, count = first, sum(len(row) <= first for row in rows)
            share = count / len(rows)
            # A tab does not stand in texts, so a quote beside one is a quote, unless it is doubled inside a cell or
            # all cells of the first row are quoted.
            meant = (
                delimiter != "\t"
                or any('""' in line for line in lines)
                or all(map(in_quotes, lines[0].rstrip().split("\t")))
            )
            decimal = delimiter == "," and not any(re.search(r"(?<!\d),|,(?!\d)", line) for line in lines)
            guesses.append((share, quotes == meant, cls(delimiter, quotes, rows, width, share, escapes, decimal)))
        if not guesses:
            return cls(delimiter, True, [], 1, 0.0)
        best = max(guesses, key=lambda guess: guess[:2])[2]
        quoted = sum(_holds_quoted(row) for row in best.rows)
        if len(guesses) == 1 and delimiter != "\t" and 2 * quoted > len(best.rows):  # reading names the line at fault
            return replace(best, quotes=True)
        return best

    @staticmethod
    def parsed(
        delimiter: str, lines: Sequence[str], quotes: bool, complete: bool = True, escapes: bool = False
    ) -> list[list[str]] | None:
        """Return the rows of the lines; None if they cannot be read. The last row may be cut, unless `complete`."""
        rows, reader = [], Dialect(delimiter, quotes, escapes=escapes).reader(lines)
        try:
            rows.extend(reader)
        except csv.Error:
            if complete or reader.line_num < len(lines) or not rows:
                return None
            return rows
        return rows if complete or len(rows) < 2 else rows[:-1]

    @property
    def evenness(self) -> tuple[bool, ...]:
        """What tells delimiters that fit apart: most rows are cut, and as the first one is; nearly all fit."""
        widths = Counter(map(len, self.rows))
        as_first = widths[len(self.rows[0])] >= MIN_SHARE * len(self.rows)
        return widths[1] < (1 - MIN_SHARE) * len(self.rows), as_first, self.share > 0.98, not self.decimal

    @property
    def named(self) -> bool:
        """True if the first row names columns."""
        return bool(self.rows) and len(self.rows[0]) > 1 and _names(self.rows[0])

    def fits(self, table: bool) -> bool:
        """True if this can be the delimiter of a `table`, or of a file that may be a text a line."""
        if self.width < 2 or self.share < MIN_SHARE:
            return False
        if table:
            return True
        if self.delimiter == "\t":
            return self.share > 0.98 and (len(self.rows) > 1 or self.named)
        names = [cell.lower() for cell in self.rows[0]]
        usual = all(re.fullmatch(r"\w+", name) for name in names) and not USUAL_NAMES.isdisjoint(names)
        return self.share > 0.98 and len(self.rows) > 1 and len(self.rows[0]) == self.width and usual


def in_quotes(cell: str) -> bool:
    """True if a cell stands in quotes."""
    return len(cell) > 1 and cell[0] == cell[-1] == '"'


def _holds_quoted(row: Sequence[str]) -> bool:
    """True if a row that was cut at every delimiter has the start and then the end of a quoted cell."""
    starts = next((column for column, cell in enumerate(row) if cell[:1] == '"'), len(row))
    return any(
        cell[-1:] == '"' and (cell != '"' or column > starts) for column, cell in enumerate(row[starts:], starts)
    )


def _names(row: Sequence[str]) -> bool:
    """True if a row can be a header: short cells that hold a letter and no sentence, distinct or with a text's name."""
    cells = [cell.strip() for cell in row]
    filled = [cell for cell in cells if cell]
    distinct = len(set(filled)) == len(filled) or any(cell.lower() in TEXT_NAMES for cell in filled)
    return bool(filled) and distinct and all(
        len(cell) <= MAX_NAME_CHARACTERS
        and len(cell.split()) <= MAX_NAME_WORDS
        and re.search(r"[^\W\d_]", cell)
        and not is_number(cell)
        and cell[-1] not in ".!?,;"
        for cell in filled
    )  # fmt: skip


def is_number(cell: str) -> bool:
    """True for a number, of decimal point or comma."""
    return bool(re.fullmatch(r"\s*[-+]?(\d+([.,]\d+)?|\.\d+)([eE][-+]?\d+)?\s*%?\s*", cell))


def title_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows stand above the header of a table: a few with one filled cell or none, such as a title."""
    for number, row in enumerate(rows[: MAX_TITLE_ROWS + 1]):
        if sum(bool(cell.strip()) for cell in row) > 1:
            return number if number and len(rows) > number + 1 and has_header(rows[number:]) else 0
    return 0


def has_header(rows: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first of the rows names the columns; None if that cannot be told.

    A header can be names, has one that is usual or written as a name, or differs in kind from the cells below. Of names
    that end like a sentence, such as "No." and "Is it open?", only the latter is believed.
    """
    first, body = rows[0], rows[1:]
    numbers = [cell for cell in first if cell.isdecimal()]
    counted = len(numbers) > 1 and numbers == [str(number + 1) for number in range(len(numbers))]
    if counted and (first == numbers or (first[0] == "row" and first[-len(numbers) :] == numbers)):
        return True  # our commands write the columns of a table without names so, after columns of their own
    if body and any(
        _heads([row[column] for row in body if column < len(row)], name) for column, name in enumerate(first)
    ):
        return True
    named_plainly = _names(first)
    if not named_plainly and not _names(
        [cell.strip().rstrip(".?") if len(cell.split()) <= 3 else cell for cell in first]
    ):
        return False
    usual = [cell.strip().lower() in USUAL_NAMES for cell in first]
    columns = [  # a usual header may stand between the rows once more, where files were joined
        (name, [row[at] for row in body if at < len(row) and row[at].strip() and not (any(usual) and row == first)])
        for at, name in enumerate(first)
    ]
    if not all(usual) and any(name.strip() and name in cells for name, cells in columns):
        return False
    if not body or any(usual) or any("_" in name and not _numbered(cells) for name, cells in columns):
        return True
    named = texts = 0
    for name, cells in columns:
        if not cells or not name.strip():
            continue
        words = median(len(cell.split()) for cell in cells)
        texts += prose(cells)
        named += sum(map(is_number, cells)) > 0.9 * len(cells) or len(name.split()) <= 2 < WORDS_OF_PROSE <= words
    if max(len(cell.split()) for cell in first) > 3 and texts > 1:  # a pair of short sentences
        return False
    return True if named else None if named_plainly else False


def _heads(cells: Sequence[str], name: str) -> bool:
    """True if a name is of other kind than its cells: a word for time above dates, a question above numbers."""
    filled = [cell for cell in cells if cell.strip()]
    if len(filled) < 2 or re.search(r"\d", name) or not re.search(r"[^\W\d_]", name):
        return False
    question = len(name.split()) > MAX_NAME_WORDS // 2 and name.strip()[-1] in "?:"
    below = DATE.match if TIME_NAME.search(name) else is_number if question else None
    return below is not None and sum(map(bool, map(below, filled))) > 0.9 * len(filled)


def _numbered(cells: Sequence[str]) -> bool:
    """True if nearly all cells are written as names, such as ticket_001: so may be one above them that is no header."""
    return bool(cells) and sum("_" in cell for cell in cells) > 0.9 * len(cells)


def prose(cells: Sequence[str]) -> bool:
    """True if the cells of a column are texts: several words each, or long runs of a script without spaces."""
    filled = [cell for cell in cells if cell.strip()]
    if not filled:
        return False
    words = median(len(cell.split()) for cell in filled)
    unspaced = median(
        len(re.findall("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", cell)) for cell in filled
    )
    letters = median(sum(map(str.isalpha, cell)) / len(cell) for cell in filled)
    return (words >= WORDS_OF_PROSE or unspaced >= 2 * WORDS_OF_PROSE) and letters > 0.5
