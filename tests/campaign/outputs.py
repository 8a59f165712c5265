"""The commands of the campaign, the small texts and models that they are given, and their outputs compared."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.campaign.commands import must_run

WORDS = (
    "the a man woman dog cat is was running playing eating in on with park kitchen guitar red small big this sentence "
    "of means that it not by they mean article belongs to topic given review news one summary about and happy sad rain"
).split()
# What differs between two runs of the same command: times, speeds, who measured them, and sums of files with these.
VOLATILE = {"seconds", "sentences_per_second", "tokens_per_second", "date", "command", "versions", "digest"}
# Sums of files with times in them, what is needed to resume, and a page that no command reads.
UNCOMPARED = ("checksums.json", "state", "source.json", "README.md")
TRAIN = (
    *("train", "simcse", "--backbone", "../backbone/model", "--data", "../few.txt", "--dev", "../pairs.tsv"),
    *("--max-steps", "6", "--batch-size", "4", "--eval-every", "2", "--output", "out"),
)
PRETRAIN = (
    *("pretrain", "../text.txt", "--output", "out", "--vocabulary", "90", "--layers", "1", "--hidden", "16"),
    *("--tokens", "768", "--batch-tokens", "64", "--eval-every", "4"),
    *("--learning-rate", "0.03"),  # in so few steps the vectors of a model from noise would stay alike
)
BUILD = ("build_index", "../text.txt", "--model", "../model", "--output", "out")
SMALL_BUILD = ("build_index", "../few.txt", *BUILD[2:])
ENCODE = ("encode", "--model", "../model", "--input", "../few.txt", "--output", "out.npy")
EVALUATE = ("evaluate", "sts", "--model", "../model", "--data", "../sts", "--json", "out.json")


@dataclass(frozen=True)
class Command:
    """A command and its `output`: its `words`, the ways to go on after a kill, and what made an `earlier` output.

    The output has to stand whole under its name at any time, unless it `grows` with the work.
    """

    words: tuple[str, ...]
    output: str
    again: tuple[tuple[str, ...], ...]
    earlier: tuple[str, ...] = ()
    grows: bool = False

    @property
    def name(self) -> str:
        """The command and its last option."""
        return " ".join([self.words[0], *(word for word in self.words[-1:] if word.startswith("--"))])


def _over(words: tuple[str, ...], output: str) -> Command:
    """A command that can be resumed, over an earlier output."""
    anew = (*words, "--overwrite")
    return Command(anew, output, ((*anew, "--resume"), anew), (*words, "--seed", "7"))


COMMANDS = [
    _over(TRAIN, "out"),
    _over(PRETRAIN, "out/model"),
    Command((*BUILD, "--resume"), "out", ((*BUILD, "--resume"),)),
    Command((*SMALL_BUILD, "--append"), "out", ((*SMALL_BUILD, "--append"),), BUILD),
    Command(ENCODE, "out.npy", (ENCODE,), (*ENCODE, "--normalize")),
    Command(EVALUATE, "out.json", (EVALUATE,), grows=True),
]


def prepare(root: Path) -> None:
    """Write the texts, and the models and the index that are made of them, into `root`; ValueError where one fails."""
    rng = Random(1)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(600)]
    pairs = [f"{rng.randint(0, 5)}\t{rng.choice(lines)}\t{rng.choice(lines)}" for _ in range(20)]
    (root / "text.txt").write_text("\n".join(lines) + "\n")
    (root / "few.txt").write_text("\n".join(lines[:24]) + "\n")
    (root / "pairs.tsv").write_text("\n".join(pairs))
    for task in ("STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICK"):
        (root / "sts" / task).mkdir(parents=True)
        (root / "sts" / task / "test.tsv").write_text("\n".join(rng.sample(pairs, 12)))
    for words, kept in ((PRETRAIN, "backbone"), (TRAIN, "model"), (SMALL_BUILD, "index")):
        (folder := root / "make").mkdir()
        must_run(words, folder)
        (folder / "out").rename(root / kept)
        folder.rmdir()


def content(path: Path) -> str:
    """A digest of a file, or of the names and contents of a folder, without times; "nothing" where there is none."""
    if not path.exists():
        return "nothing"
    sha = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        name = file.relative_to(path).as_posix()
        if file.is_file() and not name.startswith(UNCOMPARED):
            sha.update(name.encode())
            sha.update(_timeless(file))
    return sha.hexdigest()[:12]


def _timeless(file: Path) -> bytes:
    content = file.read_bytes()
    if file.suffix not in (".json", ".jsonl"):
        return content
    try:
        values = [json.loads(line) for line in (content.splitlines() if file.suffix == ".jsonl" else [content])]
    except ValueError:
        return content
    return json.dumps([_without_times(value) for value in values], sort_keys=True).encode()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if key not in VOLATILE}
    return list(map(_without_times, value)) if isinstance(value, list) else value
