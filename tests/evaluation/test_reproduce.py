"""The command of a reproduction: it runs this project's own commands, goes on where it was, and writes the ledger."""

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import refused, run
from conftest import SENTENCES


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Run the ledger's commands without a process each; the list of what was run."""
    ran: list[list[str]] = []

    def invoke(words: list[str], **_: object) -> AbstractContextManager:
        ran.append(words)
        code = run(*words).exit_code
        return nullcontext(SimpleNamespace(wait=lambda: code))

    monkeypatch.setattr("cse.evaluation.reproduction.start_command", invoke)
    return ran


def test_a_table_is_trained_evaluated_and_not_done_twice(
    bert_folder: Path,
    sts: Path,
    tmp_path: Path,
    in_process: list[list[str]],
) -> None:
    (sts / "STSB" / "dev.tsv").write_text((sts / "STSB" / "test.tsv").read_text())
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    output = tmp_path / "out"
    options = (
        "promptbert", "8", "--data", sts.parent, "--output", output, "--train-data", tmp_path / "text.txt",
        "--backbone", bert_folder, "--seed", 1, "--seed", 2, "--only", "uncased, same",
        "--train-options", "--max-steps 1 --eval-every 1",
    )  # fmt: skip
    done = run("reproduce", *options)
    assert done.exit_code == 0, done.output
    assert "| bert-base-uncased, same template | 78.16 ± 0.17 |" in done.stdout
    ledger = json.loads((output / "promptbert-8.json").read_text())
    (entry,) = ledger["rows"]
    assert len(entry["runs"]) == 2
    assert entry["mean"] == pytest.approx(sum(entry["runs"]) / 2, abs=0.006)
    assert entry["difference"] == pytest.approx(entry["mean"] - 78.16, abs=0.011)
    assert [line.split()[2] for line in entry["commands"]] == ["scripts.train"] * 2 + ["scripts.evaluate"] * 2
    assert ledger["versions"].keys() >= {"torch", "transformers"}
    stamps = {path: path.stat().st_mtime_ns for path in (output / "checkpoints").glob("*/model.safetensors")}
    assert len(stamps) == 2
    assert [words[0] for words in in_process] == ["train"] * 2 + ["evaluate"] * 2
    assert run("reproduce", *options).exit_code == 0
    assert "train" not in [words[0] for words in in_process[4:]]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    other = [*options[: options.index("--only") + 1], "uncased, different templates", *options[-2:], "--seed", 1]
    assert run("reproduce", *other).exit_code == 0
    names = [row["row"] for row in json.loads((output / "promptbert-8.json").read_text())["rows"]]
    assert names[0] == "bert-base-uncased, same template"  # what was done before stays in the ledger
    assert len(names) == 3


@pytest.mark.usefixtures("in_process")
def test_copied_rows_are_marked_and_missing_text_is_asked_for(
    sts: Path,
    tmp_path: Path,
) -> None:
    options = ("--data", sts.parent, "--output", tmp_path / "out")
    failed = (*options, "--train-data", tmp_path / "none.txt", "--backbone", "bundled", "--only", "SCPCSE")
    refused(run("reproduce", "dcpcse", "1", *failed), 3, "SCPCSE", "scripts.train scpcse", "exit code 3")
    done = run("reproduce", "promptbert", "5", *options, "--only", "glove")
    assert "| GloVe average | 61.32 | copied, not run | | | Reimers and Gurevych 2019" in done.stdout
    refused(run("reproduce", "conpvp", "3", *options), 3, "--train-data")
    refused(run("reproduce", "conpvp", "3", *options, "--only", "gpt"), 3, "'gpt'")
    shown = run("reproduce", "promptbert", "5", *options, "--only", "manual", "--dry-run").stdout
    assert shown.startswith("python -m scripts.evaluate sts --model bert-base-uncased --pooling prompt")


@pytest.mark.usefixtures("in_process")
def test_figures_come_out_as_pictures(bert_folder: Path, sts: Path, tmp_path: Path) -> None:
    (sts / "STSB" / "dev.tsv").write_text((sts / "STSB" / "test.tsv").read_text())
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    options = (
        "--data", sts.parent, "--output", tmp_path / "out", "--backbone", bert_folder,
        "--train-data", tmp_path / "text.txt", "--train-options", "--max-steps 1",
    )  # fmt: skip
    for paper, table, only in (
        ("dcpcse", "figure-2", "length 1"),
        ("conpvp", "figure-5", "cls"),
        ("promptbert", "4", "means"),
    ):
        done = run("reproduce", paper, table, *options, "--only", only)
        assert done.exit_code == 0, done.output
    (drawn,) = json.loads((tmp_path / "out" / "conpvp-figure-5.json").read_text())["rows"]
    assert (drawn["note"], drawn["published_on"]) == ("no number to compare: it is a picture", "bert-base-uncased")
    folder = tmp_path / "out" / "figures"
    pictures = [path for pattern in ("*.png", "*-figure-*/*.png") for path in folder.glob(pattern)]
    figures = sorted(str(path.relative_to(folder)) for path in pictures)
    assert figures == [
        "conpvp-figure-5/pairs.png", "conpvp-figure-5/removal.png", "conpvp-figure-5/similarity.png",
        "conpvp-figure-5/static-embeddings-untrained-[CLS],-bert-base-uncased.png",
        "dcpcse-figure-2.png", "promptbert-4.png",
    ]  # fmt: skip
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in figures)
