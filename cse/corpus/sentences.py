"""Sentences, triplets and scored pairs from files of any common kind, or from a hub id (`cse.corpus.sources`).

Every error is a `ValueError` that names the file, the line and the cure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.corpus.files import MAX_LINE_BYTES, text_lines
from cse.corpus.sources import TABLES, Table, TextFile, named_rows, source_of
from cse.corpus.tables import USUAL_COLUMNS, Rows
from cse.files.writing import is_utf_8

if TYPE_CHECKING:
    from datasets import Dataset

TRIPLET_COLUMNS = ("sent0", "sent1", "hard_neg")  # SimCSE's NLI file

Pair = tuple[float, str, str]


def sentences(source: str | Path, column: str | None = None) -> Iterator[str]:
    """Yield the non-empty sentences of a file or hub id, stripped.

    Text files give their lines; tables (`TABLES`) and hub ids the named `column`.
    """
    for row in examples(source, column):
        yield row[0]


def examples(source: str | Path, column: str | None = None, supervised: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield tuples of texts: (sentence,), or if `supervised` (premise, entailed) or (premise, entailed, contradicted).

    Supervised data is a tab-separated file of two or three columns, with or without a header, or a table or hub id with
    the columns sent0, sent1 and optionally hard_neg. Empty sentences are skipped; empty texts of supervised data are
    errors. Raises ValueError as the module says.
    """
    table = source_of(source)
    if isinstance(table, TextFile):
        if supervised:
            raise ValueError(
                f"{source}: supervised training needs two or three columns; give one of {', '.join(TABLES)}"
            )
        if column is not None:
            raise ValueError(f"{source}: a text file has no column {column!r}; leave out `column` or give a table")
        yield from ((line.strip(),) for line in text_lines(Path(source)) if line.strip())
    elif supervised and isinstance(table, Table) and table.suffix == ".tsv":
        yield from _tab_separated(Path(source))
    else:
        columns = TRIPLET_COLUMNS if supervised else () if column is None else (column,)
        yield from table_texts(table.name, *named_rows(table, columns), columns)


def _tab_separated(path: Path) -> Iterator[tuple[str, ...]]:
    width = 0
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        cells = tuple(cell.strip() for cell in line.split("\t"))
        if not width and cells == TRIPLET_COLUMNS[: len(cells)]:
            continue  # a header
        width = width or len(cells)
        if len(cells) != width or width not in (2, 3) or not all(cells):
            raise ValueError(
                f"{path}: line {number} has {len(cells)} columns or an empty one; give two or three everywhere"
            )
        yield cells


