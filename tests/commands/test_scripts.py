"""Commands on good and bad input: their output, one-line errors and exit codes."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import ran, refused, run
from conftest import ROOT, SENTENCES

import cse

NAMES = sorted(path.stem for path in (ROOT / "scripts").glob("[a-z]*.py"))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(f"{a} and {b}" for a in SENTENCES for b in SENTENCES[:3]))
    return file


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    file = tmp_path / "dev.tsv"
    file.write_text("".join(f"{i % 6}\t{SENTENCES[i % 7]}\t{SENTENCES[(3 * i + 1) % 7]}\n" for i in range(10)))
    return file


def test_help_of_every_command_shows_an_example():
    for name in NAMES:
        helped = run(name, "-h")
        assert (helped.exit_code, f"python -m scripts.{name}" in helped.stdout) == (0, True), name
        assert run(name).exit_code == 2, name
    assert "Example: cse app" in run("__main__", "app", "--help").stdout
    assert run("__main__", "--help").exit_code == 0


@pytest.mark.parametrize("method", ["promptbert", "dcpcse"])
def test_train_writes_a_checkpoint_that_load_and_encode_accept(bert_folder, text, dev, tmp_path, method):
    output = tmp_path / "out"
    done = ran(
        "train", method, "--backbone", bert_folder, "--data", text, "--dev", dev, "--output", output,
        "--batch-size", 8, "--eval-every", 1, "--json",
    )  # fmt: skip
    summary = json.loads(done.stdout)
    assert {"start", "best", "best_step", "steps"} <= summary.keys()
    small = {"README.md", "config.json", "model.safetensors", "train_log.jsonl", "fitted_texts.json"}
    whole = {"cse_checkpoint.json", "modules.json", "tokenizer.json", "tokenizer_config.json"}
    files = {file.name for file in output.iterdir()}
    assert files == small if method == "dcpcse" else files > small | whole
    vectors = tmp_path / "vectors.npy"
    assert run("encode", "--model", output, "--input", text, "--output", vectors).exit_code == 0
    expected = cse.load(str(output)).encode(text.read_text().splitlines())
    np.testing.assert_array_equal(np.load(vectors), expected)
    again = ("train", method, "--backbone", bert_folder, "--data", text, "--output", output)
    refused(run(*again), 3, "already holds something; give another --output or pass --overwrite")
    refused(run(*again, "--resume"), 3, "already finished; there is nothing to resume")


def test_a_dry_run_shows_tokens_counts_and_steps_and_writes_nothing(bert_folder, text, tmp_path):
    common = ("--backbone", bert_folder, "--data", text, "--output", tmp_path / "out")
    arguments = (*common, "--dry-run", "--batch-size", 4)
    plan = json.loads(run("train", "dcpcse", *arguments, "--prefix", 3, "--json").stdout)
    assert plan["parameters_stored"] == 3 * 2 * 2 * 32
    assert plan["parameters_learned"] == plan["parameters_stored"] + 32 * 32 + 32
    assert (plan["examples"], plan["steps"]) == (21, 5)
    assert plan["lines"][0]["tokens"] == "[CLS] a man is playing guitar and a man is playing guitar [SEP]"
    assert "means [MASK] . [SEP]" in run("train", "promptbert", *arguments).stdout
    assert not (tmp_path / "out").exists()


def test_training_without_dev_says_that_it_selects_nothing(bert_folder, text, tmp_path):
    done = run("train", "simcse", "--backbone", bert_folder, "--data", text, "--output", tmp_path / "out")
    assert done.exit_code == 0
    assert "selects nothing" in done.stderr
    assert "nothing was selected" in (tmp_path / "out" / "cse_checkpoint.json").read_text()


@pytest.mark.parametrize(
    ("row", "words"),
    [("3\t{0}\t{1}\n", ("dev.tsv: all 7 pairs have the same grade",)),
     ("{2}\t{0}\t{0}\n", ("--dev: all 7 pairs have the same cosine", "give other pairs"))],
    ids=["grades", "cosines"],
)  # fmt: skip
def test_dev_pairs_without_a_correlation_are_refused_before_a_step(bert_folder, text, tmp_path, row, words):
    pairs = zip(SENTENCES, reversed(SENTENCES), range(7), strict=True)
    (tmp_path / "dev.tsv").write_text("".join(row.format(*pair) for pair in pairs))
    options = ("--backbone", bert_folder, "--data", text, "--dev", tmp_path / "dev.tsv", "--output", tmp_path / "out")
    refused(run("train", "simcse", *options), 3, *words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.tsv", "text.txt"]


def test_supervised_training_reads_triplets(bert_folder, tmp_path):
    rows = [f"{a}\t{b}\t{c}" for a, b, c in zip(SENTENCES, SENTENCES[1:], SENTENCES[2:], strict=False)]
    (tmp_path / "nli.tsv").write_text("\n".join(rows))
    words = ("--backbone", bert_folder, "--data", tmp_path / "nli.tsv", "--output", tmp_path / "out", "--epochs", 1)
    ran("train", "promptbert", "--supervised", *words)
    assert cse.load(str(tmp_path / "out")).method.supervised


def test_wrong_options_are_usage_errors_that_list_the_choices(bert_folder, text, tmp_path):
    common = ("--backbone", bert_folder, "--data", text, "--output", tmp_path / "out")
    refused(run("train", "bertscore", *common), 2, "unknown method", "promptbert")
    refused(run("train", "conpvp", "--supervised", *common), 2, "no supervised form")
    refused(run("train", "simcse", "--precision", "fp8", *common), 2, "unknown precision", "bf16")
    refused(run("train", "simcse", "--colour", "red", *common), 2, "--colour")
    refused(run("train", "simcse", "--batch-size", "0", *common), 2, "--batch-size")
    refused(run("train", "simcse", "--seed", "-1", *common), 2, "--seed")
    refused(run("train", "simcse", "--prefix", "3", *common), 2, "has no prefix")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("train", "simcse --output out --data"), ("pretrain", "--output out"), ("adapt", "--output out"),
        ("topics", "--model simcse"), ("duplicates", "--model simcse"), ("judge", "simcse dcpcse --data"),
        ("build_index", "--model simcse --output out"), ("reproduce", "promptbert 1 --train-data"),
    ],
)  # fmt: skip
def test_a_seed_that_no_generator_takes_is_a_usage_error(text, tmp_path, name, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(run(name, *words.split(), text, "--seed", 2**32), 2, "'--seed': ", "4294967295")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_the_largest_seed_is_taken_everywhere(bert_folder, text, tmp_path):
    for number, (name, words) in enumerate({
        "train": ["simcse", "--backbone", bert_folder, "--data", text, "--output"],
        "pretrain": [text, "--vocabulary", 40, "--layers", 1, "--hidden", 16, "--tokens", 64, "--batch-tokens", 64,
                     "--output"],
        "topics": [text, "--model", bert_folder, "--json"],
        "build_index": [text, "--model", bert_folder, "--factory", "IVF2,Flat", "--output"],
    }.items()):  # fmt: skip
        ran(name, *words, tmp_path / str(number), "--seed", 2**32 - 1)


def test_missing_and_wrong_artefacts_are_refused_with_exit_code_4(bert_folder, text, tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text('{"model_type": "resnet"}')
    (tmp_path / "foreign" / "model.safetensors").write_bytes(b"")
    for model in ("nonsense", tmp_path / "foreign", text):
        refused(run("tokens", "--model", model, "the dog"), 4, str(model))
    common = ("--data", text, "--output", tmp_path / "out")
    refused(run("train", "simcse", "--backbone", tmp_path / "foreign", *common), 4, "damaged", "copy")
    for name, message in (
        ("nope", "no model 'nope'; choose simcse"), ("promptbert", "promptbert is a trained checkpoint"),
        (text, "is a file; give a backbone"), ("", "no model given"),
    ):  # fmt: skip
        refused(run("train", "simcse", "--backbone", name, *common), 4, message)
        refused(run("pretrain", text, "--output", tmp_path / "pretrained", "--init", name), 4, message)
    refused(run("train", "simcse", "--backbone", bert_folder, *common, "--resume"), 4, "nothing to resume")


def test_an_output_that_is_a_file_or_something_else_is_left_alone(bert_folder, text, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious.txt").write_text("mine")
    common = ("--backbone", bert_folder, "--data", text)
    refused(run("train", "simcse", *common, "--output", tmp_path / "file"), 3, "is a file")
    refused(run("train", "simcse", *common, "--output", tmp_path / "file" / "deep"), 3, "is a file")
    refused(run("train", "simcse", *common, "--output", tmp_path / "folder"), 3, "already holds")
    refused(run("train", "simcse", *common, "--output", tmp_path / "folder", "--overwrite"), 3, "precious.txt")
    backbone = shutil.copytree(bert_folder, tmp_path / "backbone")
    done = run("train", "simcse", *common, "--output", backbone, "--overwrite")
    refused(done, 3, "is not a checkpoint of this project")
    assert (backbone / "tokenizer.json").is_file()
    refused(run("encode", "--model", bert_folder, "--input", text, "--output", tmp_path / "x.txt"), 3, ".npy")
    refused(run("pretrain", text, "--output", tmp_path / "file", "--vocabulary", 100), 3, "file")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "precious.txt").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="links (2026-11)")
@pytest.mark.parametrize(
    ("name", "option", "other", "spelling"),
    [
        ("topics", "--csv", "--json", "dotted"), ("topics", "--json", None, "link"),
        ("duplicates", "--output", None, "hard link"), ("duplicates", "--groups", "--output", "same"),
        ("judge", "--json", None, "same"),
    ],
)  # fmt: skip
def test_an_output_is_neither_the_file_that_is_read_nor_another_output(
    bert_folder, tmp_path, name, option, other, spelling
):
    texts, own, out = tmp_path / "in.csv", tmp_path / "own.csv", tmp_path / "out.csv"
    texts.write_text("".join(f"{text}\n" for text in ("text", *SENTENCES)))
    content = texts.read_bytes()
    if spelling == "link":
        own.symlink_to(texts)
    elif spelling == "hard link":
        own.hardlink_to(texts)
    else:
        own = texts if spelling == "same" else tmp_path / "folder" / ".." / texts.name
        (tmp_path / "folder").mkdir()
    words = (bert_folder, bert_folder, "--pooling", "cls", "--data") if name == "judge" else ("--model", bert_folder)
    words += ("--output", out) if name == "duplicates" and option != "--output" else ()
    done = run(name, *words, texts, option, own)
    refused(done, 3, f"{own}: is the file that is read; give {option} another file")
    if other:
        again = tmp_path / "folder" / ".." / "out.csv" if spelling == "dotted" else out
        done = run(name, "--model", bert_folder, texts, other, out, option, again)
        refused(done, 3, f"{again}: is the file of {other}, too; give {option} another file")
    assert (texts.read_bytes(), out.exists()) == (content, False)


def test_an_unfinished_run_is_not_thrown_away_silently(bert_folder, text, tmp_path):
    (tmp_path / "out.partial").mkdir()
    common = ("--backbone", bert_folder, "--data", text, "--output", tmp_path / "out")
    refused(run("train", "simcse", *common), 3, "unfinished run", "resume")
    again = ran("train", "simcse", *common, "--resume")
    assert [line for line in again.stderr.splitlines() if line.endswith("no saved state; the run starts again")]


def test_pretrain_makes_a_backbone_that_train_accepts(text, tmp_path):
    options = ("--vocabulary", 60, "--layers", 1, "--hidden", 16, "--tokens", 640, "--batch-tokens", 64)
    text.write_text("\n".join([*SENTENCES, ""] * 60))
    done = ran("pretrain", text, "--output", tmp_path / "pre", *options, "--json")
    assert json.loads(done.stdout)["curve"][-1]["step"] == 10
    ran("train", "simcse", "--backbone", tmp_path / "pre" / "model", "--data", text, "--output", tmp_path / "out")
    refused(run("pretrain", text, "--output", tmp_path / "big", "--vocabulary", 5000), 3, "supports only")


def test_an_unexpected_error_is_one_line_with_exit_code_1(bert_folder, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("surprise")

    monkeypatch.setattr(cse, "load", broken)
    refused(run("tokens", "--model", bert_folder, "a"), 1, "unexpected RuntimeError: surprise", "CSE_DEBUG")
