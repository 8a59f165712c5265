"""The subjects of the campaign: a small text, models made of it by the project's own commands, and outputs compared."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.campaign.system import must_run

WORDS = (
    "the a man woman dog cat is was running playing eating in on with park kitchen guitar red small big this sentence "
    "of means that it not by they mean article belongs to topic given review news one summary about and happy sad rain"
).split()
LINES = 600
# What differs between two runs of the same command: times, speeds, who measured them, and sums of files with these.
VOLATILE = {"seconds", "sentences_per_second", "tokens_per_second", "date", "command", "versions", "digest"}
# Sums of files with times in them, what is needed to resume, and a page that no command reads.
UNCOMPARED = ("checksums.json", "state", "source.json", "README.md")
TRAIN = ("--data", "../few.txt", "--dev", "../pairs.tsv", "--max-steps", "6", "--batch-size", "4", "--eval-every", "2")
PRETRAIN = (
    *("pretrain", "../text.txt", "--output", "out", "--vocabulary", "90", "--layers", "1", "--hidden", "16"),
    *("--tokens", "768", "--batch-tokens", "64", "--eval-every", "4"),
    *("--learning-rate", "0.03"),  # in so few steps the vectors of a model from noise would stay alike
)
BUILD = ("build_index", "../text.txt", "--model", "../model", "--output", "out")
EVALUATE = ("evaluate", "sts", "--model", "../model", "--data", "../sts", "--json", "out.json")


@dataclass(frozen=True)
class Subject:
    """A command with an output: its `words`, the ways to go on after a kill, and what made an `earlier` output.

    `output` is what has to stand whole under its name at any time; None where it grows with the work.
    """

    name: str
    words: tuple[str, ...]
    output: str
    again: tuple[tuple[str, ...], ...]
    earlier: tuple[str, ...] = ()
    grows: bool = False

    @property
    def repeats(self) -> bool:
        """Whether the command may be given again when it has come through, and comes to the same."""
        return "--overwrite" in self.words or self.words[0] in ("encode", "evaluate")


def _training(name: str, method: str) -> list[Subject]:
    words = ("train", method, "--backbone", "../backbone/model", *TRAIN, "--output", "out")
    anew = (*words, "--overwrite")
    return [
        Subject(name, words, "out", ((*words, "--resume"), words)),
        Subject(f"{name} --overwrite", anew, "out", ((*anew, "--resume"), anew), (*words, "--seed", "7")),
    ]


def _indexing(words: tuple[str, ...]) -> list[Subject]:
    anew, more = (*words, "--overwrite"), ("build_index", "../few.txt", *words[2:], "--append")
    keeping = (*words, "--resume")
    return [
        Subject("build_index", words, "out", (words,)),
        Subject("build_index --overwrite", anew, "out", (anew,), ("build_index", "../few.txt", *words[2:])),
        Subject("build_index --resume", keeping, "out", (keeping,)),
        Subject("build_index --append", more, "out", (more,), words),
    ]


_ENCODE = ("encode", "--model", "../model", "--input", "../few.txt", "--output", "out.npy")
_PRETRAIN_ANEW = (*PRETRAIN, "--overwrite")
SUBJECTS = [
    *_training("train", "simcse"),
    *_training("train dcpcse", "dcpcse")[:1],
    Subject("pretrain", PRETRAIN, "out/model", ((*PRETRAIN, "--resume"), PRETRAIN)),
    Subject(
        "pretrain --overwrite", _PRETRAIN_ANEW, "out/model", ((*_PRETRAIN_ANEW, "--resume"), _PRETRAIN_ANEW),
        (*PRETRAIN, "--seed", "7"),
    ),
    *_indexing(BUILD),
    Subject("encode", _ENCODE, "out.npy", (_ENCODE,)),
    Subject("encode anew", _ENCODE, "out.npy", (_ENCODE,), (*_ENCODE, "--normalize")),
    Subject("evaluate", EVALUATE, "out.json", (EVALUATE,), grows=True),
]  # fmt: skip


def prepare(root: Path) -> None:
    """Write the text, and the models and the index that are made of it, into `root`; ValueError where one fails."""
    from cse.encoder.backbone import load_backbone
    from cse.models.names import BUNDLED

    load_backbone(BUNDLED / "backbone")  # what this imports and prepares, no forked process has to
    _write_texts(root)
    for words, kept in (
        (PRETRAIN, "backbone"),
        (SUBJECTS[0].words, "model"),
        (("build_index", "../few.txt", "--model", "../model", "--output", "out"), "index"),
    ):
        folder = fresh_folder(root, "make")
        must_run(words, folder)
        (folder / "out").rename(root / kept)


def _write_texts(root: Path) -> None:
    rng = Random(1)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(LINES)]
    pairs = [f"{rng.randint(0, 5)}\t{rng.choice(lines)}\t{rng.choice(lines)}" for _ in range(20)]
    (root / "text.txt").write_text("\n".join(lines) + "\n")
    (root / "few.txt").write_text("\n".join(lines[:24]) + "\n")
    (root / "pairs.tsv").write_text("\n".join(pairs))
    for task in ("STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICK"):
        (root / "sts" / task).mkdir(parents=True)
        (root / "sts" / task / "test.tsv").write_text("\n".join(rng.sample(pairs, 12)))


def fresh_folder(root: Path, name: str, of: Path | None = None) -> Path:
    """An empty working folder of that name, of this process alone, or a copy `of` another."""
    folder = root / f"{name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    if of:
        shutil.copytree(of, folder)
    else:
        folder.mkdir()
    return folder


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


def litter(folder: Path) -> list[str]:
    """The files in a working folder, or in a folder there, that only an unfinished write may leave."""
    return sorted(path.name for path in folder.rglob(".*"))


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
