"""The commands of a reproduction, where their artefacts lie, and which of them are not run again."""

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import ran, refused, run
from conftest import SENTENCES

import cse
from cse.evaluation.reproduction import LISTINGS, WORD_SENTENCES, Plan, obtained, rows
from cse.evaluation.sts import SETS


def test_names_stay_so_that_earlier_runs_are_gone_on_with():
    plan = Plan(Path("/d"), Path("/o"), "w.txt", "n.csv", "bundled", (1,), "--max-steps 1")
    trained, untrained = rows("promptbert", "8")[0], rows("promptbert", "5")[0]
    assert plan.checkpoint(trained, 1) == Path("/o/checkpoints/bundled-promptbert-same-1-1155ce68")
    assert plan.results(trained, 1) == Path("/o/results/sts-bundled-promptbert-same-1-1155ce68-final-period.json")
    assert plan.results(untrained, None) == Path("/o/results/sts-bundled-4c4164b5-mean.json")
    assert plan.template_scores == Path("/o/results/templates-bundled-bf7ab265.json")


def test_transfer_is_scored_as_the_papers_did():
    plan = Plan(Path("/d"), Path("/o"), "a.txt", "n.csv", "bundled", (1,), "")
    options = {row.name: " ".join(plan.commands(row)[-1]) for row in (*rows("promptbert", "15"), *rows("conpvp", "5"))}
    assert all("--classifier senteval" in command for command in options.values())
    assert {name for name, command in options.items() if "--final-period" in command} == {
        name for name in options if name.startswith("Prompt")
    }
    assert {name for name, command in options.items() if "--bare" in command} == {
        name for name in options if name.endswith("supervised")
    }


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
    assert ledger["versions"].keys() >= {"torch", "transformers"}
    stamps = {path: path.stat().st_mtime_ns for path in (output / "checkpoints").glob("*/model.safetensors")}
    assert len(stamps) == 2
    assert [words[0] for words in in_process] == ["train"] * 2 + ["evaluate"] * 2
    again = run("reproduce", *options, "--json")
    assert json.loads(again.stdout) == [entry]
    assert "train" not in [words[0] for words in in_process[4:]]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    other = [*options[: options.index("--only") + 1], "uncased, different templates", *options[-2:], "--seed", 1]
    assert run("reproduce", *other).exit_code == 0
    names = [row["row"] for row in json.loads((output / "promptbert-8.json").read_text())["rows"]]
    assert names[0] == "bert-base-uncased, same template"  # what was done before stays in the ledger
    assert len(names) == 3
    planned = json.loads(run("reproduce", *options, "--dry-run", "--json").stdout)
    assert [row["commands"] for row in planned] == [run("reproduce", *options, "--dry-run").stdout.splitlines()]


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


@pytest.mark.usefixtures("in_process")
def test_a_figure_has_no_number(bert_folder, sts, tmp_path):
    options = ("--data", sts.parent, "--output", tmp_path / "out", "--backbone", bert_folder, "--only", "cls")
    ran("reproduce", "conpvp", "figure-5", *options)
    (drawn,) = json.loads((tmp_path / "out" / "conpvp-figure-5.json").read_text())["rows"]
    assert (drawn["note"], drawn["published_on"]) == ("no number to compare: it is a picture", "bert-base-uncased")
    pictures = [path for path in (tmp_path / "out" / "figures").rglob("*.png")]
    assert {"pairs.png", "removal.png", "similarity.png"} < {path.name for path in pictures}


ROW = next(row for row in rows("promptbert", "5") if row.key.endswith(" mean"))


@pytest.fixture
def plan(bert_folder: Path, tmp_path: Path) -> Plan:
    return Plan(tmp_path, tmp_path / "out", None, None, str(bert_folder), (42,), "")


def write_results(path: Path, *records: tuple[str, str, float]) -> None:
    """A results file with records of (model, fingerprint, the score of every task), in this order."""
    models = {
        f"{model} {fingerprint}": {
            "model": model, "fingerprint": fingerprint, "scores": {name: {"spearman": score} for name in SETS},
        }
        for model, fingerprint, score in records
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"task": "sts", "protocol": {"data": "0"}, "command": "", "models": models}))


def test_the_last_record_of_a_model_counts(plan):
    own = str(plan.backbone)
    records = [(own, "1" * 12, 50.0), (own, "2" * 12, 60.0), ("other/bert", "3" * 12, 0.0)]
    write_results(plan.results(ROW, None), *records)
    assert obtained(ROW, plan, None) == 60.0


def test_a_file_without_the_models_record_is_refused(plan):
    path = plan.results(ROW, None)
    write_results(path, ("earlier/bert", "1" * 12, 50.0))
    with pytest.raises(ValueError, match=r"\.json: no record of .*bert; delete it and run"):
        obtained(ROW, plan, None)


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
    assert f"{'conpvp':<11} {'figure-2':<10} a drawing of the method, without numbers" in lines
    assert run("reproduce", "dcpcse", "4").stdout.splitlines() == LISTINGS["dcpcse", "4"]()
    assert json.loads(run("reproduce", "--list", "--json").stdout) == lines
    assert json.loads(run("reproduce", "dcpcse", "4", "--json").stdout) == LISTINGS["dcpcse", "4"]()
    refused(run("reproduce", "dcpcse"), 2, "give PAPER and TABLE, or --list")
    refused(run("reproduce", "dcpcse", "1"), 2, "--data and --output")
    refused(run("reproduce", "dcpcse", "99"), 3, "no table '99'; choose from 1, 2, 3, 4, figure-1, figure-2")
    refused(run("reproduce", "nopaper", "1"), 3, "unknown paper 'nopaper'", "conpvp")
    refused(run("reproduce", "conpvp", "figure-2"), 3, "a drawing of the method")


def test_table_7_has_the_words_of_its_sentences_before_and_after_denoising(bert_folder):
    lines = run("reproduce", "promptbert", "7", "--backbone", bert_folder).stdout.splitlines()
    encoder = cse.load(str(bert_folder), "prompt")
    assert len(lines) == 2 + 4
    for line, sentence in zip(lines[2:], WORD_SENTENCES, strict=True):
        words = [" ".join(token for token, _ in encoder.top_tokens(sentence, 5, denoise)) for denoise in (False, True)]
        assert line == f"| {sentence} | {words[0]} | {words[1]} |"
    planned = run("reproduce", "promptbert", "7", "--backbone", bert_folder, "--dry-run").stdout.splitlines()
    assert planned[0].endswith(f"--model {bert_folder} --pooling prompt 'i am sad.' --no-denoise")
    refused(run("reproduce", "promptbert", "7", "--backbone", "promptbert"), 4, "promptbert is a trained checkpoint")