def table_texts(source: str, names: list[str], rows: Rows, requested: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the texts of the `requested` columns: those of supervised data, one, or none for the usual one.

    Raises ValueError, which names the `source`, for missing columns and for values that are no texts.
    """
    if not names:
        return
    columns = chosen_columns(source, names, requested)
    for where, row in rows:
        texts = tuple(cell_text(source, where, name, row[name]) for name in columns)
        if len(requested) > 1 and not all(texts):
            raise ValueError(f"{source}: {where} has an empty text; fill or remove it")
        if texts[0]:
            yield texts


def cell_text(source: str, where: str, name: str, value: Any) -> str:
    """Return a table's value as text; numbers are converted, and a missing value is an empty text."""
    if isinstance(value, (list, dict, bytes)):
        kind = type(value).__name__
        raise ValueError(f"{source}: {where} has a {kind} as {name!r}, not text; give a column of texts")
    missing = value is None or value != value  # NaN
    text = "" if missing else str(value).strip()
    if len(text) > MAX_LINE_BYTES:
        raise ValueError(f"{source}: {where} is longer than {MAX_LINE_BYTES:,} characters; cut it into sentences")
    return text


def usual_column(names: Sequence[str]) -> str | None:
    """Return the column with a usual name of a column of sentences; None if there is none."""
    return next((name for name in USUAL_COLUMNS if name in names), None)


def chosen_columns(source: str, names: list[str], requested: Sequence[str]) -> list[str]:
    """Return the `requested` columns that a table has, by default its column of sentences. Raises ValueError."""
    if not requested:
        usual = usual_column(names)
        requested = [usual] if usual else names if len(names) == 1 else []
        if not requested:
            raise ValueError(f"{source}: which column holds the sentences? Pass `column`, one of {', '.join(names)}")
    if missing := [name for name in requested[:2] if name not in names]:
        raise ValueError(f"{source}: no column {missing[0]!r}; it has {', '.join(names) or 'none'}")
    if twice := [name for name in requested if names.count(name) > 1]:
        raise ValueError(f"{source}: {names.count(twice[0])} columns are called {twice[0]!r}; give each another name")
    return [name for name in requested if name in names]


def load_examples(source: str, column: str | None, supervised: bool, limit: int | None = None) -> Dataset:
    """Return the first `limit` (or all) `examples` as a memory-mapped dataset with a column per text: "0", "1", "2".

    Raises ValueError if there are none.
    """
    from datasets import Dataset
    from datasets.exceptions import DatasetGenerationError
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    path = Path(source)
    stamp = f"{path.stat().st_mtime_ns} {path.stat().st_size}" if path.is_file() else ""  # a changed file is read again
    options = {"source": source, "column": column, "supervised": supervised, "limit": limit, "stamp": stamp}
    if next(examples(source, column, supervised), None) is None:
        raise ValueError(f"{source}: no sentence in it")
    try:
        return Dataset.from_generator(_named_examples, gen_kwargs=options)
    except DatasetGenerationError as error:
        raise error.__cause__ if isinstance(error.__cause__, ValueError) else error from None


def _named_examples(
    source: str, column: str | None, supervised: bool, limit: int | None, stamp: str
) -> Iterator[dict[str, str]]:
    for row in islice(examples(source, column, supervised), limit):
        yield {str(number): text for number, text in enumerate(row)}


def scored_pairs(path: Path) -> list[Pair]:
    """Return (score, sentence, sentence) for each line of a tab-separated file without a header, such as STS-B's.

    Raises ValueError with file and line for a wrong column count or a score that is no number, and for an empty file.
    """
    pairs: list[Pair] = []
    for number, line in enumerate(text_lines(Path(path)), start=1):
        if not line.strip(" "):
            continue
        cells = line.split("\t")
        if len(cells) != 3:
            raise ValueError(f"{path}: line {number} has {len(cells)} columns, not score, sentence, sentence")
        try:
            score = float(cells[0])
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: the score {cells[0]!r} is no number") from error
        if not math.isfinite(score):
            raise ValueError(f"{path}: line {number}: the score {cells[0]!r} is not finite")
        pairs.append((score, cells[1].strip(), cells[2].strip()))
    if not pairs:
        raise ValueError(f"{path}: no pair in it")
    return pairs


IN_MEMORY = "texts in memory"  # their name in errors and records
Texts = Iterable["str | tuple[str, ...]"]


def given_examples(
    data: Texts | Dataset, column: str | None = None, supervised: bool = False, limit: int | None = None
) -> Dataset:
    """Return the first `limit` (or all) examples as a dataset with a column per text: "0", "1", "2".

    `data` is texts, tuples of two or three texts if `supervised`, or a `datasets.Dataset`, whose `column` (or sent0,
    sent1 and optionally hard_neg) is read. Texts are stripped and empty ones skipped, as lines of a file. Raises
    ValueError for anything else, and if there are none.
    """
    from datasets import Dataset

    if not (isinstance(data, Dataset) or is_items(data)):
        raise ValueError(
            f"data is a {type(data).__name__}; give a list of texts such as a column, one split of a dataset, or a path"
        )
    rows: list[tuple[str, ...]] = []
    for row in _of_dataset(data, column, supervised) if isinstance(data, Dataset) else _of_items(data, supervised):
        if len(rows) == limit:
            break
        rows.append(row)
    if not rows:
        raise ValueError(f"{IN_MEMORY}: no sentence in them")
    return Dataset.from_dict({str(number): texts for number, texts in enumerate(zip(*rows, strict=True))})


def is_items(data: object) -> bool:
    """True for a list of items or the like; not for what has columns or keys, such as a data frame or a dataset."""
    columned = any(hasattr(data, name) for name in ("columns", "column_names"))
    return isinstance(data, Iterable) and not (isinstance(data, Mapping) or columned)


def _of_dataset(data: Dataset, column: str | None, supervised: bool) -> Iterator[tuple[str, ...]]:
    rows = ((f"row {number}", row) for number, row in enumerate(data.with_format(None), start=1))
    columns = TRIPLET_COLUMNS if supervised else () if column is None else (column,)
    for row in table_texts(IN_MEMORY, list(data.column_names), rows, columns):
        yield tuple(_text(f"{IN_MEMORY}: a row", text) for text in row)


def _of_items(data: Texts, supervised: bool) -> Iterator[tuple[str, ...]]:
    width = 0
    for number, item in enumerate(data, start=1):
        where = f"{IN_MEMORY}: item {number}"
        row = tuple(_text(where, text) for text in (item if supervised and isinstance(item, tuple | list) else [item]))
        if not supervised:
            if row[0]:
                yield row
            continue
        width = width or len(row)
        if len(row) != width or width not in (2, 3) or not all(row):
            raise ValueError(f"{where} has {len(row)} texts or an empty one; give two or three everywhere")
        yield row


def _text(where: str, text: Any) -> str:
    """Return `text`, stripped. Raises ValueError unless it is a string that can be written as UTF-8."""
    if not isinstance(text, str):
        raise ValueError(f"{where} is {text!r:.60}, not a text; give a list of texts, or a datasets.Dataset")
    if not is_utf_8(text):
        raise ValueError(f"{where} holds half of a surrogate pair: {text!r:.60}; decode it again, or remove it")
    return text.strip()


def given_pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Return (score, sentence, sentence) tuples as a list, checked. Raises ValueError that begins with their `name`."""
    checked: list[Pair] = []
    for number, pair in enumerate(pairs, start=1):
        where = f"{name}: pair {number}"
        if not isinstance(pair, tuple | list) or len(pair) != 3:
            raise ValueError(f"{where} is {pair!r:.60}; give (score, sentence, sentence)")
        score, *texts = pair
        if isinstance(score, str | bool) or not math.isfinite(_number(where, score)):
            raise ValueError(f"{where}: the score {score!r} is no finite number")
        checked.append((float(score), _text(where, texts[0]), _text(where, texts[1])))
    if not checked:
        raise ValueError(f"{name}: no pair in it")
    return checked


def _number(where: str, score: Any) -> float:
    try:
        return float(score)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: the score {score!r} is no finite number") from error
