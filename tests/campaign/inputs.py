"""Damaged and odd input files: each is read, or refused in one line, in time, in bounds, with nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.campaign.oddities import ODD, SUFFIXES, Maker, damaged, valid
from tests.campaign.report import Verdict
from tests.campaign.subjects import PRETRAIN, TRAIN, fresh_folder
from tests.campaign.system import Ended, run

GROWTH = 900.0  # megabytes; a table of JSON of 200 MB, which is read whole, takes 700
REFUSED = (2, 3, 4)
FILE = "FILE"
_TRAIN = ("train", "simcse", "--backbone", "../backbone/model", *TRAIN, "--output", "out", "--max-steps", "2")
_EVALUATE = ("evaluate", "--model", "../model", "--data")
# Commands that read a file, which takes the place of FILE; and where the file has to lie, relative to that place.
READERS: dict[str, tuple[tuple[str, ...], str]] = {
    "encode": (("encode", "--model", "../model", "--output", "out.npy", "--input", FILE), ""),
    "build_index": (("build_index", FILE, "--model", "../model", "--output", "out"), ""),
    "train": ((*_TRAIN, "--data", FILE), ""),
    "train --dev": ((*_TRAIN, "--dev", FILE), ""),
    "train --supervised": ((*_TRAIN, "--supervised", "--data", FILE), ""),
    "pretrain": (("pretrain", FILE, *PRETRAIN[2:]), ""),
    "tokens": (("tokens", "--model", "../model", "--file", FILE), ""),
    "evaluate sts": (("evaluate", "sts", *_EVALUATE[1:], FILE), "STSB/test.tsv"),
    "evaluate clustering": (("evaluate", "clustering", *_EVALUATE[1:], FILE), "set.tsv"),
    "evaluate retrieval": (("evaluate", "retrieval", *_EVALUATE[1:], FILE), "corpus.tsv"),
    "evaluate transfer": (("evaluate", "transfer", *_EVALUATE[1:], FILE), "CR/all.tsv"),
    "evaluate --fit": (("evaluate", "sts", *_EVALUATE[1:], "../sts", "--postprocess", "whitening", "--fit", FILE), ""),
    "evaluate --sentences": (("evaluate", "geometry", *_EVALUATE[1:], "../sts", "--sentences", FILE), ""),
    "duplicates": (("duplicates", FILE, "--model", "../model", "--output", "out.csv"), ""),
    "topics": (("topics", FILE, "--model", "../model", "--json", "out.json"), ""),
    "search_templates": (
        ("search_templates", "--model", "../backbone/model", "--dev", "../pairs.tsv", "--templates", FILE), "",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Input:
    """A file to be made, and the command that is given it."""

    what: str
    reader: str
    suffix: str
    make: Maker


def planned(count: int, rng: Random, lines: list[str]) -> Iterator[Input]:
    """`count` files: the odd ones once each with a drawn command, for as far as they go, then damaged ones."""
    readers = sorted(READERS)
    odd = [(what, *made) for what, all_made in ODD.items() for made in all_made]
    rng.shuffle(odd)
    for what, suffix, make in odd[: count // 2]:
        yield Input(what, rng.choice(readers), suffix, make)
    for _ in range(count - min(len(odd), count // 2)):
        suffix = rng.choice(SUFFIXES)
        how, raw = damaged(valid(suffix, lines), rng)
        yield Input(how, rng.choice(readers), suffix, lambda path, rng, raw=raw: path.write_bytes(raw))  # type: ignore[misc]


def read(given: Input, rng: Random, root: Path) -> Verdict:
    """What a command makes of a file."""
    words, place = READERS[given.reader]
    inputs, folder = fresh_folder(root, "given"), fresh_folder(root, "reading")
    path = inputs / (place or f"input{given.suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    given.make(path, rng)
    argument = f"../{inputs.name}" if place else f"../{inputs.name}/{path.name}"
    ended = run([argument if word == FILE else word for word in words], folder)
    return judge(ended, sorted(path.name for path in folder.iterdir()))


def judge(ended: Ended, written: list[str]) -> Verdict:
    """Whether a command ended as it may, having `written` files of these names."""
    shown = f"exit code {ended.code}, {ended.seconds:.1f} s, {ended.err.strip()[-400:]}"
    if ended.hung:
        return Verdict("failed", f"hung: {shown}")
    if ended.megabytes > GROWTH:
        return Verdict("failed", f"grew by {ended.megabytes:.0f} MB: {shown}")
    if ended.code == 0:
        return Verdict("taken")
    if ended.code not in REFUSED or "Traceback" in ended.err or len(ended.error_lines) != 1:
        return Verdict("failed", f"no clear refusal: {shown}")
    if written:
        return Verdict("failed", f"refused, but wrote {', '.join(written)}: {shown}")
    return Verdict("refused")
