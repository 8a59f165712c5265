"""Texts with their whole rows and, if a column of labels is named, a label each."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TextIO

from cse.corpus.files import text_lines
from cse.corpus.sentences import cell_text, chosen_columns, usual_column
from cse.corpus.sources import TextFile, named_rows, source_of
from cse.corpus.tables import USUAL_COLUMNS, Rows

TEXT_FILE_COLUMN = USUAL_COLUMNS[1]
LABEL_ROWS, LABEL_SHARE, LABEL_WORDS = 50, 0.02, 3  # a column of labels: rows, share of distinct cells, words in one


class LabelledText(NamedTuple):
    """A row with a text: its label ("" for none) and all its cells in the order of the columns.

    `row` is its number among the rows of its file, counted from 1 without header and blank lines; 0 without a file.
    """

    text: str
    label: str
    cells: tuple[str, ...]
    row: int = 0


@dataclass
class LabelledTexts:
    """The names of all columns, and every row in its order, which can be read once: by `rows`, or as it is."""

    columns: tuple[str, ...]
    every: Iterator[LabelledText]
    without_text: int = 0  # rows that `rows` has left out so far

    @property
    def rows(self) -> Iterator[LabelledText]:
        """Yield the rows that have a text, and count the others."""
        for row in self.every:
            if row.text:
                yield row
            else:
                self.without_text += 1


def labelled_texts(source: str | Path, column: str | None = None, labels: str | None = None) -> LabelledTexts:
    """Return the rows of a text file, table or hub id; the texts are in `column`, the labels in the column `labels`.

    A text file has the one column "text". A column may be a number, counted from 1, of a .csv or .tsv without a header.
    Without `column`, a table's texts are in its `sentence` or `text` column, or in the only one that is not `labels`.
    Blank lines are no rows. Raises ValueError, which names the file and the cure, for an unknown column and as
    `cse.corpus.sentences` does.
    """
    table = source_of(source)
    if isinstance(table, TextFile):
        if column is not None or labels is not None:
            name, option = (column, "column") if column is not None else (labels, "labels")
            raise ValueError(f"{source}: a text file has no column {name!r}; leave out `{option}` or give a table")
        lines = filter(None, map(str.strip, text_lines(Path(source))))
        every = (LabelledText(line, "", (line,), number) for number, line in enumerate(lines, start=1))
        return LabelledTexts((TEXT_FILE_COLUMN,), every)
    names, rows = named_rows(table, [name for name in (column, labels) if name is not None])
    if not names:
        return LabelledTexts((), iter(()))
    others = [name for name in names if name != labels]
    text = column or usual_column(names) or (others[0] if labels in names and len(others) == 1 else None)
    chosen = chosen_columns(table.name, names, [name for name in (text, labels) if name is not None])
    if len(chosen) == 2 and chosen[0] == chosen[1]:
        raise ValueError(f"{source}: texts and labels are both in {labels!r}; give another `column` or `labels`")
    return LabelledTexts(tuple(names), _labelled(table.name, names, chosen, rows))


def _labelled(source: str, names: Sequence[str], chosen: Sequence[str], rows: Rows) -> Iterator[LabelledText]:
    for number, (where, row) in enumerate(rows, start=1):
        text, *label = (cell_text(source, where, name, row[name]) for name in chosen)
        yield LabelledText(text, label[0] if label else "", tuple(_cell(row[name]) for name in names), number)


def _cell(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else str(value)


def left_out(count: int) -> str:
    """Return in words that so many rows, at least one, were left out because they have no text."""
    return f"{count:,} {'row' if count == 1 else 'rows'} without a text {'was' if count == 1 else 'were'} left out"


def check_texts(source: str | Path, texts: Sequence[str], least: int, purpose: str) -> None:
    """Raise ValueError for texts that cannot serve a `purpose`, which needs `least` distinct ones.

    So do many rows that repeat few short texts: those are labels.
    """
    if not texts:
        raise ValueError(f"{source}: no text in it")
    distinct = set(texts)
    if looks_like_labels(texts):
        raise ValueError(
            f"{source}: {len(texts):,} rows hold only {len(distinct)} different short texts, which look like labels; "
            "give the `column` of the texts"
        )
    if len(distinct) < least:
        few = f"only {len(distinct):,} different texts in it"
        if len(distinct) == 1:
            few = "only 1 text in it" if len(texts) == 1 else "all its texts are the same"
        raise ValueError(f"{source}: {few}; {purpose} needs at least {least} different texts")


def looks_like_labels(texts: Sequence[str]) -> bool:
    """True for `LABEL_ROWS` rows or more that repeat two or more texts of few words."""
    distinct = set(texts)
    few = len(texts) >= LABEL_ROWS and 1 < len(distinct) <= LABEL_SHARE * len(texts)
    return few and all(len(text.split()) <= LABEL_WORDS for text in distinct)


def distinct_sample(rows: Sequence[LabelledText], most: int, seed: int) -> list[LabelledText]:
    """Return the first row of each distinct text, or `most` of them drawn at random, in their order."""
    distinct = list({row.text: row for row in reversed(rows)}.values())[::-1]
    if len(distinct) <= most:
        return distinct
    return [distinct[row] for row in sorted(Random(seed).sample(range(len(distinct)), most))]


def write_table(file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows under their header as CSV; cells stay as they are, for programs that read them again."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
