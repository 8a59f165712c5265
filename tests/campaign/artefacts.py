"""Damaged models, indexes, saved states and tokenised texts: refused in one line, or what is damaged plays no part."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.campaign.report import Verdict
from tests.campaign.subjects import BUILD, PRETRAIN, SUBJECTS, content, files_of, fresh_folder
from tests.campaign.system import Disturbance, Ended, run

REFUSED = (3, 4)
ENCODE = ("encode", "--input", "../few.txt", "--output", "out.npy", "--model")
TAKEN = {("train_log.jsonl", "removed")}  # a run goes on without a log that somebody deleted
WAYS = ("flipped", "cut", "emptied", "removed", "exchanged", "overwritten", "not a number")


@dataclass(frozen=True)
class Artefact:
    """Something saved, `place` in the working folder, and the `words` that use it; `output` is what they then make.

    It is copied from `origin`, or made by a `broken_off` command killed at that share of its calls.
    """

    name: str
    place: str
    words: tuple[str, ...]
    output: str
    origin: str = ""
    broken_off: tuple[str, ...] = ()
    share: float = 0.0


_TRAIN, _EVALUATE, _BUILD = SUBJECTS[0].words, SUBJECTS[-1].words, (*BUILD, "--resume")
ARTEFACTS = [
    Artefact("checkpoint", "saved", (*ENCODE, "saved"), "out.npy", "model"),
    Artefact("backbone", "saved", (*ENCODE, "saved"), "out.npy", "backbone/model"),
    Artefact("index", "saved", ("search", "saved", "the dog is happy", "-k", "5", "--json"), "", "index"),
    Artefact("run", "out.partial", (*_TRAIN, "--resume"), "out", broken_off=_TRAIN, share=0.7),
    Artefact("pretraining", "out", (*PRETRAIN, "--resume"), "out/model", broken_off=PRETRAIN, share=0.7),
    Artefact("build", "out.partial", _BUILD, "out", broken_off=_BUILD, share=0.7),
    Artefact("results", "out.json", _EVALUATE, "out.json", broken_off=_EVALUATE, share=0.7),
]


def make(artefact: Artefact, root: Path) -> str:
    """Keep the artefact, whole, for `damage`; what using it comes to. Raises ValueError where it cannot be used."""
    folder = fresh_folder(root, "whole")
    if artefact.origin:
        shutil.copytree(root / artefact.origin, folder / artefact.place)
    else:
        calls = run(artefact.broken_off, folder, Disturbance(traced=True)).calls
        folder = fresh_folder(root, "whole")
        run(artefact.broken_off, folder, Disturbance(call=int(calls * artefact.share)))
    folder = folder.rename(_whole(artefact, root))
    used = fresh_folder(root, "using", folder)
    ended = run(artefact.words, used)
    if ended.code:
        raise ValueError(f"{artefact.name}: cannot be used undamaged: {ended.err.strip()}")
    return _result(artefact, used, ended)


def _whole(artefact: Artefact, root: Path) -> Path:
    return root / f"whole {artefact.name}"


def damage(artefact: Artefact, result: str, rng: Random, root: Path) -> tuple[str, Verdict]:
    """What was done to one of the artefact's files, and what its use then came to, which was `result` undamaged."""
    folder = fresh_folder(root, "using", _whole(artefact, root))
    place = folder / artefact.place
    files = list(files_of(place)) if place.is_dir() else [place]
    file = rng.choice(files)
    how = _damage(file, files, rng)
    what = f"{artefact.name}: {file.relative_to(folder)} {how}"
    ended = run(artefact.words, folder)
    shown = f"exit code {ended.code}: {ended.err.strip()[-400:]}"
    if ended.hung:
        return what, Verdict("failed", f"hung: {shown}")
    if ended.code in REFUSED and len(ended.error_lines) == 1 and "Traceback" not in ended.err:
        return what, Verdict("refused")
    if ended.code != 0:
        return what, Verdict("failed", f"no clear refusal: {shown}")
    same = _result(artefact, folder, ended) == result
    return what, Verdict("same result") if same else Verdict("failed", "taken, with another result")


def _result(artefact: Artefact, folder: Path, ended: Ended) -> str:
    return content(folder / artefact.output) if artefact.output else ended.out


def _damage(file: Path, files: Sequence[Path], rng: Random) -> str:
    """Damage a file, or the tensor of a file of weights; how, in words."""
    raw = bytearray(file.read_bytes())
    ways = WAYS if file.suffix == ".safetensors" else WAYS[:-1]
    how = rng.choice([way for way in ways if (file.name, way) not in TAKEN])
    others = [other for other in files if other != file and other.suffix == file.suffix] or list(files)
    if how == "flipped" and raw:
        at = rng.randrange(len(raw))
        raw[at] ^= 1 << rng.randrange(8)
        how = f"flipped at byte {at}"
    elif how == "cut":
        del raw[rng.randrange(len(raw) or 1) :]
    elif how == "emptied":
        raw.clear()
    elif how == "removed":
        file.unlink()
        return how
    elif how == "exchanged":
        raw[:] = rng.choice(others).read_bytes()
    elif how == "not a number":
        _poison(raw)
    else:
        raw[:] = rng.randbytes(len(raw))
    file.write_bytes(raw)
    return how


def _poison(raw: bytearray) -> None:
    """Make the first number of a safetensors file NaN, in float16 and in float32."""
    (length,) = struct.unpack("<Q", raw[:8])
    names = [value for name, value in json.loads(raw[8 : 8 + length]).items() if name != "__metadata__"]
    begin = 8 + length + min(value["data_offsets"][0] for value in names)
    raw[begin : begin + 4] = b"\xff\x7f\xff\x7f"
