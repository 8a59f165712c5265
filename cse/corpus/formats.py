"""Rows of a file of any common format, told from its content: text, delimited, JSON, Parquet, Arrow, .xlsx, hub ids.

Cells of text formats stay as they stand in the file. A column of JSON whose values are not all texts holds each value
as JSON; its field is marked (`is_json`). Columns of Parquet and Arrow keep their types.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from cse.corpus.dialect import (
    DELIMITER_NAMES,
    DELIMITERS,
    OWN_DELIMITERS,
    SAMPLE_CHARACTERS,
    SAMPLE_LINES,
    TEXT_NAMES,
    Dialect,
    dialect_of,
    has_header,
    in_quotes,
    title_rows,
)
from cse.corpus.lines import (
    COMPRESSED,
    COMPRESSIONS,
    DAMAGED,
    MAX_LINE_BYTES,
    ZIP,
    Encoding,
    encoding_of,
    head,
    misnamed,
    opened,
    text_lines,
    zip_member,
)
from cse.corpus.source import (
    MAX_COLUMNS,
    Source,
    distinct_names,
    line_batches,
    named_rows,
    of_dicts,
    plain_batches,
    plain_schema,
    text_batches,
)
from cse.files import hub
from cse.files.remote import is_remote, local_copy, naming, shown
from cse.files.writing import LFS_POINTER, LFS_SIGN, check_regular

TEXT, DELIMITED, JSON_LINES, JSON, PARQUET, ARROW, XLSX = "text", "csv", "jsonl", "json", "parquet", "arrow", "xlsx"
SIGNS = {  # the first bytes of a file's content; a .zip that is packed once more is a workbook
    b"PAR1": PARQUET, b"ARROW1": ARROW, b"\xff\xff\xff\xff": ARROW, ZIP: XLSX,
}  # fmt: skip
SUFFIXES = {
    ".txt": TEXT, ".text": TEXT, **dict.fromkeys(OWN_DELIMITERS, DELIMITED), ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES, ".json": JSON, ".parquet": PARQUET, ".arrow": ARROW, ".feather": ARROW, ".xlsx": XLSX,
    ".xlsm": XLSX,
}  # fmt: skip
SAVE_TEXT = "not a text file; save its text as .txt"
DOCUMENTS = {  # what is no table, with the cure, by its first bytes
    b"%PDF-": f"a PDF document, {SAVE_TEXT}",
    b"{\\rtf": f"an RTF document, {SAVE_TEXT}",
    b"\x89PNG": f"a picture, {SAVE_TEXT}",
    b"\xff\xd8\xff": f"a picture, {SAVE_TEXT}",
    b"\xd0\xcf\x11\xe0": "a workbook of the old format .xls; save it as .xlsx or .csv",
    LFS_SIGN: LFS_POINTER,
}
PARQUET_BATCH_ROWS = 1024  # its texts may be long, and are unpacked
MAX_JSON_BYTES = 1 << 30  # of a document that is read as a whole
MAX_WORKBOOK_BYTES = 1 << 30  # unpacked
USED_OPTIONS = {
    TEXT: ("encoding",), DELIMITED: ("delimiter", "encoding", "header", "quotes", "skip"), JSON_LINES: ("encoding",),
    JSON: ("encoding",), PARQUET: (), ARROW: (), XLSX: ("header", "sheet", "skip"),
}  # fmt: skip
JSON_ROWS: dict[type, str] = {dict: "an object with columns as keys", list: "a list of cells", str: "a text"}

Coding = Callable[[], Encoding]  # a file's encoding, found when it is first asked for


@dataclass(frozen=True)
class Options:
    """How to read a file where its content is not to be guessed; None is a guess."""

    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None
    quotes: bool | None = None
    sheet: str | None = None
    skip: int | None = None  # lines, or rows of a sheet, above the header

    @classmethod
    def of(cls, words: Iterable[str]) -> Options:
        """Return the options of words such as `delimiter=tab`. Raises ValueError for one that is not understood."""
        values: dict[str, Any] = {}
        names = [entry.name for entry in fields(cls)]
        for word in words:
            name, equals, value = word.partition("=")
            if name not in names or not equals or not value:
                raise ValueError(f"how to read is {word!r}; give {', '.join(f'{name}=' for name in names)}, each once")
            names.remove(name)
            if name in ("header", "quotes"):
                if value not in ("yes", "no"):
                    raise ValueError(f"{name} is {value!r}; give {name}=yes or {name}=no")
                values[name] = value == "yes"
            elif name == "skip":
                if not value.isdecimal():
                    raise ValueError(f"skip is {value!r}; give the number of lines above the table, such as skip=2")
                values[name] = int(value)
            elif name == "format" and value not in READERS:
                raise ValueError(f"format is {value!r}; give one of {', '.join(READERS)}")
            elif name == "delimiter":
                values[name] = DELIMITER_NAMES.get(value, value)
                if len(values[name]) != 1 or values[name] in '"\r\n':
                    raise ValueError(f"delimiter is {value!r}; give one character, or {', '.join(DELIMITER_NAMES)}")
            else:
                values[name] = value
        return cls(**values)


def read(name: str, options: Options | None = None) -> Source:
    """Return the rows of a file, a hub id, or an address such as s3://bucket/table.csv.

    Raises ValueError, which names it and the cure, if it cannot be read.
    """
    options, path = options or Options(), Path(name)
    if not name.strip():
        raise ValueError("the name of a file is empty; give one")
    if is_remote(name):
        copy, name = local_copy(name), shown(name)
        with naming(copy, name):
            source = read(str(copy), options)
        return replace(source, name=name, batches=_within(naming(copy, name), source.batches))
    if is_hub_id(name):
        if not hub.reachable():
            raise ValueError(f"{name}: no such file, and the data hub cannot be reached")
        return of_dicts(name, "hub", _within(plain_errors(name), streamed(name)))
    if path.is_dir():
        with plain_errors(name):
            return _of_folder(path, options)
    check_regular(path)
    name = str(path)  # without "./", as errors name it
    with plain_errors(name):
        encoding = cache(lambda: encoding_of(path, options.encoding))  # which may read the whole file
        kind = options.format or _format_of(path, options, encoding)
        _check_options(name, kind, options)
        named = SUFFIXES.get(suffix_of(path))
        source = READERS[kind](path, options, encoding)
    if named and named != kind and not (named == JSON and kind == JSON_LINES) and source.schema.names:
        source.facts.append(f"{kind} by its content, though named {suffix_of(path)}")
    if len(source.schema) > MAX_COLUMNS:
        raise ValueError(f"{name}: has {len(source.schema):,} columns; give at most {MAX_COLUMNS:,}")
    return replace(source, batches=_within(plain_errors(name), source.batches))


def _check_options(name: str, kind: str, options: Options) -> None:
    """Raise ValueError for an option that means nothing in a format."""
    given = [entry.name for entry in fields(options) if getattr(options, entry.name) is not None]
    if unused := [option for option in given if option not in ("format", *USED_OPTIONS[kind])]:
        raise ValueError(f"{name}: is read as {kind}, which has no {unused[0]}; leave out {unused[0]}=")


def suffix_of(path: Path) -> str:
    """The suffix of a path, lower-cased, without that of a compression; in a .zip that of its file."""
    if path.suffix.lower() == ".zip" and path.is_file() and zipfile.is_zipfile(path):
        return Path(zip_member(path)).suffix.lower()
    path = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return path.suffix.lower()


def is_hub_id(name: str) -> bool:
    """True for OWNER/NAME that is no file and has no suffix of a file."""
    path = Path(name)
    return not (path.exists() or suffix_of(path) in SUFFIXES) and name.count("/") == 1 and not path.is_absolute()


def _format_of(path: Path, options: Options, encoding: Coding) -> str:
    if is_workbook(path):
        return XLSX
    start = head(path, 8192)
    if document := next((kind for sign, kind in DOCUMENTS.items() if start.startswith(sign)), None):
        raise ValueError(f"{path}: is {document}")
    if signed := next((kind for sign, kind in SIGNS.items() if start.startswith(sign)), None):
        return signed
    if options.delimiter or any(value is not None for value in (options.header, options.quotes, options.skip)):
        return DELIMITED
    named = SUFFIXES.get(suffix_of(path))
    text = _beginning(path, start)
    if text.startswith(("{", "[")) and (kind := _kind_of_json(path, text, named)):
        return kind
    if named != TEXT and text[:14].lower().startswith(("<!doctype html", "<html")):
        raise ValueError(f"{path}: is a web page, not a table; download the file behind it, or save its text as .txt")
    if start and named in SIGNS.values():
        raise ValueError(misnamed(path, suffix_of(path)))
    if named and named != TEXT and named not in SIGNS.values():
        return named
    lines, complete = _sample(path, encoding())
    return DELIMITED if dialect_of(lines, "", complete=complete).delimiter else TEXT


def _beginning(path: Path, start: bytes) -> str:
    """Return the text of the first bytes of a file, and of JSON its whole first line."""
    coding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = start.decode(coding, "replace").lstrip()
    cut = text.startswith(("{", "[")) and "\n" not in text
    return head(path, MAX_LINE_BYTES).decode(coding, "replace").lstrip() if cut else text


def is_workbook(path: Path) -> bool:
    """True for the .zip that an .xlsx is. Raises ValueError for one of another program."""
    with path.open("rb") as file:
        if file.read(4) != ZIP:
            return False
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if "mimetype" in names:
        raise ValueError(f"{path}: is an OpenDocument file; save it as .xlsx or .csv")
    if "word/document.xml" in names:
        raise ValueError(f"{path}: is a Word document, {SAVE_TEXT}")
    return "xl/workbook.xml" in names


def _kind_of_json(path: Path, text: str, named: str | None) -> str | None:
    """Return the format of a file that begins with this text, after a bracket; None if it may be prose."""
    first, _, further = text.partition("\n")
    whole, further = None, further.strip()
    with suppress(ValueError, RecursionError):
        whole = json.loads(first)
    if named in (None, TEXT) and whole is not None and further and not further.startswith(("{", "[")):
        return None
    if isinstance(whole, dict) and (further or (named != JSON and _json_rows(path, whole) == [whole])):
        return JSON_LINES
    if named == JSON_LINES and (whole is None or further):
        return JSON if whole is None and _opens_json(text) else JSON_LINES
    return JSON if whole is not None or named == JSON or _opens_json(text) else None


def _opens_json(text: str) -> bool:
    """True if a text of several lines begins a document of JSON: brackets, then a key or an object."""
    start = "".join(text[:400].split())
    return start.startswith(('{"', "[{", '["')) and ('":' in start or start.startswith('["'))


def _sample(path: Path, encoding: Encoding) -> tuple[list[str], bool]:
    """Return the first lines of a file with their ends, and whether they are all."""
    lines, characters = [], 0
    every = text_lines(path, keep_ends=True, encoding=replace(encoding))  # which notes what it could not decode
    for line in every:
        lines.append(line)
        characters += len(line)
        if len(lines) >= SAMPLE_LINES or characters >= SAMPLE_CHARACTERS:
            return lines, next(every, None) is None
    return lines, True


def _text(path: Path, options: Options, coding: Coding) -> Source:
    encoding = coding()
    schema = pa.schema([(TEXT_NAMES[1], pa.large_string())])
    batches = line_batches(text_lines(path, encoding=encoding), schema)
    return Source(str(path), TEXT, schema, batches, [], encoding, header=False)


def _delimited(path: Path, options: Options, coding: Coding) -> Source:
    encoding, suffix = coding(), suffix_of(path)
    lines, complete = _sample(path, encoding)
    try:
        dialect = dialect_of(
            lines, suffix, delimiter=options.delimiter, quotes=options.quotes, header=options.header, skip=options.skip,
            complete=complete,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    unseen = not dialect.quotes and options.quotes is None and not any('"' in line for line in lines)
    rows = _cells(path, dialect, encoding, unseen)
    first = next(rows, None)
    if first is None:
        if options.skip and lines:
            raise ValueError(f"{path}: skip is {options.skip}, and no row comes after so many lines; give fewer")
        return Source(str(path), DELIMITED, pa.schema([]), iter(()), [], encoding)
    rows = chain([first], rows) if dialect.header is False else rows
    facts = [DELIMITERS.get(dialect.delimiter, repr(dialect.delimiter))] if len(first) > 1 else []
    facts += ["quotes are characters"] if not dialect.quotes and any('"' in line for line in lines) else []
    facts += ["no header"] if dialect.header is False else []
    titles = lines[: dialect.skipped] if dialect.header is not False else []
    facts += _above(sum(bool(line.strip()) and not line.startswith("sep=") for line in titles))
    schema = _schema(first, dialect.header)
    return Source(str(path), DELIMITED, schema, text_batches(rows, schema), facts, encoding, dialect.header)


def _above(rows: int) -> list[str]:
    return [f"{rows} row{'s' if rows > 1 else ''} above the table left out"] if rows else []


def _schema(first: Sequence[str], header: bool | None) -> pa.Schema:
    """Return columns of texts by the names in the `first` row, or by their numbers if that is none."""
    names = [cell.strip() or str(number) for number, cell in enumerate(first, 1)]
    if header is False:
        names = [TEXT_NAMES[1]] if len(first) == 1 else [str(number) for number in range(1, len(first) + 1)]
    return pa.schema([pa.field(name, pa.large_string(), metadata=mark) for name, mark in distinct_names(names).items()])


def _cells(path: Path, dialect: Dialect, encoding: Encoding, unseen: bool = False) -> Iterator[list[str]]:
    """Yield the cells of every row that is not blank, as many as the first row has.

    Missing cells at the end are empty. Raises ValueError, which names the line, for further cells that are not empty,
    and for a row that cannot be read. Quotes that were `unseen` when they were taken for characters must be some: a
    cell in them that has doubled ones or a line's end is refused.
    """
    lines = islice(text_lines(path, keep_ends=True, encoding=encoding), dialect.skipped, None)
    reader, begins = dialect.reader(lines), dialect.skipped + 1
    width: int | None = None
    unclosed = False  # the row before may end within a quoted cell
    try:
        for row in reader:
            if unseen:
                doubled = any(in_quotes(cell) and '""' in cell[1:-1] for cell in row)
                if doubled or (unclosed and width is not None and len(row) < width):
                    raise ValueError(
                        f"{path}: line {begins - (not doubled)}: a quoted cell, and none before it; say quotes=yes, or "
                        "quotes=no for quotes that are characters"
                    )
                unclosed = bool(row) and row[-1][:1] == '"' and not in_quotes(row[-1])
            if len(row) != width:
                if not row or (len(row) == 1 and not row[0].strip() and width != 1):
                    begins = dialect.skipped + reader.line_num + 1
                    continue  # a blank line
                width = width or len(row)
                if any(cell.strip() for cell in row[width:]):
                    cure = 'quote cells that hold a delimiter by ", with no blank before it'
                    cure = cure if dialect.quotes else "replace delimiters inside cells"
                    other = "name another delimiter"
                    if width == 1:
                        absent = "tab" if dialect.delimiter != "\t" else "bar"
                        other = f"read it as one column (delimiter={absent}), or skip lines (skip={begins - 1})"
                    raise ValueError(
                        f"{path}: line {begins} has {len(row)} cells, not {width} as the first row; {cure}, or {other}"
                    )
                row = row[:width] + [""] * (width - len(row))
            yield row
            begins = dialect.skipped + reader.line_num + 1
    except csv.Error as error:
        reason = str(error).split(" - ")[0]  # the rest is advice to programmers
        cure = 'close every quote, write a quote inside a quoted cell as "", or read quotes as characters: quotes=no'
        if reason.startswith("new-line"):
            reason, cure = "a carriage return within it", "end every row in the same way, or quote the cell"
        raise ValueError(f"{path}: line {begins}: cannot read this row ({reason}); {cure}") from error


def _json_lines(path: Path, options: Options, coding: Coding) -> Source:
    encoding = coding()

    def numbered() -> Iterator[tuple[int, Any]]:
        for number, line in enumerate(text_lines(path, encoding=encoding), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if "\\u" in line:
                    json.dumps(row, ensure_ascii=False).encode()  # half of a surrogate pair is an error
            except (ValueError, RecursionError) as error:
                reason = f"cannot read it as JSON ({str(error)[:160]})"
                raise ValueError(f"{path}: line {number}: {reason}; fix or remove it") from error
            yield number, row

    return of_dicts(str(path), JSON_LINES, _named_rows(f"{path}: line", numbered()), encoding)


def _json(path: Path, options: Options, coding: Coding) -> Source:
    encoding = coding()
    with opened(path) as file:
        content = file.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise ValueError(f"{path}: is larger than {MAX_JSON_BYTES >> 30} GB; write it as JSON lines, an object a line")
    if not content.strip():
        return Source(str(path), JSON, pa.schema([]), iter(()))
    try:
        value = json.loads(content.decode("utf-8-sig" if encoding.name == "utf-8" else encoding.name))
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot read it as JSON ({str(error)[:160]}); fix it") from error
    return of_dicts(str(path), JSON, _named_rows(f"{path}: row", enumerate(_json_rows(path, value), 1)), encoding)


def _named_rows(where: str, rows: Iterable[tuple[int, Any]]) -> Iterator[dict[str, Any]]:
    """Yield numbered rows of JSON as cells by column: those of a list by their numbers, a text alone as "text".

    Raises ValueError for a row of another kind than the first.
    """
    kind = None
    for number, row in rows:
        kind = kind or (type(row) if type(row) in JSON_ROWS else dict)
        if type(row) is not kind:
            raise ValueError(f"{where} {number} holds a {type(row).__name__}, not {JSON_ROWS[kind]}")
        if kind is dict:
            yield row
        else:
            yield {TEXT_NAMES[1]: row} if kind is str else {str(column): cell for column, cell in enumerate(row, 1)}


def _json_rows(path: Path, value: Any) -> list[Any]:
    """Return the rows of a document: a list, the one list in an object, or columns of equal length."""
    if isinstance(value, list):
        cells = [list(map(str, row)) for row in value[:SAMPLE_LINES] if isinstance(row, list)]
        if len(cells) < len(value[:SAMPLE_LINES]) or not cells or not has_header(cells):
            return value
        value = {"columns": cells[0], "data": value[1:]}
    if not isinstance(value, dict):
        raise ValueError(f"{path}: holds a {type(value).__name__}; give a list of objects, or columns")
    columns, data = value.get("columns"), value.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        return [dict(zip(map(str, columns), row, strict=False)) for row in data]  # pandas' "split"
    lists = [entry for entry in value.values() if isinstance(entry, list)]
    if value and len(lists) == len(value) and len(set(map(len, lists))) == 1 and not isinstance(lists[0][:1], dict):
        if len(lists) == 1 and lists[0] and isinstance(lists[0][0], dict):
            return lists[0]
        return [dict(zip(value, cells, strict=True)) for cells in zip(*value.values(), strict=True)]
    objects = [entry for entry in value.values() if isinstance(entry, dict)]
    if value and len(objects) == len(value) and all(objects) and len({tuple(entry) for entry in objects}) == 1:
        if all(str(key).isdecimal() for key in objects[0]):  # columns of numbered cells, as pandas writes them
            return [{name: cells[key] for name, cells in value.items()} for key in objects[0]]
        return [{"key": key, **row} for key, row in value.items()]
    of_objects = [entry for entry in lists if entry and all(isinstance(row, dict) for row in entry)]
    if len(of_objects) == 1:
        return of_objects[0]
    return [value]


def _unpacked_file(path: Path) -> Path | io.BytesIO:
    """Return a file of a format with bytes of its own, in memory if it is packed or a workbook of another suffix."""
    with path.open("rb") as file:
        packed = file.read(6).startswith(tuple(COMPRESSED))
    if not packed or (is_workbook(path) and SUFFIXES.get(path.suffix.lower()) == XLSX):
        return path
    with path.open("rb") if is_workbook(path) else opened(path) as file:
        return io.BytesIO(file.read())


def _parquet(path: Path, options: Options, coding: Coding) -> Source:
    from pyarrow.parquet import ParquetFile

    content = _unpacked_file(path)
    file = ParquetFile(content)
    texts = [entry.name for entry in file.schema_arrow if pa.types.is_string(entry.type)]
    schema = plain_schema(file.schema_arrow)
    file = ParquetFile(content, read_dictionary=texts)  # texts that repeat are stored once
    return Source(str(path), PARQUET, schema, plain_batches(file.iter_batches(PARQUET_BATCH_ROWS), schema))


def _arrow(path: Path, options: Options, coding: Coding) -> Source:
    content = _unpacked_file(path)
    if head(path, 6) == b"ARROW1":
        reader = pa.ipc.open_file(pa.memory_map(str(path)) if content is path else content)
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        reader = batches = pa.ipc.open_stream(pa.OSFile(str(path)) if content is path else content)
    schema = plain_schema(reader.schema)
    return Source(str(path), ARROW, schema, plain_batches(batches, schema))


def _of_folder(path: Path, options: Options) -> Source:
    """Return the rows of a folder that `Dataset.save_to_disk` wrote. Raises ValueError for another."""
    state = path / "state.json"
    if not state.is_file():
        readable = [*sorted(path.glob(f"*/{state.name}")), *sorted(path.iterdir())]
        names = [entry.parent if entry.name == state.name else entry for entry in readable]
        example = next((f", such as {entry}" for entry in names if entry.is_dir() or entry.suffix in SUFFIXES), "")
        raise ValueError(f"{path}: is a folder, not a file; give a file{example}")
    _check_options(str(path), ARROW, options)
    files = [path / entry["filename"] for entry in json.loads(state.read_text(encoding="utf-8"))["_data_files"]]
    readers = [pa.ipc.open_stream(pa.memory_map(str(file))) for file in files]
    schema = plain_schema(readers[0].schema)
    return Source(str(path), ARROW, schema, plain_batches(chain.from_iterable(readers), schema), ["saved by datasets"])


def _xlsx(path: Path, options: Options, coding: Coding) -> Source:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ValueError(f"{path}: needs openpyxl; pip install openpyxl, or save it as .csv") from error
    content = _unpacked_file(path)
    with zipfile.ZipFile(content) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MAX_WORKBOOK_BYTES:
            raise ValueError(f"{path}: unpacks to more than {MAX_WORKBOOK_BYTES >> 30} GB; save the sheet as .csv")
    book = load_workbook(content, read_only=True, data_only=True)
    if options.sheet is not None and options.sheet not in book.sheetnames:
        raise ValueError(f"{path}: has no sheet {options.sheet!r}; it has {', '.join(book.sheetnames)}")
    sheets = [sheet for sheet in book.worksheets if options.sheet in (None, sheet.title)]  # none that is a chart
    for sheet in sheets:  # the first one that is not empty
        sheet.reset_dimensions()  # some programs write too small ones, by which cells would be left out
        rows = _sheet_rows(sheet.iter_rows(values_only=True))
        if sample := list(islice(rows, SAMPLE_LINES)):
            break
    else:
        return Source(str(path), XLSX, pa.schema([]), iter(()))
    width = max(map(len, sample))
    padded = [row + [""] * (width - len(row)) for row in sample]
    guessed = options.skip is None and options.header is not False
    above = title_rows(padded) if guessed else options.skip or 0
    if not padded[above:]:
        raise ValueError(f"{path}: skip is {above}, but the sheet begins with {len(padded)} rows; give fewer")
    header = has_header(padded[above:]) if options.header is None else options.header
    every = chain(sample[above if header is False else above + 1 :], rows)
    facts = [f"sheet {sheet.title!r}"] if len(book.sheetnames) > 1 else []
    facts += ["no header"] if header is False else []
    facts += _above(sum(map(any, padded[:above])))
    schema = _schema(padded[above], header)
    return Source(str(path), XLSX, schema, text_batches(_padded(path, every, width), schema), facts, header=header)


def _padded(path: Path, rows: Iterable[list[str]], width: int) -> Iterator[list[str]]:
    """Yield rows of `width` cells. Raises ValueError for one that has more."""
    for number, row in enumerate(rows, 1):
        if len(row) > width:
            raise ValueError(
                f"{path}: row {number} has {len(row)} cells, and the first {SAMPLE_LINES} rows at most {width}; name "
                "its further columns in the first row, or empty these cells"
            )
        yield row + [""] * (width - len(row))


def _sheet_rows(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[str]]:
    """Yield the cells of a sheet's rows as texts, from the first row that is not blank to the last."""
    from openpyxl.utils.escape import unescape

    begun, blank = False, 0
    for row in rows:
        cells = []
        for value in row:
            whole = isinstance(value, float) and value.is_integer()
            text = str(int(value) if whole else value)
            if hasattr(value, "isoformat"):  # the library gives a date as the start of its day
                text = value.isoformat().removesuffix("T00:00:00")
            cells.append("" if value is None else unescape(text))  # a carriage return stands there as _x000D_
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            blank += begun
            continue
        yield from ([] for _ in range(blank))
        begun, blank = True, 0
        yield cells


