"""Text of any file as lines: plain or compressed, in the encoding that its bytes show, with a limit on their length."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.files.writing import check_regular

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip")  # suffixes that a name may have after that of its content
NOT_OF_TEXT = (".xlsx", ".xlsm", ".parquet", ".arrow", ".feather", ".png", ".jpg", ".pdf")
ZIP = b"PK\x03\x04"
COMPRESSED: dict[bytes, Callable[[Path], Any]] = {  # how to open files that begin with these bytes
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open,
    ZIP: lambda path: zipfile.ZipFile(path).open(zip_member(path)),  # noqa: SIM115  # who asked for it closes it
}  # fmt: skip
UNPACKED_AT_ONCE = 1 << 16  # bytes
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile)
MAX_LINE_BYTES = 10_000_000  # a compressed file of a few kB can hold a line of gigabytes
# Text shrinks to a third or a tenth; a file that unpacks to more than this was made to fill a disk or the memory.
MAX_EXPANSION, FREE_EXPANSION_BYTES = 200, 192 << 20
BOMS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
# What files of people's programs are written in. Asked about all 90 encodings it knows, charset-normalizer takes a
# sentence of Japanese for Korean; among these it was right for every one (docs/decisions.md).
ENCODINGS = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "shift_jis", "euc_jp", "gb18030", "big5",
    "euc_kr", "koi8_r", "mac_roman",
)  # fmt: skip
USUAL_ENCODING = "cp1252"  # of what cannot be told: Windows in the west
SAMPLE_BYTES = 1 << 18


@dataclass
class Encoding:
    """How the bytes of a file are decoded: by `name`, or `rest` where a line is not of that encoding.

    `undecoded` becomes True when characters of a line cannot be decoded; the line then holds U+FFFD.
    """

    name: str = "utf-8"
    rest: str | None = None
    undecoded: bool = False
    newline: str = "\n"
    mixed: bool = False  # some lines were not of the encoding `name`
    checked: bool = False  # the whole file was read: it is UTF-8, without NUL bytes and endless lines

    def __str__(self) -> str:
        """The encoding as people call it."""
        names = [self.name, self.rest] if self.rest and self.mixed else [self.name]
        return " and ".join(name.replace("cp125", "windows-125").replace("_", "-") for name in names)


def opened(path: Path) -> io.BufferedReader:
    """Open a file for reading, unpacked if it is compressed (by its content), or the one file in a .zip.

    Raises ValueError for a .zip of several files, OSError if it cannot be read.
    """
    with path.open("rb") as file:
        magic = file.read(6)
    for sign, opener in COMPRESSED.items():
        if magic.startswith(sign):
            return io.BufferedReader(_Bounded(opener(path), path), UNPACKED_AT_ONCE)
    return path.open("rb")


def zip_member(path: Path) -> str:
    """Return the name of the one file in a .zip. Raises ValueError if there are several, or it is encrypted."""
    with zipfile.ZipFile(path) as archive:
        files = [entry for entry in archive.infolist() if not entry.is_dir()]
        files = [entry for entry in files if not entry.filename.startswith("__MACOSX/")]
        if len(files) != 1:
            raise ValueError(f"{path}: holds {len(files)} files; unpack it and give one of them")
        if files[0].flag_bits & 1:
            raise ValueError(f"{path}: is encrypted; unpack it")
        return files[0].filename


class _Bounded(io.RawIOBase):
    """An unpacked file that refuses to grow without end."""

    def __init__(self, file: Any, path: Path) -> None:
        self.file, self.path, self.unpacked = file, path, 0
        self.limit = max(FREE_EXPANSION_BYTES, MAX_EXPANSION * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        size: int = self.file.readinto(buffer)
        self.unpacked += size
        if self.unpacked > self.limit:
            raise ValueError(f"{self.path}: unpacks to more than {MAX_EXPANSION} times its size; unpack it yourself")
        return size

    def close(self) -> None:
        self.file.close()
        super().close()


def head(path: Path, size: int = SAMPLE_BYTES) -> bytes:
    """Return the first `size` bytes of a file's content. Raises ValueError for a damaged compressed file."""
    try:
        with opened(path) as file:
            return file.read(size)
    except DAMAGED as error:
        raise ValueError(f"{path}: damaged compressed file: {error}") from error


def encoding_of(path: Path, name: str | None = None) -> Encoding:
    """Return the encoding of a whole text file, or the one that is called `name`.

    Bytes that are not UTF-8 are read as what they look like. Raises ValueError for an unknown name.
    """
    if name is not None:
        try:
            "".encode(name)  # base64 has no text
            return Encoding(
                codecs.lookup(name).name.replace("-", "_") if name.lower() not in ("utf-8", "utf8") else "utf-8"
            )
        except LookupError as error:
            raise ValueError(f"{path}: unknown encoding {name!r}; give one such as utf-8 or windows-1252") from error
    first = head(path, 4096)
    for bom, coding in BOMS.items():
        if first.startswith(bom):
            return Encoding(coding)
    if len(first) > 3 and b"\x00" in first:  # every second byte of Latin letters in UTF-16
        zeros = first[0::2].count(0), first[1::2].count(0)
        if max(zeros) > 0.4 * len(first) / 2 and min(zeros) < 0.05 * len(first) / 2:
            return Encoding("utf_16_be" if zeros[0] > zeros[1] else "utf_16_le")
    return _of_bytes(path)


