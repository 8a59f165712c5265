"""`scripts.runs`: it lists what runs and adaptations wrote, and damaged and unfinished ones as such."""

import json
import shutil
from datetime import timedelta
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES, WORDS
from typer.testing import CliRunner

import cse
from cse.adaptation.adapt import AdaptRequest, adapt
from cse.adaptation.candidates import Trial, left_out
from cse.adaptation.report import lines
from cse.commands.runs import app
from cse.training.listing import list_runs

DEV = [(float(i % 6), SENTENCES[i % 7], SENTENCES[(3 * i + 1) % 7]) for i in range(10)]


def runs(*words: object, code: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def made(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two finished runs, at two depths, one with dev pairs, and an unfinished one."""
    folder = tmp_path_factory.mktemp("runs")
    common = {"batch_size": 3, "eval_every": 1, "epochs": 2, "learning_rate": 0.01}
    common |= {"backbone": bert_folder, "progress": False}

    def kill(entry: dict) -> None:
        if entry["step"] == 3:
            raise KeyboardInterrupt

    cse.train("simcse", SENTENCES, output=folder / "deep" / "one", dev=DEV, **common)
    cse.train("dcpcse", SENTENCES, output=folder / "two", prefix=3, seed=7, **common)
    with pytest.raises(KeyboardInterrupt):
        cse.train("simcse", SENTENCES, output=folder / "three", dev=DEV, callbacks=kill, **common)
    (folder / "notes").mkdir()
    (folder / "notes" / "config.json").write_text('{"model_type": "bert"}')
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs"))


def test_runs_are_listed_with_what_they_recorded(folder):
    two, one, three = _by_name(folder)
    config = json.loads((folder / "deep" / "one" / "cse_checkpoint.json").read_text())
    log = [json.loads(line) for line in (folder / "deep" / "one" / "train_log.jsonl").read_text().splitlines()]
    assert {name: one[name] for name in ("start", "best", "best_step")} == config["dev"]
    assert one["last"] == log[-1]["dev"]
    assert one["gain"]
    assert one["gain"] == pytest.approx(config["dev"]["best"] - config["dev"]["start"], abs=1e-9)
    assert (one["state"], one["method"], one["data"], one["steps"]) == ("finished", "simcse", "texts in memory", 4)
    assert one["seconds"] == pytest.approx(sum(3 / entry["sentences_per_second"] for entry in log), abs=0.06)
    assert one["settings"].items() >= config["settings"].items()
    assert (two["state"], two["start"], two["gain"], two["steps"]) == ("finished", None, None, 4)
    assert two["settings"]["method.prefix"] == 3
    assert (three["state"], three["steps"], three["problem"]) == ("unfinished", 3, None)
    assert three["start"] == one["start"]
    assert three["settings"]["batch_size"] == 3


def _by_name(folder: Path) -> list[dict]:
    by_name = {run["name"]: run for run in json.loads(runs(folder, "--json")[0])}
    assert list(by_name) == ["deep/one", "three.partial", "two"]
    return [by_name[name] for name in ("two", "deep/one", "three.partial")]


def test_the_table_has_a_line_per_run(folder):
    lines = [line.split() for line in runs(folder)[0].splitlines()]
    two, one, _ = _by_name(folder)
    times = [str(timedelta(seconds=round(run["seconds"]))) for run in (one, two)]
    assert lines[0] == ["run", "state", "method", "data", "scored", "on", "start", "best", "gain", "steps", "time"]
    scores = [f"{one['start']:.2f}", f"{one['best']:.2f}", f"{one['gain']:+.2f}"]
    assert lines[1] == ["deep/one", "finished", "simcse", "texts", "in", "memory", "pairs", *scores, "4", times[0]]
    assert lines[3] == ["two", "finished", "dcpcse", "texts", "in", "memory", "-", "-", "-", "-", "4", times[1]]


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("two/config.json", b"{", "cannot read config.json, damaged"),
        ("two/model.safetensors", None, "lacks model.safetensors"),
        ("two/train_log.jsonl", b'{"step": 1, "loss": 0.5}\n{"step": 2, "lo', "line 2 is damaged"),
        ("three.partial/run.json", b'{"recipe": 5}', "holds no recipe"),
    ],
)
def test_a_damaged_run_is_listed_with_what_is_wrong(folder, file, content, problem):
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    name = file.partition("/")[0]
    shown, notes = runs(folder)
    (line,) = [line for line in shown.splitlines() if line.startswith(f"{name} ")]
    assert line.split()[1] == "damaged"
    assert len(shown.splitlines()) == 4
    (note,) = notes.splitlines()
    assert note.startswith(f"{name}: ")
    assert problem in note


def test_the_last_line_of_an_unfinished_run_may_be_cut_off(folder):
    log = folder / "three.partial" / "train_log.jsonl"
    log.write_bytes(log.read_bytes()[:-9])
    (run,) = [run for run in list_runs(folder) if run.name == "three.partial"]
    assert (run.state.value, run.steps) == ("unfinished", 2)


def test_two_runs_are_compared_by_what_differs_in_their_settings(folder):
    comparison = json.loads(runs(folder, "--compare", "deep/one", folder / "two", "--json")[0])
    assert [run["name"] for run in comparison["runs"]] == ["deep/one", str(folder / "two")]
    assert {"method.name": ["simcse", "dcpcse"], "seed": [42, 7], "dev_pairs": [10, 0]}.items() <= comparison[
        "differences"
    ].items()
    one, two = (run["settings"] for run in comparison["runs"])
    assert comparison["differences"].keys() == {name for name in {*one, *two} if one.get(name) != two.get(name)}
    shown = runs(folder, "--compare", "deep/one", "two")[0].splitlines()
    assert ["seed", "42", "7"] in [line.split() for line in shown]
    assert not any(line.startswith("batch_size") for line in shown)
    assert "no run in it" in runs(folder, "--compare", "two", "notes-not-there", code=3)[1]


def test_curves_are_drawn_where_they_are_asked_for(folder):
    assert f"wrote {folder / 'curves.png'}" in runs(folder, "--plot", folder / "curves.png")[1]
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_folders_and_files_are_refused(folder, tmp_path):
    assert "no such folder; give a folder of runs" in runs(tmp_path / "none", code=3)[1]
    (tmp_path / "empty").mkdir()
    assert json.loads(runs(tmp_path / "empty", "--json")[0]) == []


def test_an_adaptation_is_listed_with_both_axes_and_the_verdict_that_all_its_files_have(
    bert_folder, tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    topics = {"low": WORDS[4:14], "high": WORDS[24:40]}
    rows = [(name, [*rng.choice(topics[name], 5), *rng.choice(WORDS, 3)]) for name in [*topics] * 200]
    (tmp_path / "texts.tsv").write_text("".join(f"{name}\t{' '.join(words)}\n" for name, words in rows))
    monkeypatch.setattr(Trial, "training", lambda self: left_out("not tried"))
    output = tmp_path / "deep" / "labelled"
    adapt(AdaptRequest(str(tmp_path / "texts.tsv"), str(bert_folder), column="2", label="1"), output)
    report = json.loads((output / "report.json").read_text())
    (labelled,) = json.loads(runs(tmp_path, "--json")[0])
    assert (labelled["name"], labelled["state"], labelled["method"]) == ("deep/labelled", "finished", "adapt")
    same = ("verdict", "chosen", "grouping", "finding", "seconds", "data")
    assert {name: labelled[name] for name in same} == {name: report[name] for name in same}
    header, line = runs(tmp_path)[0].splitlines()
    assert header.split() == ["adaptation", "state", "data", "grouping", "finding", "time", "verdict"]
    axes = [f"{report[axis]['start']:.1f} -> {report[axis]['result']:.1f}" for axis in ("grouping", "finding")]
    assert all(scores in line for scores in axes)
    for text in (line, (output / "README.md").read_text(), unescape((output / "report.html").read_text())):
        assert report["verdict"] in text
    assert lines(report).count(report["verdict"]) == 1
