"""Files as they should not be: valid ones of every type, damaged, and odd ones that somebody might give."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

BOMB = 200_000_000  # bytes, from a file of 200 kB
LONG_LINE = 5_000_000
SUFFIXES = (".txt", ".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt.gz", ".txt.xz", ".csv.gz", ".jsonl.gz")

Maker = Callable[[Path, Random], object]
Files = list[tuple[str, Maker]]


def valid(suffix: str, lines: Sequence[str]) -> bytes:
    """A file of that kind with a column "text", or with a line for each of `lines`."""
    kind, _, compressed = suffix.removeprefix(".").partition(".")
    rows = [{"text": line} for line in lines]
    if kind == "parquet":
        return parquet({"text": list(lines)})
    text = {
        "csv": "\n".join(["text", *('"' + line.replace('"', '""') + '"' for line in lines)]),
        "tsv": "\n".join(["text", *lines]),
        "json": json.dumps(rows),
        "jsonl": "\n".join(map(json.dumps, rows)),
    }.get(kind, "\n".join(lines))
    raw = text.encode()
    return gzip.compress(raw) if compressed == "gz" else lzma.compress(raw) if compressed else raw


def parquet(columns: dict[str, Any]) -> bytes:
    """A .parquet file of these columns."""
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def damaged(raw: bytes, rng: Random) -> tuple[str, bytes]:
    """A change of a file, in words, and the bytes after it."""
    content = bytearray(raw)
    at = rng.randrange(max(1, len(content)))
    how = rng.choice(("flipped", "cut", "NUL", "latin-1", "zeros", "doubled", "shuffled", "empty", "garbage"))
    if how == "flipped":
        for place in rng.sample(range(len(content)), min(len(content), rng.choice((1, 1, 3, 20)))):
            content[place] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del content[at:]
    elif how == "NUL":
        content[at:at] = b"\x00"
    elif how == "latin-1":
        content[at:at] = b"caf\xe9"
    elif how == "zeros":
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    elif how == "doubled":
        content += bytes(content)
    elif how == "shuffled":
        rng.shuffle(content)
    else:
        content[:] = rng.randbytes(rng.choice((1, 10, 1000))) if how == "garbage" else b""
    return how, bytes(content)


def write(raw: bytes, path: Path, rng: Random) -> None:
    """A maker of a file with these bytes."""
    path.write_bytes(raw)


def _raw(raw: bytes, *suffixes: str) -> Files:
    return [(suffix, partial(write, raw)) for suffix in suffixes]


def _made(make: Maker, *suffixes: str) -> Files:
    return [(suffix, make) for suffix in suffixes]


def _table(columns: dict[str, Any], *suffixes: str) -> Files:
    return _made(lambda path, rng: path.write_bytes(parquet(columns)), *suffixes)


def _column(*values: Any) -> Files:
    """Two files, .jsonl and .parquet, whose column `text` has these values."""
    lines = "\n".join(json.dumps({"text": value}) for value in values).encode()
    return [*_raw(lines, ".jsonl"), *_table({"text": list(values)}, ".parquet")]


def _bomb(unit: bytes, *suffixes: str) -> Files:
    """Compressed files of one byte, `BOMB` times."""

    def make(path: Path, rng: Random) -> None:
        compress = lzma.compress if path.suffix == ".xz" else gzip.compress
        path.write_bytes(compress(unit * (BOMB // 200)) * 200)

    return _made(make, *suffixes)


ODD: dict[str, Files] = {
    "a FIFO": _made(lambda path, rng: os.mkfifo(path), ".txt", ".tsv", ".jsonl", ".parquet", ".gz"),
    "an endless device": _made(
        lambda path, rng: path.symlink_to("/dev/zero"), ".txt", ".csv", ".json", ".parquet", ".gz"
    ),
    "an empty device": _made(lambda path, rng: path.symlink_to("/dev/null"), ".txt", ".jsonl", ".parquet"),
    "a folder": _made(lambda path, rng: path.mkdir(), ".txt", ".csv", ".jsonl", ".parquet"),
    "a link to itself": _made(lambda path, rng: path.symlink_to(path.name), ".txt", ".json"),
    "a link to nothing": _made(lambda path, rng: path.symlink_to("gone"), ".tsv"),
    "no file": _made(lambda path, rng: None, *SUFFIXES),
    "nothing but blanks": _raw(b" \n\t\n  \r\n\n", ".txt", ".csv", ".jsonl"),
    "a byte order mark alone": _raw(b"\xef\xbb\xbf", ".txt", ".csv", ".jsonl"),
    "UTF-16": _raw("the dog\na cat".encode("utf-16"), ".txt", ".csv", ".json"),
    "lists": _column(["the dog"], ["a", "cat"]),
    "structs": _column({"a": "the dog"}, {"a": "a cat"}),
    "deep structs": _column({"a": {"b": [{"c": "the dog"}]}}),
    "numbers": _column(1.5, 2.0, None),
    "truths": _column(True, False),
    "nothings": _column(None, None),
    "binary": _table({"text": [b"the dog", b"\xff\xfe"]}, ".parquet"),
    "mixed types": _raw(b'{"text": "the dog"}\n{"text": 3}\n{"text": ["x"]}', ".jsonl"),
    "other keys later": _raw(b'{"text": "the dog"}\n{"other": "a cat"}', ".jsonl"),
    "no objects": _raw(b'"the dog"\n3\nnull', ".jsonl", ".json"),
    "a list in a line": _raw(b'[{"text": "the dog"}]', ".jsonl"),
    "empty objects": _raw(b"{}\n{}", ".jsonl"),
    "deep nesting": _raw(b"[" * 100_000, ".json", ".jsonl"),
    "half a surrogate": _raw(b'{"text": "a \\ud800 b"}\n{"text": "the dog"}', ".jsonl"),
    "two columns of a name": _raw(b"text,text\na,b\n", ".csv"),
    "no rows": [*_raw(b"text\n", ".csv"), *_column()],
    "no columns": _table({}, ".parquet"),
    "a huge number": _raw(b'{"text": 1e999}\n{"text": ' + b"9" * 5000 + b"}", ".jsonl"),
    "a long line": _raw(b"dog " * (LONG_LINE // 4), ".txt", ".tsv", ".csv"),
    "a long word": _raw(b"the dog\n" + b"d" * LONG_LINE, ".txt"),
    "control characters": _raw(b"the \x1b[31mdog\x07\x0b\x0c\na\xc2\x85cat\xe2\x80\xa8x", ".txt"),
    "a bomb of zeros": _bomb(bytes(1), ".txt.gz", ".jsonl.gz"),
    "a bomb of a word": [
        *_bomb(b"d", ".txt.xz", ".txt.gz", ".csv.gz", ".jsonl.gz", ".json.gz"),
        *_made(lambda path, rng: path.write_bytes(parquet({"text": ["d" * BOMB]})), ".parquet"),
    ],
    "bytes after the end": _raw(gzip.compress(b"the dog\n") + b"junk", ".txt.gz"),
    "two in one": _raw(gzip.compress(b"the dog\n") + gzip.compress(b"a cat\n"), ".txt.gz"),
    "a table as text": _table({"text": ["the dog"]}, ".txt", ".csv", ".jsonl", ".gz"),
    "text as a table": _raw(b"the dog", ".parquet", ".jsonl", ".gz", ".xz"),
}
