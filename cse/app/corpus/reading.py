"""A visitor's texts: from an uploaded file or pasted lines, with bounds on both, and the overview after an upload."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from cse.app.corpus.own import OwnCorpus
from cse.app.validation import MAX_FILE_BYTES, counted
from cse.corpus import formats
from cse.corpus.corpus import SAMPLE_ROWS, Corpus, text_column
from cse.corpus.dialect import prose
from cse.corpus.lines import COMPRESSIONS, DAMAGED, opened
from cse.corpus.source import is_json
from cse.corpus.words import label_note

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TEXTS, MOST_CHARACTERS = 50_000, 16_000_000
MOST_UNPACKED = 128 * 2**20  # bytes of a table, and of what a compressed file holds
MOST_JSON = 2 * MAX_FILE_BYTES  # unpacked; it is read as a whole, and takes 20 times its size
SUFFIXES = (*formats.SUFFIXES, *COMPRESSIONS)
T = TypeVar("T", bound="tuple[Any, ...]")
MOST_HEADER = 100_000  # characters of the columns' names, which the server keeps for each session as choices
LABEL_NAMES = ("label", "labels", "topic", "category", "class")
LETTER = re.compile(r"[^\W\d_]")  # numbers and dates are no labels
LABEL_ROWS, MAX_LABEL_CHARACTERS = 5, 40  # rows of each label on average in a column that has another name
SEEN = 5  # rows of a file shown for the choice of its columns
FAR_LONGER = 1.5  # the column of texts, in characters, than any other


class Preview(NamedTuple):
    """The columns of a file and its first rows; `text` and `label` are those of texts and labels if that is clear, as
    it is of texts that are far longer than all else; `proposed` is that of texts, or else the longest one.

    There are no columns if there is nothing to choose: in a text file, and in a table of one column of sentences.
    """

    columns: list[str]
    rows: list[list[str]]
    text: str | None = None
    label: str | None = None
    proposed: str | None = None


def preview(path: str) -> Preview:
    """Return the preview of an uploaded file."""
    file = Path(path)
    with named(file):
        check(file)
        source = formats.read(path)
        _, batch = next(source.batches, (None, None))
        names = list(source.schema.names)
        if (length := sum(map(len, names))) > MOST_HEADER:
            raise ValueError(
                f"{file}: the names of its columns have {length:,} characters; give at most {MOST_HEADER:,}."
            )
        if batch is None:
            return Preview([], [])
        first = batch.slice(0, SEEN + 1).to_pylist()
        rows = [["" if value is None else str(value).strip() for value in row.values()] for row in first]
        text = None
        with suppress(ValueError):  # asked for below
            text = text_column(source, batch)
        if len(names) > 1 or source.header:
            seen = batch.slice(0, SAMPLE_ROWS)
            columns = {name: [str(value or "") for value in seen.column(name).to_pylist()] for name in names}
            sizes = {name: sum(map(len, cells)) for name, cells in columns.items()}
            longest, *others = sorted(names, key=lambda name: -sizes[name])
            far = (
                bool(others) and sizes[longest] >= FAR_LONGER * sizes[others[0]]
            )  # such as mails beside their subjects
            if text is None and far and prose(columns[longest]):
                text = longest
            return Preview(names, rows[:SEEN], text, label_column(batch, text), text or longest)
        if source.format == formats.DELIMITED and text is None:
            return Preview(rows[0], rows[1:], proposed=rows[0][0])  # a single word may be a heading
        return Preview([], rows[:SEEN])


def label_column(batch: pa.RecordBatch, text: str | None) -> str | None:
    """Return the column of labels in the first rows of a table: by its name, else the only one with a few values."""
    import pyarrow as pa

    names = [name for name in batch.schema.names if name != text]
    if usual := next((name for name in names if name.lower() in LABEL_NAMES), None):
        return usual
    few = []
    for name in names:
        field = batch.schema.field(name)
        if not pa.types.is_large_string(field.type) or is_json(field):
            continue
        counts = Counter(filter(None, batch.column(name).to_pylist()))
        names_kind = all(len(value) <= MAX_LABEL_CHARACTERS and LETTER.search(value) for value in counts)
        if names_kind and len(counts) > 1 and counts.total() >= LABEL_ROWS * len(counts) and min(counts.values()) > 1:
            few.append(name)
    return few[0] if len(few) == 1 else None


def check(file: Path) -> None:
    """Raise ValueError for a file of more bytes than a visitor may send, as it is or unpacked."""
    if file.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{file}: has more than {MAX_FILE_BYTES // 2**20} MB; give a part of it.")
    try:
        unpacked, most = unpacked_bytes(file)
    except (*DAMAGED, OSError, ValueError) as error:
        reason = str(error).removeprefix(f"{file}: ")
        raise ValueError(f"cannot read {file.name!r} ({reason.splitlines()[0][:160]}); write it again.") from error
    if unpacked > most:
        raise ValueError(f"{file}: unpacks to more than {most // 2**20} MB; give a part of it.")


def unpacked_bytes(file: Path) -> tuple[int, int]:
    """Return the size of a file's content, as a compressed or packed file says or shows it, and the most it may be."""
    with file.open("rb") as packed:
        start = packed.read(4)
    if start == b"PAR1":
        from pyarrow.parquet import read_metadata

        metadata = read_metadata(file)
        return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)), MOST_UNPACKED
    if start == b"PK\x03\x04" and formats.is_workbook(file):
        with zipfile.ZipFile(file) as archive:
            return sum(entry.file_size for entry in archive.infolist()), MOST_UNPACKED
    size = 0
    with opened(file) as content:
        text = content.read(1 << 20)
        most = MOST_JSON if text.lstrip()[:1] in (b"{", b"[") else MOST_UNPACKED
        while text and size <= most:
            size += len(text)
            text = content.read(1 << 20)
    return size, most


