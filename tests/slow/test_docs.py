"""Commands and snippets of README and docs run as written, on small files of the kind they name; links lead on."""

import contextlib
import csv
import importlib.util
import io
import lzma
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from small_models import small_backbone, small_bundled
from typer.testing import CliRunner, Result

from cse.app.corpus.corpora import Demo
from cse.encoder.devices import computes_in_bf16
from cse.encoder.openvino_encoder import OpenVinoEncoder
from cse.evaluation import reproduction
from cse.models import names
from cse.training import pretraining

FIRST = ("train", "search")  # other pages use the models and indexes that these two make
PAGES = {
    path: path.read_text()
    for path in (
        ROOT / "README.md",
        *(ROOT / "docs" / f"{name}.md" for name in FIRST),
        *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.stem not in FIRST),
    )
}
README = PAGES[ROOT / "README.md"]
TOPICS = [line.split("\t") for line in (ROOT / "cse/bundled/demo/corpus.tsv").read_text().splitlines()]
# The configuration that Hugging Face Spaces reads.
FRONT_MATTER = """---
title: Contrastive sentence embeddings, side by side
emoji: 🧭
colorFrom: indigo
colorTo: yellow
sdk: gradio
sdk_version: 6.31.0
python_version: "3.12"
app_file: app.py
short_description: Compare SimCSE, PromptBERT, DCPCSE and ConPVP
license: apache-2.0
tags: [sentence-similarity, semantic-search]
---
"""


def blocks(language: str) -> list[str]:
    """The code blocks of a language, README's first, then those of the pages."""
    return [block for text in PAGES.values() for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)]


