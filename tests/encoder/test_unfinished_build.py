"""A build killed anywhere and resumed gives the bytes of an undisturbed one, and encodes nothing twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import command_line
import pytest
from app_models import write_model
from command_line import refused
from typer.testing import Result

from cse.encoder.encoder import Encoder

TEXTS = [f"a dog and {number} cats" for number in range(12)]
BLOCK = 4


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: write_model(folder / name, bert_folder, name) for name in ("promptbert", "simcse")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    file.write_text("\n".join(TEXTS) + "\n")
    return file


@pytest.fixture(scope="module")
def whole(corpus: Path, models: dict[str, Path]) -> dict[str, bytes]:
    """The files of an undisturbed build."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("index.faiss_index.BLOCK", BLOCK)
        patched.setattr("cse.encoder.shards.BLOCK", BLOCK)
        built(corpus, "--model", models["promptbert"], "--output", corpus.with_name("out"), "--resume")
    return contents(corpus.with_name("out"))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences given to a model; "stop" as the first one interrupts it after so many blocks as the second says."""
    seen_texts: list[str] = []
    really = Encoder.encode

    def encoding(self: Encoder, texts: list[str], **options: Any) -> Any:
        if seen_texts[:1] == ["stop"] and len(seen_texts) > int(seen_texts[1]) * BLOCK + 1:
            raise KeyboardInterrupt
        seen_texts.extend(texts)
        return really(self, texts, **options)

    monkeypatch.setattr(Encoder, "encode", encoding)
    monkeypatch.setattr("cse.encoder.shards.BLOCK", BLOCK)
    monkeypatch.setattr("index.faiss_index.BLOCK", BLOCK)
    return seen_texts


@pytest.fixture
def build_words(corpus: Path, models: dict[str, Path]) -> tuple[object, ...]:
    """The words of a build but for its output."""
    return (corpus, "--model", models["promptbert"], "--output")


def run(*words: object) -> Result:
    return command_line.run("build_index", *words)


def built(*words: object) -> Result:
    return command_line.ran("build_index", *words)


def interrupted(seen: list[str], blocks: int, *words: object) -> None:
    """A build that is interrupted after so many encoded blocks."""
    seen[:] = ["stop", str(blocks)]
    assert run(*words).exit_code == 130
    assert seen[2:] == TEXTS[: blocks * BLOCK]
    seen.clear()


@pytest.mark.parametrize("blocks", [0, 2])
def test_a_broken_off_build_encodes_the_rest_alone_and_ends_in_the_same_bytes(
    build_words, tmp_path, seen, blocks, whole
):
    interrupted(seen, blocks, *build_words, tmp_path / "out", "--resume")
    assert not (tmp_path / "out").exists()
    built(*build_words, tmp_path / "out", "--resume")
    assert seen == TEXTS[blocks * BLOCK :]
    assert contents(tmp_path / "out") == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_what_does_not_fit_an_unfinished_build_is_refused_and_left_alone(build_words, tmp_path, models, seen):
    work, corpus = tmp_path / "out.partial", Path(shutil.copy(str(build_words[0]), tmp_path))
    words = (corpus, *build_words[1:], tmp_path / "out")
    interrupted(seen, 2, *words, "--resume")
    before = contents(work)
    refused(run(*words), 3, "out.partial: holds an unfinished build")
    refused(run(*words, "--resume", "--model", models["simcse"]), 3, "was begun with model '")
    corpus.write_text("\n".join(["another", *TEXTS[1:]]))
    refused(run(*words, "--resume"), 3, "out.partial: was begun with other sentences")
    assert contents(work) == before
    assert seen == []
    corpus.write_text("\n".join(TEXTS))
    (work / "thesis.tex").write_text("years of work")
    for option in ("--overwrite", "--resume"):
        refused(run(*words, option), 3, "out.partial: holds thesis.tex")
    (work / "thesis.tex").unlink()
    built(*words, "--overwrite")
    assert seen == TEXTS
    assert not work.exists()


@pytest.mark.parametrize("encoded", [False, True])
def test_a_damaged_part_is_encoded_again_and_vectors_that_are_there_serve_another_factory(
    build_words, tmp_path, seen, encoded, whole
):
    """Of a build killed between parts, or refused when all were encoded."""
    words = (*build_words, tmp_path / "out", "--resume")
    if encoded:
        refused(run(*words, "--factory", "IVF64,Flat"), 3, "needs at least 64 sentences")
        seen.clear()
    else:
        interrupted(seen, 2, *words)
    part = tmp_path / "out.partial" / "part-00001-of-00003.npy"
    part.write_bytes(part.read_bytes()[:-1] + b"\x7f")
    built(*words)
    assert seen == TEXTS[BLOCK : 2 * BLOCK if encoded else None]
    assert contents(tmp_path / "out") == whole