def file_corpus(path: str, column: str | None, labels: str | None) -> Corpus:
    """Return an uploaded file as a corpus: of a table, the texts of `column` and the labels of `labels`."""
    file, seen = Path(path), preview(path)
    with named(file):
        chosen, names = column or seen.text, seen.columns
        if names and chosen not in names and "." not in (chosen or ""):  # a path into nested values
            wrong = f"no column {chosen!r}; " if chosen else ""
            if len(names) == 1:
                cure = f"choose {names[0]!r} if it is the column's name, or give a .txt file."
            else:
                cure = f"choose the column of the texts: {', '.join(names[:-1])} or {names[-1]}."
            raise ValueError(f"{file}: {wrong}{cure}")
        columns = (chosen, labels or None) if names else (None, None)
        corpus = Corpus.read(path, *columns, max_bytes=MOST_UNPACKED)
        if not bounded(zip(corpus.texts, corpus.labels, strict=True)):
            raise ValueError(f"{file}: no text in it; give a text a line.")
    return corpus


def bounded(rows: Iterable[T]) -> list[T]:
    """Return rows that begin with a text and its label. Raises ValueError for too many or too long ones."""
    kept, characters = [], 0
    for row in rows:
        kept.append(row)
        characters += len(row[0]) + len(row[1])
        if len(kept) > MOST_TEXTS:
            raise ValueError(f"The file has more than {MOST_TEXTS:,} texts; give a part of it.")
        if characters > MOST_CHARACTERS:
            raise ValueError(f"The file has more than {MOST_CHARACTERS:,} characters of text; give a part of it.")
    return kept


@contextmanager
def named(file: Path) -> Iterator[None]:
    """Reduce the file's path to its name in the messages of errors."""
    try:
        yield
    except FileNotFoundError as error:  # the server deletes files that were never used
        raise ValueError(f"{file.name}: is no longer on the server; upload it again.") from error
    except ValueError as error:
        raise ValueError(str(error).replace(str(file), file.name)) from error


def facts_of(own: OwnCorpus) -> list[str]:
    """Return facts of texts that were just given, as words: what they are, and what was left out."""
    lengths = np.array([len(text) for text in own.texts])
    short, long = np.quantile(lengths, (0.1, 0.9)).astype(int)
    column = "" if own.table is None else f" of the column {own.text_name}"
    size = f"most of {short:,} to {long:,} characters" if short < long else f"{counted(long, 'character')} each"
    facts = [f"{counted(len(own.texts), 'text')}{column}", size]
    if own.without_text:
        facts.append(f"{counted(own.without_text, 'row')} without a text left out")
    copies = len(own.texts) - own.different
    if copies:
        facts.append(f"{copies:,} exact cop{'y' if copies == 1 else 'ies'}")
    if own.labels:
        known = Counter(filter(None, own.labels))
        missing = len(own.texts) - known.total()
        without = f", {counted(missing, 'text')} without" if missing else ""
        facts.append(f"{counted(len(known), 'label')} of {own.label_name}{without}")
        if note := label_note(known):
            facts.append(note)
    return facts
