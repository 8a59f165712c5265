"""Damaged models, indexes, saved states and tokenised texts: refused in one line, or what is damaged plays no part."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.campaign.oddities import damaged
from tests.campaign.subjects import BUILD, PRETRAIN, SUBJECTS, content, fresh_folder
from tests.campaign.system import Ended, Kill, must_run, run
from tests.campaign.verdicts import Verdict, failed

ENCODE = ("encode", "--input", "../few.txt", "--output", "out.npy", "--model")
TAKEN = "train_log.jsonl"  # a run continues without a log that somebody deleted
SHARE = 0.7  # of the calls of a command that is broken off


@dataclass(frozen=True)
class Artefact:
    """Something saved, `place` in the working folder, and the `words` that use it; `output` is what they then make.

    It is copied from `origin`, or made by a `broken_off` command.
    """

    name: str
    place: str
    words: tuple[str, ...]
    output: str
    origin: str = ""
    broken_off: tuple[str, ...] = ()


_TRAIN, _EVALUATE, _BUILD = SUBJECTS[0].words, SUBJECTS[-1].words, (*BUILD, "--resume")
ARTEFACTS = [
    Artefact("checkpoint", "saved", (*ENCODE, "saved"), "out.npy", "model"),
    Artefact("backbone", "saved", (*ENCODE, "saved"), "out.npy", "backbone/model"),
    Artefact("index", "saved", ("search", "saved", "the dog is happy", "-k", "5", "--json"), "", "index"),
    Artefact("run", "out.partial", (*_TRAIN, "--resume"), "out", broken_off=_TRAIN),
    Artefact("pretraining", "out", (*PRETRAIN, "--resume"), "out/model", broken_off=PRETRAIN),
    Artefact("build", "out.partial", _BUILD, "out", broken_off=_BUILD),
    Artefact("results", "out.json", _EVALUATE, "out.json", broken_off=_EVALUATE),
]


def make(artefact: Artefact, root: Path, calls: Mapping[tuple[str, ...], int]) -> str:
    """Keep the artefact, whole, for `damage`; what using it comes to. Raises ValueError where it cannot be used.

    `calls` has the number of those of each undisturbed command that change a file.
    """
    folder = fresh_folder(root, "whole")
    if artefact.origin:
        shutil.copytree(root / artefact.origin, folder / artefact.place)
    else:
        run(artefact.broken_off, folder, Kill(call=int(calls[artefact.broken_off] * SHARE)))
    used = fresh_folder(root, "using", folder.rename(_whole(artefact, root)))
    return _result(artefact, used, must_run(artefact.words, used))


def _whole(artefact: Artefact, root: Path) -> Path:
    return root / f"whole {artefact.name}"


def damage(artefact: Artefact, result: str, rng: Random, root: Path) -> tuple[str, Verdict]:
    """A damage to one of the artefact's files, and the outcome of its use, which was `result` undamaged."""
    folder = fresh_folder(root, "using", _whole(artefact, root))
    place = folder / artefact.place
    files = [path for path in sorted(place.rglob("*")) if path.is_file()] if place.is_dir() else [place]
    file = rng.choice(files)
    what = f"{artefact.name}: {file.relative_to(folder)} {_damage(file, files, rng)}"
    ended = run(artefact.words, folder)
    if ended.refuses(3, 4):
        return what, Verdict("refused")
    if ended.code != 0:
        return what, failed(f"no clear refusal: {ended}")
    same = _result(artefact, folder, ended) == result
    return what, Verdict("same result") if same else failed("taken, with another result")


def _result(artefact: Artefact, folder: Path, ended: Ended) -> str:
    return content(folder / artefact.output) if artefact.output else ended.out


def _damage(file: Path, files: Sequence[Path], rng: Random) -> str:
    """Damage a file, or the tensor of a file of weights; how, in words."""
    how = rng.choice(("removed", "exchanged", "not a number", *["bytes"] * 4))
    if how == "removed" and file.name != TAKEN:
        file.unlink()
    elif how == "exchanged":
        others = [other for other in files if other != file and other.suffix == file.suffix] or list(files)
        file.write_bytes(rng.choice(others).read_bytes())
    elif how == "not a number" and file.suffix == ".safetensors":
        file.write_bytes(_poisoned(file.read_bytes()))
    else:
        how, raw = damaged(file.read_bytes(), rng)
        file.write_bytes(raw)
    return how


def _poisoned(raw: bytes) -> bytes:
    """A safetensors file whose first number is NaN, in float16 and in float32."""
    (length,) = struct.unpack("<Q", raw[:8])
    names = [value for name, value in json.loads(raw[8 : 8 + length]).items() if name != "__metadata__"]
    begin = 8 + length + min(value["data_offsets"][0] for value in names)
    return raw[:begin] + b"\xff\x7f\xff\x7f" + raw[begin + 4 :]
