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
    refused(run("train", "simcse", "--seed", "-1", *common), 2, "--seed")
    refused(run("train", "simcse", "--prefix", "3", *common), 2, "has no prefix")


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
        (text, "is a file; give a model's folder"), ("", "no model given"),
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
    refused(run("train", "simcse", *common, "--output", tmp_path / "folder"), 3, "already holds")
    refused(run("train", "simcse", *common, "--output", tmp_path / "folder", "--overwrite"), 3, "precious.txt")
    backbone = shutil.copytree(bert_folder, tmp_path / "backbone")
    done = run("train", "simcse", *common, "--output", backbone, "--overwrite")
    refused(done, 3, "is not a checkpoint of this project")
    assert (backbone / "tokenizer.json").is_file()
    refused(run("encode", "--model", bert_folder, "--input", text, "--output", tmp_path / "x.txt"), 3, ".npy")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "precious.txt").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="links (2026-11)")
def test_an_output_is_neither_the_file_that_is_read_nor_another_output(bert_folder, tmp_path):
    texts, link, out = tmp_path / "in.csv", tmp_path / "own.csv", tmp_path / "out.csv"
    texts.write_text("".join(f"{text}\n" for text in ("text", *SENTENCES)))
    link.symlink_to(texts)
    models = (bert_folder, bert_folder, "--pooling", "cls", "--data")
    for words, own, option in (
        (("topics", "--model", bert_folder), link, "--json"),
        (("duplicates", "--model", bert_folder), texts, "--output"),
        (("judge", *models), texts, "--json"),
    ):
        refused(run(*words, texts, option, own), 3, f"{own}: is the file that is read; give {option} another file")
    done = run("duplicates", "--model", bert_folder, texts, "--output", out, "--groups", out)
    refused(done, 3, f"{out}: is the file of --output, too; give --groups another file")
    assert texts.read_text().splitlines() == ["text", *SENTENCES]
    assert not out.exists()


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
