"""Text in: sentences, triplets and graded pairs from files of any common kind, or from a hub id.

Text, .csv, .tsv and .jsonl files are streamed with the standard library, other tables and hub ids through `datasets`.
Every error is a `ValueError` that names the file, the line and the cure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.storage import hub
from cse.storage.writing import check_regular
from cse.text.files import COMPRESSED, DAMAGED, LONGEST_LINE, begins_with_text, text_lines
from cse.text.tables import DELIMITED, JSON_LINES, USUAL_COLUMNS, Rows, delimited, json_lines

if TYPE_CHECKING:
    from datasets import Dataset

TEXT_SUFFIXES = (".txt", ".text", "")
LOADERS = {".json": "json", ".parquet": "parquet"}  # those of `datasets`
TABLES = (*DELIMITED, JSON_LINES, *LOADERS)
TRIPLET_COLUMNS = ("sent0", "sent1", "hard_neg")  # SimCSE's NLI file

Pair = tuple[float, str, str]


def sentences(source: str | Path, column: str | None = None) -> Iterator[str]:
    """The non-empty sentences of a file or hub id, stripped, one at a time.

    Text files give their lines; tables (.csv .tsv .json .jsonl .parquet) and hub ids the named `column`.
    """
    for row in examples(source, column):
        yield row[0]


def examples(source: str | Path, column: str | None = None, supervised: bool = False) -> Iterator[tuple[str, ...]]:
    """Tuples of texts: (sentence,), or with `supervised` (premise, entailed) or (premise, entailed, contradicted).

    Supervised data is a tab-separated file of two or three columns without a header, or a table or hub id with the
    columns sent0, sent1 and perhaps hard_neg. Empty sentences are skipped, empty texts of supervised data refused.
    Raises ValueError as the module says.
    """
    suffix = _suffix(source)
    if supervised and suffix == ".tsv":
        yield from _tab_separated(Path(source))
    elif suffix not in TABLES and (Path(source).exists() or suffix in TEXT_SUFFIXES[:2] or "/" not in str(source)):
        if supervised:
            raise ValueError(
                f"{source}: supervised training needs two or three columns; give .tsv, .csv, .jsonl or .parquet"
            )
        if column is not None:
            raise ValueError(f"{source}: a text file has no column {column!r}; leave out `column` or give a table")
        yield from ((line.strip(),) for line in text_lines(Path(source)) if line.strip())
    else:
        yield from _table(source, suffix, TRIPLET_COLUMNS if supervised else () if column is None else (column,))


def _suffix(source: str | Path) -> str:
    path = Path(source)
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSED else path).suffix.lower()


def _tab_separated(path: Path) -> Iterator[tuple[str, ...]]:
    width = 0
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        cells = tuple(cell.strip() for cell in line.split("\t"))
        width = width or len(cells)
        if len(cells) != width or width not in (2, 3) or not all(cells):
            raise ValueError(
                f"{path}: line {number} has {len(cells)} columns or an empty one; give two or three everywhere"
            )
        yield cells


def _table(source: str | Path, suffix: str, wanted: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The texts of the `wanted` columns: those of supervised data, one, or none for the usual one."""
    names, rows = _open_table(source, suffix, has_header=bool(wanted))
    if not names:
        return
    columns = _choose(source, names, wanted)
    for where, row in rows:
        texts = tuple(_text(source, where, name, row[name]) for name in columns)
        if len(wanted) > 1 and not all(texts):
            raise ValueError(f"{source}: {where} has an empty text; fill or remove it")
        if texts[0]:
            yield texts


def _text(source: str | Path, where: str, name: str, value: Any) -> str:
    """A table's value as text; numbers count as text, and no value is an empty one."""
    if isinstance(value, (list, dict, bytes)):
        kind = type(value).__name__
        raise ValueError(f"{source}: {where} has a {kind} as {name!r}, not text; give a column of texts")
    text = "" if value is None else str(value).strip()
    if len(text) > LONGEST_LINE:
        raise ValueError(f"{source}: {where} is longer than {LONGEST_LINE:,} characters; cut it into sentences")
    return text


def _open_table(source: str | Path, suffix: str, has_header: bool) -> tuple[list[str], Rows]:
    path = Path(source)
    if suffix in TABLES:
        check_regular(path)
    if suffix in DELIMITED:
        return delimited(path, suffix, text_lines(path, keep_ends=True), has_header)
    if suffix == JSON_LINES:
        return json_lines(path, text_lines(path))
    if suffix == ".json" and not begins_with_text(path):
        raise ValueError(f"{source}: holds NUL bytes; give a text table, not a binary file")
    if suffix not in LOADERS and not hub.reachable():
        raise ValueError(f"{source}: no such file, and the data hub cannot be reached")
    if suffix in LOADERS and not path.stat().st_size:
        return [], iter(())
    rows = _readable(source, _rows(source, suffix))
    first = next(rows, None)
    if first is None:
        return [], iter(())
    return list(first), ((f"row {number}", row) for number, row in enumerate(chain([first], rows), start=1))


def _rows(source: str | Path, suffix: str) -> Iterator[dict[str, Any]]:
    from datasets import load_dataset
    from datasets.utils.logging import CRITICAL, disable_progress_bar, set_verbosity

    disable_progress_bar()
    set_verbosity(CRITICAL)  # what went wrong is said once, by the error
    if suffix in LOADERS:
        yield from load_dataset(LOADERS[suffix], data_files=str(source), split="train", streaming=True)
    else:
        yield from load_dataset(str(source), split="train", streaming=True)


def _readable(source: str | Path, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """`rows`, any failure of the libraries below turned into one line that names the source."""
    from datasets.exceptions import DatasetGenerationError

    try:
        yield from rows
    except (
        OSError,
        ValueError,
        KeyError,
        DatasetGenerationError,
        *DAMAGED,
    ) as error:  # pandas' and Arrow's are ValueErrors
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        known = ", ".join((".txt", *TABLES))
        raise ValueError(f"cannot read {str(source)!r} ({reason}); give a file ({known}) or a hub id") from error


def first_rows(source: Path, count: int) -> tuple[list[str], list[list[str]]]:
    """The column names in a table's first row, and the texts of the `count` rows after it. Raises ValueError."""
    names, rows = _open_table(source, _suffix(source), has_header=True)
    return names, [[_text(source, where, name, row[name]) for name in names] for where, row in islice(rows, count)]


def usual_column(names: Sequence[str]) -> str | None:
    """The column that is called as columns of sentences usually are; None where there is none."""
    return next((name for name in USUAL_COLUMNS if name in names), None)


def _choose(source: str | Path, names: list[str], wanted: Sequence[str]) -> list[str]:
    if not wanted:
        usual = usual_column(names)
        wanted = [usual] if usual else names if len(names) == 1 else []
        if not wanted:
            raise ValueError(f"{source}: which column holds the sentences? Pass `column`, one of {', '.join(names)}")
    if missing := [name for name in wanted[:2] if name not in names]:
        raise ValueError(f"{source}: no column {missing[0]!r}; it has {', '.join(names) or 'none'}")
    if twice := [name for name in wanted if names.count(name) > 1]:
        raise ValueError(f"{source}: {names.count(twice[0])} columns are called {twice[0]!r}; give each another name")
    return [name for name in wanted if name in names]


def load_examples(source: str, column: str | None, supervised: bool, limit: int | None = None) -> Dataset:
    """The first `limit` (or all) of `examples` as a memory-mapped dataset with one column per text: "0", "1", "2".

    Raises ValueError when there is nothing in it.
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
    """(score, sentence, sentence) of a tab-separated file without a header, such as STS-B's.

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
