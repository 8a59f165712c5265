"""`scripts.tokens`: words in order, before and after denoising, of a sentence or a file, at any template's [MASK]."""

import json
from pathlib import Path

import pytest
from command_line import refused, run

import cse
from cse.methods.templates import Template


def test_tokens_prints_probabilities_in_order_and_json(bert_folder: Path) -> None:
    lines = run("tokens", "--model", bert_folder, "the dog is sad", "-k", 3).stdout.splitlines()
    assert len(lines) == 3
    tokens = json.loads(
        run("tokens", "--model", bert_folder, "the dog is sad", "-k", 3, "--no-denoise", "--json").stdout
    )
    expected = cse.load(str(bert_folder)).top_tokens("the dog is sad", 3, denoise=False)
    assert [(row["token"], pytest.approx(row["probability"])) for row in tokens] == expected
    assert run("tokens", "--model", bert_folder, "[MASK] 🎸 שלום").exit_code == 0
    asked = run("tokens", "--model", bert_folder, "the dog is sad", "--template", "the [X] was [MASK]", "--json").stdout
    expected = cse.load(str(bert_folder)).top_tokens("the dog is sad", template=Template("the [X] was [MASK]"))
    assert [(row["token"], pytest.approx(row["probability"])) for row in json.loads(asked)] == expected
    refused(run("tokens", "--model", bert_folder, "a", "--template", "[MASK]"), 3, "exactly one [X]")
    refused(run("tokens", "--model", bert_folder, "   "), 3, "empty")
    refused(run("tokens", "--model", bert_folder), 3, "give either a sentence or --file")


def test_tokens_of_a_file_are_those_of_its_sentences_before_and_after(bert_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "asked.txt"
    file.write_text("the dog is sad\n\na big cat\n")
    encoder = cse.load(str(bert_folder))
    lines = [line.split("\t") for line in run("tokens", "--model", bert_folder, "--file", file).stdout.splitlines()]
    asked = json.loads(run("tokens", "--model", bert_folder, "--file", file, "--json").stdout)
    for (sentence, before, after), row in zip(lines, asked, strict=True):
        assert before.split() == row["before"] == [token for token, _ in encoder.top_tokens(sentence, 5, False)]
        assert after.split() == row["after"] == [token for token, _ in encoder.top_tokens(sentence, 5)]
    assert [(row["row"], row["sentence"]) for row in asked] == [(1, "the dog is sad"), (3, "a big cat")]
    refused(run("tokens", "--model", bert_folder, "--file", file, "the dog"), 3, "give either a sentence or --file")
    refused(run("tokens", "--model", bert_folder, "--file", tmp_path / "none.txt"), 3, "none.txt")
    refused(run("tokens", "--model", bert_folder, "a", "-k", 9999), 3, "k is 9999")
    refused(run("tokens", "--model", bert_folder, "a", "--pooling", "max"), 3, "unknown pooling", "first-last")


def test_tokens_of_a_table_have_its_rows_and_texts(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes('id;body\n7; "the\tdog" \n8;\n9;a caf\u00e9\n'.encode("cp1252"))
    command = (
        "tokens",
        "--model",
        bert_folder,
        "--file",
        tmp_path / "a.csv",
        "--column",
        "body",
        "--read",
        "quotes=no",
    )
    asked = json.loads(run(*command, "--json").stdout)
    assert [(row["row"], row["sentence"]) for row in asked] == [(1, ' "the\tdog" '), (3, "a caf\u00e9")]
    assert [line.split("\t")[0] for line in run(*command).stdout.splitlines()] == [' "the dog" ', "a caf\u00e9"]
