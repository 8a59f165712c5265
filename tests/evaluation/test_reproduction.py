"""The commands of a reproduction, where their artefacts lie, and which of them are not run again."""

import json
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace

import pytest
from command_line import ran, refused, run
from conftest import SENTENCES

from cse.evaluation.reproduction import LISTINGS


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


def test_a_table_is_trained_evaluated_and_not_done_twice(bert_folder, sts, tmp_path, in_process):
    (sts / "STSB" / "dev.tsv").write_text((sts / "STSB" / "test.tsv").read_text())
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    output = tmp_path / "out"
    options = (
        "promptbert", "8", "--data", sts.parent, "--output", output, "--train-data", tmp_path / "text.txt",
        "--backbone", bert_folder, "--seed", 1, "--seed", 2, "--only", "uncased, same",
        "--train-options", "--max-steps 1 --eval-every 1",
    )  # fmt: skip
    done = ran("reproduce", *options)
    assert "| bert-base-uncased, same template | 78.16 ± 0.17 |" in done.stdout
    ledger = json.loads((output / "promptbert-8.json").read_text())
    (entry,) = ledger["rows"]
    assert len(entry["runs"]) == 2
    assert entry["mean"] == pytest.approx(sum(entry["runs"]) / 2, abs=0.006)
    assert entry["difference"] == pytest.approx(entry["mean"] - 78.16, abs=0.011)
    assert [line.split()[2] for line in entry["commands"]] == ["scripts.train"] * 2 + ["scripts.evaluate"] * 2
    stamps = {path: path.stat().st_mtime_ns for path in (output / "checkpoints").glob("*/model.safetensors")}
    assert len(stamps) == 2
    assert [words[0] for words in in_process] == ["train"] * 2 + ["evaluate"] * 2
    again = run("reproduce", *options, "--json")
    assert json.loads(again.stdout) == [entry]
    assert "train" not in [words[0] for words in in_process[4:]]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    (tmp_path / "text.txt").write_text("\n".join(reversed(SENTENCES)))
    refused(run("reproduce", *options), 3, "trained on other text of these names; delete it and bert-promptbert")


@pytest.mark.usefixtures("in_process")
def test_copied_rows_are_marked_and_missing_text_is_asked_for(sts, tmp_path):
    options = ("--data", sts.parent, "--output", tmp_path / "out")
    failed = (*options, "--train-data", tmp_path / "none.txt", "--backbone", "bundled", "--only", "SCPCSE")
    refused(run("reproduce", "dcpcse", "1", *failed), 3, "SCPCSE", "scripts.train scpcse", "exit code 3")
    done = run("reproduce", "promptbert", "5", *options, "--only", "glove")
    assert "| GloVe average | 61.32 | copied, not run |  |  | Reimers and Gurevych 2019" in done.stdout
    refused(run("reproduce", "conpvp", "3", *options), 3, "--train-data")
    refused(run("reproduce", "conpvp", "3", *options, "--only", "gpt"), 3, "'gpt'")
    shown = run("reproduce", "promptbert", "5", *options, "--only", "manual", "--dry-run").stdout
    assert shown.startswith("python -m scripts.evaluate sts --model bert-base-uncased --pooling prompt")


def cells(paper: str, table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in LISTINGS[paper, table]()[2:]]


def test_dcpcses_tables_are_the_papers():
    learned = {(row[0], row[1]): row[2:] for row in cells("dcpcse", "3")}
    assert learned["bert-base", "unsupervised"] == ["16", "294,912", "590,592"]
    assert learned["bert-large", "supervised"] == ["12", "589,824", "1,049,600"]
    assert learned["roberta-base", "supervised"] == ["10", "184,320", "590,592"]
    settings = {(row[0], row[1]): row[2:] for row in cells("dcpcse", "4")}
    assert settings["roberta-large", "unsupervised"] == ["64", "0.01", "1", "125", "10", "0.1"]
    assert settings["bert-base", "supervised"] == ["256", "0.005", "10", "125", "12", ""]
    assert len(settings) == len(learned) == 8


def test_promptberts_and_conpvps_settings_are_listed():
    unsupervised, supervised = [["256", rate, "1"] for rate in ("1e-05", "3e-05", "1e-05")], ["512", "5e-05", "3"]
    assert [row[2:5] for row in cells("promptbert", "14")] == [*unsupervised, supervised, supervised]
    assert [row[2:4] for row in cells("conpvp", "2")] == [
        ["128", "3e-05"], ["128", "1e-05"], ["128", "1e-05"], ["256", "1e-05"],
    ]  # fmt: skip
    assert cells("promptbert", "13")[0][2] == (
        '`This sentence of "[X]" means [MASK].`, `This sentence : "[X]" means [MASK].`'
    )
    assert [len(row[1].split()) for row in cells("promptbert", "11")] == [36, 36]
    assert len(cells("conpvp", "1")) == 9 + 8


def test_the_command_prints_the_list_and_listings_without_data():
    lines = run("reproduce", "--list").stdout.splitlines()
    assert f"{'dcpcse':<11} {'4':<10} runs here: a listing of this project's constants" in lines
    assert run("reproduce", "dcpcse", "4").stdout.splitlines() == LISTINGS["dcpcse", "4"]()
    refused(run("reproduce", "dcpcse"), 2, "give PAPER and TABLE, or --list")
    refused(run("reproduce", "dcpcse", "1"), 2, "--data and --output")
    refused(run("reproduce", "nopaper", "1"), 3, "unknown paper 'nopaper'", "conpvp")
    refused(run("reproduce", "conpvp", "figure-2"), 3, "a drawing of the method")
