"""Lines of plain or compressed UTF-8 text files, with a limit on their length."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cse.files.writing import check_regular

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # its first two bytes
MAX_LINE_BYTES = 10_000_000  # bytes; a compressed file of a few kB can hold a line of gigabytes


def text_lines(path: Path, keep_ends: bool = False) -> Iterator[str]:
    """Yield every line of a text file (plain, .gz or .xz), empty ones too, without its newline unless `keep_ends`.

    Raises ValueError for anything but a regular file, bytes that are not UTF-8, NUL bytes (a binary file), a line of
    more than `MAX_LINE_BYTES` bytes and, unless `keep_ends`, a carriage return inside a line; OSError, which names the
    file, if it cannot be read.
    """
    path = Path(path)
    check_regular(path)
    with _opened(path) as file:
        yield from stream_lines(file, str(path), keep_ends)


def stream_lines(file: BinaryIO, path: str, keep_ends: bool = False) -> Iterator[str]:
    """Yield the lines of an open file as `text_lines` does; errors name it as `path`."""
    number = 0
    try:
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number == 1 and raw.startswith(UTF_16):
                raise ValueError(f"{path}: is UTF-16; convert it, for example by iconv -f utf-16 -t utf-8 OLD > NEW")
            if b"\x00" in raw:
                raise ValueError(f"{path}: line {number} holds a NUL byte; give a text file, not a binary one")
            if len(raw) > MAX_LINE_BYTES:
                raise ValueError(f"{path}: line {number} is longer than {MAX_LINE_BYTES:,} bytes; break it up")
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            yield line if keep_ends else _without_end(path, number, line)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: line {number} is not UTF-8 ({error.reason}); convert it, for example by "
            "iconv -f windows-1252 -t utf-8 OLD > NEW, or save it again as UTF-8 (CSV UTF-8 in a spreadsheet)"
        ) from error
    except DAMAGED as error:
        raise ValueError(f"{path}: damaged compressed file after line {number}: {error}") from error
    except OSError as error:
        if error.filename:
            raise
        raise OSError(f"{path}: cannot be read after line {number} ({error}); copy it again") from error


def _without_end(path: str, number: int, line: str) -> str:
    content = line.rstrip("\r\n")
    if "\r" in content:
        raise ValueError(
            f"{path}: line {number} holds a carriage return inside it, as old Macs end lines; convert it, for example "
            "with tr '\\r' '\\n'"
        )
    return content


def begins_with_text(path: Path) -> bool:
    """True if the first 64 kB of a file have no NUL byte. Raises ValueError for a damaged compressed file."""
    try:
        with _opened(path) as file:
            return b"\x00" not in file.read(1 << 16)
    except DAMAGED as error:
        raise ValueError(f"{path}: damaged compressed file: {error}") from error


def _opened(path: Path) -> Any:
    return COMPRESSED.get(path.suffix.lower(), open)(path, "rb")