def streamed(name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a hub dataset's training split, as they come."""
    from datasets import load_dataset
    from datasets.utils.logging import CRITICAL, disable_progress_bar, set_verbosity

    disable_progress_bar()
    set_verbosity(CRITICAL)  # the error repeats what it would log
    yield from named_rows(load_dataset(name, split="train", streaming=True))


def _within(errors: AbstractContextManager[None], rows: Iterator[Any]) -> Iterator[Any]:
    """Yield `rows`, whose errors the context names."""
    with errors:
        yield from rows


@contextmanager
def plain_errors(name: str) -> Iterator[None]:
    """Turn any failure of a library that reads a source into one line that names the source."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, SyntaxError, RuntimeError, *DAMAGED) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        own = isinstance(error, ValueError) and not isinstance(error, pa.ArrowInvalid) and reason.startswith(name)
        if own or (isinstance(error, OSError) and (error.filename or reason.startswith(name))):
            raise
        cure = f"give a file ({', '.join(SUFFIXES)}) or a hub id"
        if name.endswith((".xlsx", ".xlsm")):
            cure = "open it in a spreadsheet, and save it again"
        raise ValueError(f"cannot read {name!r} ({reason}); {cure}") from error


READERS: dict[str, Callable[[Path, Options, Coding], Source]] = {
    TEXT: _text, DELIMITED: _delimited, JSON_LINES: _json_lines, JSON: _json, PARQUET: _parquet, ARROW: _arrow,
    XLSX: _xlsx,
}  # fmt: skip