def _of_bytes(path: Path) -> Encoding:
    """Return UTF-8, what the lines that are not UTF-8 look like, or both. Raises ValueError for a binary file."""
    decoder, valid, lines, returns, length = codecs.getincrementaldecoder("utf-8")(), True, 0, 0, 0
    try:
        with opened(path) as file:
            while block := file.read(1 << 20):
                if (null := block.find(b"\x00")) >= 0:
                    raise ValueError(binary(path, lines + block.count(b"\n", 0, null) + 1))
                newlines = block.count(b"\n")
                length = len(block) - block.rfind(b"\n") - 1 if newlines else length + len(block)
                lines, returns = lines + newlines, returns + block.count(b"\r")
                if length > MAX_LINE_BYTES and (lines or not returns):
                    raise ValueError(too_long(path, lines + 1))
                try:
                    valid = valid and decoder.decode(block) is not None
                except UnicodeDecodeError:
                    valid = False
        newline = "\r" if returns and not lines else "\n"
        if valid and not decoder.getstate()[0]:
            return Encoding(newline=newline, checked=True)
        strange: list[bytes] = []
        size, mixed = 0, False
        with opened(path) as file:
            while size < SAMPLE_BYTES and (line := file.readline(MAX_LINE_BYTES)):
                if line.isascii():
                    continue
                try:
                    line.decode()
                    mixed = True
                except UnicodeDecodeError:
                    strange.append(line)
                    size += len(line)
    except DAMAGED as error:
        raise ValueError(f"{path}: damaged compressed file: {error}") from error
    name = _likeliest(strange)
    return Encoding("utf-8", rest=name, newline=newline) if mixed else Encoding(name, rest=name, newline=newline)


def binary(path: Path | str, line: int) -> str:
    """The error of a file that is no text, though it has none of the signs of other formats."""
    if (suffix := Path(path).suffix.lower()) in NOT_OF_TEXT:
        return misnamed(path, suffix)
    return f"{path}: line {line} holds a NUL byte; give a text file, not a binary one"


def misnamed(path: Path | str, suffix: str) -> str:
    """The error of a file that is not of the format of its suffix."""
    return f"{path}: is no {suffix} file, or a damaged one; save it again"


def too_long(path: Path | str, line: int) -> str:
    """The error of a line that would fill the memory."""
    return f"{path}: line {line} is longer than {MAX_LINE_BYTES:,} bytes; break it up"


def _likeliest(lines: Sequence[bytes]) -> str:
    """Return the encoding that lines, none of them UTF-8, look most like; among equals the most usual one."""
    from charset_normalizer import from_bytes

    # Five bytes stand for nothing in windows-1252. A few damaged lines must not rule it out for the others.
    whole = [line for line in lines if not any(byte in line for byte in b"\x81\x8d\x8f\x90\x9d")]
    matches = list(from_bytes(b"".join(whole if 2 * len(whole) > len(lines) else lines), cp_isolation=list(ENCODINGS)))
    if not matches:
        return USUAL_ENCODING
    best = [match for match in matches if (match.chaos, -match.coherence) <= (matches[0].chaos, -matches[0].coherence)]
    names = {name for match in best for name in (match.encoding, *match.could_be_from_charset)}
    return next((name for name in ENCODINGS if name in names), matches[0].encoding)


def text_lines(path: Path, keep_ends: bool = False, encoding: Encoding | None = None) -> Iterator[str]:
    """Yield every line of a text file, empty ones too, without its newline unless `keep_ends`.

    Only newlines end a line, or carriage returns where a file has no newline. Raises ValueError for anything but a
    regular file, NUL bytes (a binary file), and a line of more than `MAX_LINE_BYTES` bytes; OSError, which names the
    file, if it cannot be read.
    """
    path, number = Path(path), 0
    check_regular(path)
    coding = encoding or encoding_of(path)
    wide = coding.name.startswith(("utf-16", "utf_16", "utf-32", "utf_32")) or coding.newline != "\n"
    try:
        with opened(path) as file:
            for line in _whole(file, coding) if wide or coding.checked else _by_line(file, coding):
                number += 1
                if "\x00" in line:
                    raise ValueError(binary(path, number))
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(too_long(path, number))
                yield line if keep_ends else line.rstrip("\r\n")
    except UnicodeError as error:
        raise ValueError(
            f"{path}: line {number + 1} is not {coding} ({error}); give its encoding, or save it again as UTF-8"
        ) from error
    except DAMAGED as error:
        raise ValueError(f"{path}: damaged compressed file after line {number}: {error}") from error
    except OSError as error:
        if error.filename:
            raise
        raise OSError(f"{path}: cannot be read after line {number} ({error}); copy it again") from error


def _whole(file: io.BufferedReader, coding: Encoding) -> Iterator[str]:
    """Yield the lines of a file that is of one encoding."""
    name = "utf-8-sig" if coding.name == "utf-8" else coding.name
    # Closed by name: a reader that stops early would leave that to the garbage collector, which warns.
    with io.TextIOWrapper(file, name, "strict" if coding.checked else "replace", coding.newline) as lines:
        if coding.checked:
            yield from lines
        while line := lines.readline(MAX_LINE_BYTES + 1):
            yield line[:-1] + "\n" if coding.newline == "\r" and line.endswith("\r") else line


def _by_line(file: io.BufferedReader, coding: Encoding) -> Iterator[str]:
    """Yield the lines of a file in which some may be of another encoding."""
    if file.peek(3).startswith(codecs.BOM_UTF8):
        file.read(3)
    while raw := file.readline(MAX_LINE_BYTES + 1):
        try:
            line = raw.decode(coding.name)
        except UnicodeDecodeError:
            line = raw.decode(coding.rest or coding.name, "replace")
            coding.mixed = coding.rest not in (None, coding.name)
            coding.undecoded |= "\ufffd" in line
        # Characters are fewer than bytes: the caller refuses a length in bytes.
        yield line if len(raw) <= MAX_LINE_BYTES else raw.decode("latin-1")
