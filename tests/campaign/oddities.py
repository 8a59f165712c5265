"""Files as they should not be: valid ones of every type, damaged, and odd ones that somebody might give."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

BOMB = 200_000_000  # bytes, from a file of 200 kB
LONG_LINE = 5_000_000
SUFFIXES = (".txt", ".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt.gz", ".txt.xz", ".csv.gz", ".jsonl.gz")

Maker = Callable[[Path, Random], None]


def valid(suffix: str, lines: Sequence[str]) -> bytes:
    """A file of that kind with a column "text", or with a line for each of `lines`."""
    kind, _, compressed = suffix.removeprefix(".").partition(".")
    quoted = ('"' + line.replace('"', '""') + '"' for line in lines)
    if kind == "parquet":
        raw = parquet({"text": list(lines)})
    elif kind == "csv":
        raw = "\n".join(["text", *quoted]).encode()
    elif kind == "tsv":
        raw = "\n".join(["text", *lines]).encode()
    elif kind == "json":
        raw = json.dumps([{"text": line} for line in lines]).encode()
    elif kind == "jsonl":
        raw = "\n".join(json.dumps({"text": line}) for line in lines).encode()
    else:
        raw = "\n".join(lines).encode()
    return gzip.compress(raw) if compressed == "gz" else lzma.compress(raw) if compressed else raw


def parquet(columns: dict[str, Any]) -> bytes:
    """A .parquet file of these columns."""
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def damaged(raw: bytes, rng: Random) -> tuple[str, bytes]:
    """What was done, and the bytes after it."""
    content = bytearray(raw)
    at = rng.randrange(max(1, len(content)))
    how = rng.choice(("flipped", "cut", "NUL", "latin-1", "zeros", "doubled", "shuffled", "empty", "garbage"))
    if how == "flipped" and content:
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
    elif how == "empty":
        content.clear()
    else:
        content[:] = rng.randbytes(rng.choice((1, 10, 1000)))
    return how, bytes(content)


def _bytes(suffix: str, raw: Callable[[], bytes]) -> tuple[str, Maker]:
    return suffix, lambda path, rng: _write(path, raw())


def _write(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)


def _records(*values: Any) -> bytes:
    return "\n".join(json.dumps(value) for value in values).encode()


def _link(path: Path, rng: Random) -> None:
    path.symlink_to(path.name if rng.random() < 0.5 else "gone")


def _device(name: str) -> Maker:
    return lambda path, rng: path.symlink_to(name)


def _bomb(suffix: str, unit: bytes) -> Maker:
    """A compressed file of one byte, `BOMB` times."""
    compress = gzip.compress if suffix == ".gz" else lzma.compress
    return lambda path, rng: _write(path, compress(unit * (BOMB // 200)) * 200)


def _column(*values: Any) -> tuple[tuple[str, Maker], tuple[str, Maker]]:
    """Two files, .jsonl and .parquet, whose column `text` has these values."""
    return (
        _bytes(".jsonl", lambda: _records(*({"text": value} for value in values))),
        _bytes(".parquet", lambda: parquet({"text": list(values)})),
    )


def _surrogate() -> bytes:
    return b'{"text": "a \\ud800 b"}\n{"text": "the dog"}'


ODD: dict[str, Sequence[tuple[str, Maker]]] = {
    "a FIFO": [(suffix, lambda path, rng: os.mkfifo(path)) for suffix in (".txt", ".tsv", ".jsonl", ".parquet", ".gz")],
    "an endless device": [(suffix, _device("/dev/zero")) for suffix in (".txt", ".csv", ".json", ".parquet", ".gz")],
    "an empty device": [(suffix, _device("/dev/null")) for suffix in (".txt", ".jsonl", ".parquet")],
    "a folder": [(suffix, lambda path, rng: path.mkdir()) for suffix in (".txt", ".csv", ".jsonl", ".parquet")],
    "a link to nothing": [(suffix, _link) for suffix in (".txt", ".tsv", ".json")],
    "no file": [(suffix, lambda path, rng: None) for suffix in SUFFIXES],
    "nothing but blanks": [_bytes(suffix, lambda: b" \n\t\n  \r\n\n") for suffix in (".txt", ".csv", ".jsonl")],
    "a byte order mark alone": [_bytes(suffix, lambda: b"\xef\xbb\xbf") for suffix in (".txt", ".csv", ".jsonl")],
    "UTF-16": [_bytes(suffix, lambda: "the dog\na cat".encode("utf-16")) for suffix in (".txt", ".csv", ".json")],
    "lists": _column(["the dog"], ["a", "cat"]),
    "structs": _column({"a": "the dog"}, {"a": "a cat"}),
    "deep structs": _column({"a": {"b": [{"c": "the dog"}]}}),
    "binary": [_bytes(".parquet", lambda: parquet({"text": [b"the dog", b"\xff\xfe"]}))],
    "numbers": _column(1.5, 2.0, None),
    "truths": _column(True, False),
    "nothings": _column(None, None),
    "mixed types": [_bytes(".jsonl", lambda: _records({"text": "the dog"}, {"text": 3}, {"text": ["x"]}))],
    "other keys later": [_bytes(".jsonl", lambda: _records({"text": "the dog"}, {"other": "a cat"}))],
    "no objects": [_bytes(suffix, lambda: _records("the dog", 3, None)) for suffix in (".jsonl", ".json")],
    "a list in a line": [_bytes(".jsonl", lambda: _records([{"text": "the dog"}]))],
    "empty objects": [_bytes(".jsonl", lambda: _records({}, {}))],
    "deep nesting": [_bytes(suffix, lambda: b"[" * 100_000) for suffix in (".json", ".jsonl")],
    "half a surrogate": [_bytes(".jsonl", _surrogate)],
    "two columns of a name": [_bytes(suffix, lambda: b"text,text\na,b\n") for suffix in (".csv",)],
    "no rows": [_bytes(".parquet", lambda: parquet({"text": []})), _bytes(".csv", lambda: b"text\n")],
    "no columns": [_bytes(".parquet", lambda: parquet({}))],
    "a huge number": [_bytes(".jsonl", lambda: b'{"text": 1e999}\n{"text": ' + b"9" * 5000 + b"}")],
    "a long line": [_bytes(suffix, lambda: b"dog " * (LONG_LINE // 4)) for suffix in (".txt", ".tsv", ".csv")],
    "a long word": [_bytes(".txt", lambda: b"the dog\n" + b"d" * LONG_LINE)],
    "control characters": [_bytes(".txt", lambda: b"the \x1b[31mdog\x07\x0b\x0c\na\xc2\x85cat\xe2\x80\xa8x")],
    "a bomb of zeros": [(".txt.gz", _bomb(".gz", bytes(1))), (".jsonl.gz", _bomb(".gz", bytes(1)))],
    "a bomb of a word": [
        (".txt.xz", _bomb(".xz", b"d")), *((f"{kind}.gz", _bomb(".gz", b"d")) for kind in (".txt", ".csv", ".jsonl")),
        (".json.gz", _bomb(".gz", b"d")), (".parquet", lambda path, rng: _write(path, parquet({"text": ["d" * BOMB]}))),
    ],
    "bytes after the end": [_bytes(".txt.gz", lambda: gzip.compress(b"the dog\n") + b"junk")],
    "two in one": [_bytes(".txt.gz", lambda: gzip.compress(b"the dog\n") + gzip.compress(b"a cat\n"))],
    "another type's name": [
        *(_bytes(suffix, lambda: valid(".parquet", ["the dog"])) for suffix in (".txt", ".csv", ".jsonl", ".gz")),
        *(_bytes(suffix, lambda: valid(".txt", ["the dog"])) for suffix in (".parquet", ".jsonl", ".gz", ".xz")),
    ],
}  # fmt: skip
