"""One disturbance and its outcome in words, which begin with "failed" where something was lost or silently wrong.

After a kill the old output or the new one is whole under its name, and doing the work again comes to the bytes of an
undisturbed run. A damaged byte is refused in one line, or plays no part in the result.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cse.files.replace import recover
from tests.campaign.commands import Ended, must_run, run
from tests.campaign.outputs import BUILD, COMMANDS, ENCODE, EVALUATE, PRETRAIN, TRAIN, Command, content, prepare

Outcomes = dict[str, list[str]]
BROKEN_OFF = 0.7  # of the calls of a command whose unfinished output is damaged


@dataclass(frozen=True)
class Saved:
    """A kind of output, `path` in the working folder: copied from `origin`, or of a command that was `broken_off`.

    The `words` use it, and make `output`; without one their answer is what counts.
    """

    name: str
    path: str
    words: tuple[str, ...]
    output: str = ""
    origin: str = ""
    broken_off: tuple[str, ...] = ()


_ENCODE = (*ENCODE[:1], "--input", "../few.txt", "--output", "out.npy", "--model", "saved")
SAVED = [
    Saved("checkpoint", "saved", _ENCODE, "out.npy", "model"),
    Saved("backbone", "saved", _ENCODE, "out.npy", "backbone/model"),
    Saved("index", "saved", ("search", "saved", "the dog is happy", "-k", "5", "--json"), origin="index"),
    Saved("unfinished training", "out.partial", (*TRAIN, "--resume"), "out", broken_off=(*TRAIN, "--overwrite")),
    Saved("unfinished pretraining", "out", (*PRETRAIN, "--resume"), "out/model", broken_off=(*PRETRAIN, "--overwrite")),
    Saved("unfinished build", "out.partial", (*BUILD, "--resume"), "out", broken_off=(*BUILD, "--resume")),
    Saved("results", "out.json", EVALUATE, "out.json", broken_off=EVALUATE),
]


def campaign(root: Path, kills: int, damages: int, seed: int) -> Outcomes:
    """The outcomes of so many kills of each command, and of so many damages of each kind of output.

    In a process without other threads. Raises ValueError where something fails that nothing disturbs.
    """
    prepare(root)
    outcomes: Outcomes = {}
    calls: dict[tuple[str, ...], int] = {}
    for one in COMMANDS:
        outcomes[f"kills of {one.name}"], calls[one.words] = kill(one, root, kills, Random(f"{seed} {one.name}"))
    for saved in SAVED:
        broken_off = int(BROKEN_OFF * calls[saved.broken_off]) if saved.broken_off else 0
        rng = Random(f"{seed} {saved.name}")
        outcomes[f"damaged {saved.name}"] = damage(saved, root, broken_off, damages, rng)
    return outcomes


def kill(one: Command, root: Path, count: int, rng: Random) -> tuple[list[str], int]:
    """The outcomes of `count` kills of a command before drawn changes of a file, and how many of these it makes."""
    earlier = fresh_folder(root / "earlier")
    if one.earlier:
        must_run(one.earlier, earlier)
    folder = fresh_folder(root / "working", earlier)
    before, ended = content(folder / one.output), must_run(one.words, folder)
    after = content(folder / one.output)
    outcomes = []
    for call in rng.sample(range(ended.calls), min(count, ended.calls)):
        folder = fresh_folder(root / "working", earlier)
        killed = run(one.words, folder, call)
        stands = f"failed, it ended by itself: {killed}" if killed.code else _standing(one, folder, before, after)
        outcomes.append(f"{stands or _again(one, folder, after)}, before call {call}")
    return outcomes, ended.calls


def _standing(one: Command, folder: Path, before: str, after: str) -> str:
    """What is wrong with the output that stands after a kill; empty for none."""
    recover(folder / one.output)
    stands = content(folder / one.output)
    part = one.grows and (stands == "nothing" or isinstance(json.loads((folder / one.output).read_text()), dict))
    return "" if stands in (before, after) or part else "failed, neither the old output nor the new one stood"


def _again(one: Command, folder: Path, after: str) -> str:
    """What came of the ways to go on, one after the other until one goes through."""
    if content(folder / one.output) == after and "--append" in one.words:  # which would append again
        return "the new output stands"
    for words in one.again:
        ended = run(words, folder)
        if not ended.code:
            break
    if content(folder / one.output) != after:  # a command that failed may say that nothing is left to do
        return f"failed, no rerun went through: {ended}" if ended.code else "failed, the rerun's result is another"
    left = [path.name for path in sorted(folder.rglob("*")) if path.name.startswith(".") or path.suffix == ".partial"]
    return f"failed, the rerun left {', '.join(left)}" if left else "the rerun's result is the undisturbed one"


def damage(saved: Saved, root: Path, broken_off: int, count: int, rng: Random) -> list[str]:
    """The outcomes of `count` uses of an output in which one byte of a drawn file is another."""
    whole = fresh_folder(root / "whole")
    if saved.origin:
        shutil.copytree(root / saved.origin, whole / saved.path)
    else:
        run(saved.broken_off, whole, broken_off)
    folder = fresh_folder(root / "working", whole)
    undisturbed = _result(saved, folder, must_run(saved.words, folder))
    outcomes = []
    for _ in range(count):
        folder = fresh_folder(root / "working", whole)
        place = folder / saved.path
        files = [path for path in sorted(place.rglob("*")) if path.is_file() and path.stat().st_size]
        file = rng.choice(files) if place.is_dir() else place
        raw = bytearray(file.read_bytes())
        raw[position := rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        file.write_bytes(raw)
        ended = run(saved.words, folder)
        outcomes.append(f"{_use(saved, folder, ended, undisturbed)}: {file.name}, byte {position}")
    return outcomes


def _use(saved: Saved, folder: Path, ended: Ended, undisturbed: str) -> str:
    if ended.refuses(3, 4):
        return "refused"
    if ended.code != 0:
        return f"failed, no clear refusal: {ended}"
    return "the same result" if _result(saved, folder, ended) == undisturbed else "failed, accepted with another result"


def _result(saved: Saved, folder: Path, ended: Ended) -> str:
    return content(folder / saved.output) if saved.output else ended.out


def fresh_folder(folder: Path, of: Path | None = None) -> Path:
    """The folder, empty or a copy `of` another."""
    shutil.rmtree(folder, ignore_errors=True)
    if of:
        shutil.copytree(of, folder)
    else:
        folder.mkdir()
    return folder