def prose(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings on GitHub, after the #."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# A command that stands on several pages is run once.
COMMANDS = list(
    dict.fromkeys(
        line.split("   #")[0].strip()
        for block in blocks("bash")
        for line in block.replace("\\\n", " ").splitlines()
        if line
    )
)
# An adaptation tries candidates as long as it may; what a page shows is there after 3 seconds, on a slow CPU after 25.
MINUTES = f"--minutes {0.05 if computes_in_bf16('auto', 'cpu') else 0.5}"
# The recipe of the bundled models is run as written but for its length and batch; of a repeated option the last counts.
SHORTENED = {
    "--init ": "--tokens 2048 --batch-tokens 1024 --precision no",  # its pieces and layers stay, as a blend needs them
    "scripts.pretrain": "--tokens 8192 --vocabulary 2000 --layers 1",
    "scripts.train": "--max-steps 2 --eval-every 2 --batch-size 8 --precision no",  # bf16 is slow where CPUs lack it
    "scripts.adapt": MINUTES,
    "bench encode": "--rounds 1 --sentences 24",
    "scripts.reproduce": "--train-options '--max-steps 2 --eval-every 2 --batch-size 8' --only 'uncased, same'",
}
# Blocks that are followed by what they print.
PRINTING = [
    pytest.param(language, block, printed, id=f"{path.stem}-{number}")
    for path, text in PAGES.items()
    for number, (language, block, printed) in enumerate(
        re.findall(r"```(bash|python)\n([^`]*)```\n\n```text\n([^`]*)```", text), 1
    )
]
# Of these the first words of a line are compared: the choice depends on the time, the files on the version.
VARYING = ("scripts.adapt", "scripts.deploy")
NUMBER = re.compile(r"(?<![\w.])\.?\d[\d,]*(?:\.\d+)?")
SCRIPTS = [line for line in COMMANDS if line.startswith(("python -m scripts.", "python -m tests."))]
RUN_ALREADY: set[str] = set()  # lines of `SCRIPTS` that were run as the block of a page that shows what it prints


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files the pages speak of."""
    folder = tmp_path_factory.mktemp("docs")
    texts = [text for _, text in TOPICS[::50]]
    (folder / "sentences.txt").write_text("\n".join(texts))
    with (folder / "table.csv").open("w", newline="") as table:
        csv.writer(table).writerows([["text"], *([text] for text in texts)])
    triplets = "\n".join("\t".join(texts[i : i + 3]) for i in range(20))
    (folder / "nli").mkdir()
    for name in ("triplets.tsv", "nli/triplets_clean.tsv"):
        (folder / name).write_text(triplets)
    labels = ("entailment", "contradiction", "neutral")
    rows = (f"{texts[i]}\t{texts[i + 1]}\t{labels[i % 3]}" for i in range(20))
    (folder / "nli.tsv").write_text("\n".join(["sentence1\tsentence2\tgold_label", *rows]))
    lines = (ROOT / "cse/bundled/demo/pairs.tsv").read_text().splitlines()
    pairs = "\n".join(lines[::5])  # of every grade
    (folder / "dev.tsv").write_text(pairs)
    for name in ("STS12/a", "STS13/a", "STS14/a", "STS15/a", "STS16/a", "STSB/dev", "STSB/test", "SICK/test"):
        file = folder / "sts" / f"{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(pairs)
    # 20 texts of each of two topics are enough for the folds and for 16 texts a class; TREC has no nested folds.
    labelled = "".join(f"{topic}\t{text}\n" for topic, text in [*TOPICS[:20], *TOPICS[-20:]])
    for name in ("transfer/TREC/train", "transfer/TREC/test", "clustering/demo"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.tsv").write_text(labelled)
    documents = [text for _, text in TOPICS[:20]]
    (folder / "retrieval" / "demo").mkdir(parents=True)
    for name, rows in (
        ("corpus", [f"{number}\t{text}" for number, text in enumerate(documents)]),
        ("queries", ["q\tWhere can I hear music?"]),
        ("qrels", ["q\t3\t1"]),
    ):
        (folder / "retrieval" / "demo" / f"{name}.tsv").write_text("\n".join(rows))
    for name in ("wiki_a", "wiki_b", "mixed_domain"):
        (folder / f"{name}.txt.xz").write_bytes(lzma.compress("\n".join(text for _, text in TOPICS).encode()))
    for name in ("cse", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture(scope="module")
def small(folder: Path) -> Path:
    """Small models for the bundled ones; and an encoder without a head, of six layers as the pages blend them."""
    small_backbone(folder / "all-MiniLM-L6-v2", layers=6, head=False)
    return small_bundled(folder / "small")


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


def test_the_two_commands_stand_on_the_first_screen_and_are_executable() -> None:
    assert COMMANDS[:2] == ["scripts/demo", "scripts/test"]
    first_screen = README.split("---\n", 2)[2].splitlines()[:20]
    for name in COMMANDS[:2]:
        assert any(line.startswith(name) for line in first_screen)
        assert os.access(ROOT / name, os.X_OK)


def remembering(encode_ids: Callable[..., np.ndarray], kept: dict[tuple[Any, ...], np.ndarray]) -> Any:
    """An `encode_ids` that encodes what is not `kept`, by model and token ids: many commands read the demo corpus.

    Its vectors by the bundled models are shipped, in half precision; test_bundled.py compares them with the models.
    """

    def remember(self: Any, contents: Any, *args: Any, **named: Any) -> np.ndarray:
        marks = self.__dict__.setdefault("marks", {})  # shared by the readings of a model
        if self.reading not in marks:
            marks[self.reading] = f"{self.fingerprint} {self.precision}"
            if (shipped := Demo._shipped(self)) is not None:
                ids_of_all = self.tokenise([text for _, text in TOPICS], [self.views[0][0]] * len(TOPICS))
                kept.update(zip([(marks[self.reading], *ids) for ids in ids_of_all], shipped, strict=True))
        keys = [(marks[self.reading], *ids) for ids in contents]
        new = {key: ids for key, ids in zip(keys, contents, strict=True) if key not in kept}
        kept.update(zip(new, encode_ids(self, list(new.values()), *args, **named), strict=True))
        return np.array([kept[key] for key in keys], np.float32).reshape(len(keys), self.dim)

    return remember


REMEMBERING = remembering(OpenVinoEncoder.encode_ids, {})


def invoke(words: Sequence[str]) -> Result:
    """Run `python -m MODULE ARGUMENT...` in this process, which spares a start of PyTorch; answer A to every vote."""
    _, _, module, *arguments = words
    name = f"{module}.__main__" if module.startswith("tests.") else module
    return CliRunner().invoke(importlib.import_module(name).app, arguments, input="A\n" * 40)


def start_here(words: Sequence[str], **_: Any) -> contextlib.AbstractContextManager[Any]:
    """`start_command` of `scripts.reproduce` that runs the command in this process."""
    done = invoke(["python", "-m", f"scripts.{words[0]}", *words[1:]])
    assert done.exit_code == 0, f"{words}\n{done.output[-1500:]}"
    return contextlib.nullcontext(SimpleNamespace(wait=lambda: done.exit_code))


def agrees(shown: str, line: str) -> bool:
    """Whether a line begins with the words that a page shows, and with its numbers, those with a point to two digits.

    Times are left out.
    """
    shown, line = (re.sub(r"\b\d+:\d\d:\d\d\b", "time", text) for text in (shown, line))
    words, printed = (NUMBER.sub("#", text).split() for text in (shown, line))
    numbers = [text.replace(",", "") for text in NUMBER.findall(shown)]
    others = [text.replace(",", "") for text in NUMBER.findall(line)][: len(numbers)]
    return printed[: len(words)] == words and all(
        shown.startswith("seconds:")
        or (math.isclose(float(one), float(other), rel_tol=0.01, abs_tol=0.01) if "." in one else one == other)
        for one, other in zip(numbers, others, strict=True)
    )


def begins_alike(shown: str, line: str) -> bool:
    """Whether the first words are the same."""
    return shown.split()[:1] == line.split()[:1]


@cache
def printed_by(language: str, block: str) -> str:
    """What a block prints when it runs in this process."""
    if language == "bash":
        commands = block.replace("\\\n", " ").splitlines()
        done = [invoke(shlex.split(f"{line} {MINUTES}" if "scripts.adapt" in line else line)) for line in commands]
        assert not any(one.exit_code for one in done), done[-1].output[-1500:]
        RUN_ALREADY.update(commands)
        return "".join(re.sub(r"\r[^\r\n\]]*\]", "", one.output) for one in done)  # without progress bars
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block, block, "exec"), {"__name__": "__main__"})
    return said.getvalue()


@pytest.mark.parametrize(("language", "block", "shown"), PRINTING)
def test_what_a_page_shows_is_what_its_block_prints(
    language: str, block: str, shown: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if language == "python" and not runnable(block):
        pytest.skip("2026-11-25: a library of this block does not support this Python")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(OpenVinoEncoder, "encode_ids", REMEMBERING)
    lines = iter(printed := printed_by(language, block).splitlines())
    same = begins_alike if any(name in block for name in VARYING) else agrees
    for expected in filter(None, map(str.strip, shown.splitlines())):
        found = expected == "…" or any(same(expected, line.strip()) for line in lines)
        assert found, "\n".join([f"not printed, or not in this order: {expected}", *printed])


def test_every_command_runs(folder: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, because the later commands use what the earlier ones made; those that print were run above.

    The shortest runs as a process of its own; all, and those that they run, in this one, on small models.
    """
    assert len(SCRIPTS) > 20
    shortest = shlex.split(min(SCRIPTS, key=len))
    done = subprocess.run(
        [sys.executable, *shortest[1:]], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(folder)
    monkeypatch.setattr(names, "BUNDLED", small)
    monkeypatch.setattr(reproduction, "start_command", start_here)
    monkeypatch.setattr(pretraining, "EVAL_ROWS", 16)  # the settings in the commands are shortened, this has none
    for line in SCRIPTS:
        if line in RUN_ALREADY:
            continue
        long = any(name in line for name in ("wiki_a", "nli", "tests.bench"))
        shortened = next((more for start, more in SHORTENED.items() if start in line and long), "")
        done = invoke(shlex.split(f"{line} {shortened}"))
        assert done.exit_code == 0, f"{line}\n{done.output[-1500:]}"
    assert (folder / "runs" / "mine" / "model.safetensors").is_file()
    assert list((folder / "runs" / "reproduce").glob("*.md"))  # its ledger


def runnable(snippet: str) -> bool:
    """Whether the libraries that a snippet imports are installed; not all of them support Python 3.10."""
    return all(importlib.util.find_spec(name) for name in re.findall(r"^(?:from|import) (\w+)", snippet, re.MULTILINE))


def test_every_python_snippet_runs(folder: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first as a process of its own, the others in this one, on small models and the indexes of these."""
    first, *others = filter(runnable, blocks("python"))
    done = subprocess.run([sys.executable, "-c", first], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert agrees("(3, 384)", done.stdout.splitlines()[0])
    monkeypatch.chdir(folder)
    monkeypatch.setattr(names, "BUNDLED", small)
    for snippet in others:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(snippet, snippet, "exec"), {"__name__": "__main__"})
        assert said.getvalue(), snippet


def test_every_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    more = {path: path.read_text() for path in (ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md")}
    for page, text in {**PAGES, **more}.items():
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(text)):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target.read_text()), f"{page.name}: {link}"


def test_the_readme_is_short_configures_the_space_and_leads_to_every_page() -> None:
    assert len(README.encode()) < 8_000
    assert README.startswith(FRONT_MATTER)
    linked = {name for text in PAGES.values() for name in re.findall(r"\]\((?:docs/)?(\w[\w-]*\.md)", text)}
    assert linked >= {page.name for page in PAGES if page.parent.name == "docs"}
    rows = [len(re.findall(r"^\|", block, re.MULTILINE)) - 2 for block in README.split("\n\n") if block.startswith("|")]
    assert max(rows, default=0) <= 6
    for name in ("app.py", "cse", "index", "scripts", "tests", "requirements.txt", "LICENSE", "CHANGELOG.md"):
        assert (ROOT / name).exists(), name


def test_all_shipped_files_fit_in_100_megabytes_and_none_is_a_pickle() -> None:
    sizes = {path: path.stat().st_size for path in (ROOT / "cse" / "bundled").rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 100_000_000
    assert not [path for path in sizes if path.suffix in (".bin", ".pt", ".pkl", ".pth")]
