"""Damaged and odd input files: each is read, or refused in one line, in time, in bounds, with nothing written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.campaign.oddities import ODD, SUFFIXES, Maker, damaged, valid, write
from tests.campaign.subjects import PRETRAIN, TRAIN, fresh_folder
from tests.campaign.system import Ended, run
from tests.campaign.verdicts import Verdict, failed

GROWTH = 900.0  # megabytes; a table of JSON of 200 MB, which is read whole, takes 700
FILE = "FILE"
_TRAIN = f"train simcse --backbone ../backbone/model {' '.join(TRAIN)} --output out --max-steps 2"
_STS = "evaluate {} --model ../model --data {}".format
# Commands that read a file, which takes the place of FILE; and where the file has to lie, relative to that place.
READERS: dict[str, tuple[tuple[str, ...], str]] = {
    name: (tuple(words.split()), place)
    for name, words, place in (
        ("encode", "encode --model ../model --output out.npy --input FILE", ""),
        ("build_index", "build_index FILE --model ../model --output out", ""),
        ("train", f"{_TRAIN} --data FILE", ""),
        ("train --dev", f"{_TRAIN} --dev FILE", ""),
        ("train --supervised", f"{_TRAIN} --supervised --data FILE", ""),
        ("pretrain", f"pretrain FILE {' '.join(PRETRAIN[2:])}", ""),
        ("tokens", "tokens --model ../model --file FILE", ""),
        ("evaluate sts", _STS("sts", FILE), "STSB/test.tsv"),
        ("evaluate clustering", _STS("clustering", FILE), "set.tsv"),
        ("evaluate retrieval", _STS("retrieval", FILE), "corpus.tsv"),
        ("evaluate transfer", _STS("transfer", FILE), "CR/all.tsv"),
        ("evaluate --fit", f"{_STS('sts', '../sts')} --postprocess whitening --fit FILE", ""),
        ("evaluate --sentences", f"{_STS('geometry', '../sts')} --sentences FILE", ""),
        ("duplicates", "duplicates FILE --model ../model --output out.csv", ""),
        ("topics", "topics FILE --model ../model --json out.json", ""),
        ("search_templates", "search_templates --model ../backbone/model --dev ../pairs.tsv --templates FILE", ""),
    )
}


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
        yield Input(how, rng.choice(readers), suffix, partial(write, raw))


def warm_up(words: Sequence[str], folder: Path) -> None:
    """Give a command a good file, whatever it makes of it there, so that what it imports is imported here."""
    run([word.replace(FILE, "../few.txt") for word in words], folder, imported=True)


def read(given: Input, rng: Random, root: Path) -> Verdict:
    """The outcome of a command that reads a file."""
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
    if ended.hung:
        return failed(f"hung: {ended}")
    if ended.megabytes > GROWTH:
        return failed(f"grew by {ended.megabytes:.0f} MB: {ended}")
    if ended.code == 0:
        return Verdict("taken")
    if not ended.refuses(2, 3, 4):
        return failed(f"no clear refusal: {ended}")
    return failed(f"refused, but wrote {', '.join(written)}: {ended}") if written else Verdict("refused")
