"""One owner of the meaning of a model name: the same name opens the same encoder everywhere, its index included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import SENTENCES
from typer.testing import CliRunner, Result

import cse
from cse.commands import build_index, search
from cse.errors import ArtefactError
from cse.models.names import Kind, resolve


def run(app: object, *arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text("\n".join(SENTENCES))
    return tmp_path / "corpus.txt"


@pytest.fixture
def short(bert_folder: Path, tmp_path: Path) -> Path:
    """A sentence-transformers folder with mean pooling over at most six tokens."""
    folder = tmp_path / "short"
    folder.mkdir()
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 6}))
    return folder


def test_an_index_of_a_sentence_transformers_folder_can_be_searched(short: Path, corpus: Path, tmp_path: Path) -> None:
    built = run(build_index.app, corpus, "--model", short, "--output", tmp_path / "index")
    assert built.exit_code == 0, built.output
    for arguments in ([], ["--model", short]):
        result = run(search.app, tmp_path / "index", SENTENCES[1], "-k", 1, *arguments)
        assert result.exit_code == 0, result.output
        assert SENTENCES[1] in result.stdout
    appended = run(build_index.app, corpus, "--model", short, "--output", tmp_path / "index", "--append")
    assert appended.exit_code == 0, appended.output


@pytest.mark.parametrize("pooling", [None, "mean", "cls", "prompt"])
def test_a_reference_opens_the_same_encoder_again(short: Path, bert_folder: Path, pooling: str | None) -> None:
    for folder in (short, bert_folder):
        reference = resolve(str(folder), pooling)
        assert resolve(reference.name, reference.pooling) == reference
        again = cse.load(reference.name, reference.pooling)
        assert again.fingerprint == cse.load(str(folder), pooling).fingerprint
    assert resolve(str(short), None).kind is Kind.SENTENCE_TRANSFORMERS
    assert resolve(str(bert_folder)).pooling == "mean"


def test_kinds_of_models(tmp_path: Path, bert_folder: Path) -> None:
    (tmp_path / "words.txt").write_text("the 1 2\n")
    assert resolve("simcse").kind is Kind.CHECKPOINT
    assert resolve("bundled").kind is Kind.BACKBONE
    assert resolve(str(bert_folder)).kind is Kind.BACKBONE
    assert resolve(str(tmp_path / "words.txt")).kind is Kind.WORD_VECTORS
    with pytest.raises(ArtefactError, match="no model 'nowhere'; choose simcse"):
        resolve("nowhere")
    with pytest.raises(ArtefactError, match=r"no model 'promptbrt' \(did you mean promptbert\?\); choose simcse"):
        resolve("promptbrt")
    with pytest.raises(ValueError, match="has its own pooling"):
        resolve("simcse", "mean")


def test_options_that_several_models_share_are_ignored_by_those_that_take_none(tmp_path: Path, short: Path) -> None:
    (tmp_path / "words.txt").write_text("the 1 2\n")
    for name in ("simcse", str(tmp_path / "words.txt")):
        assert resolve(name, "cls", "simcse", lenient=True) == resolve(name)
    assert resolve("bundled", "cls", "simcse", lenient=True) == resolve("bundled", "cls")
    assert resolve(str(short), "cls", lenient=True) == resolve(str(short), "cls")
    for options in (("round", None), (None, "round")):
        with pytest.raises(ValueError, match=r"unknown .* 'round'; choose from"):
            resolve("simcse", *options, lenient=True)
