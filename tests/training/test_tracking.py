"""Trackers: they get the settings, then the values of each step, and are finished whatever happens."""

import json
import sys

import pytest
from accelerate.tracking import GeneralTracker
from conftest import SENTENCES
from typer.testing import CliRunner

import cse
from cse.commands.train import app
from cse.training.tracking import TRACKERS, check_trackers

DEV = [(float(i % 6), SENTENCES[i % 7], SENTENCES[(3 * i + 1) % 7]) for i in range(10)]
OPTIONS = {"progress": False, "batch_size": 3, "eval_every": 2, "epochs": 2}


class Kept(GeneralTracker):
    """A tracker that keeps what it gets."""

    name, requires_logging_directory = "kept", False

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple] = []

    @property
    def tracker(self) -> list[tuple]:
        return self.events

    def start(self) -> None:
        self.events.append(("start",))

    def store_init_configuration(self, values: dict) -> None:
        self.events.append(("settings", values))

    def log(self, values: dict, step: int | None = None, **options: object) -> None:
        self.events.append((step, values))

    def finish(self) -> None:
        self.events.append(("finish",))


# A stand-in for the package trackio, with the three calls that accelerate makes.
STAND_IN = """
import json
class Run:
    def __init__(self, **options): self.file = open({file!r}, "a"); self.write("init", options)
    def write(self, *values): self.file.write(json.dumps(values) + "\\n")
    def log(self, values, step): self.write(step, values)
    def finish(self): self.write("finish"); self.file.close()
class Config:
    def update(self, values, **options): run.write("settings", values)
def init(**options):
    global run
    run = Run(**options)
    return run
config = Config()
"""


def test_a_tracker_gets_the_settings_and_the_values_of_each_step(bert_folder, tmp_path):
    tracker, entries = Kept(), []
    cse.train(
        "dcpcse", SENTENCES, output=tmp_path / "out", backbone=bert_folder, dev=DEV, prefix=3, report_to=tracker,
        callbacks=entries.append, **OPTIONS,
    )  # fmt: skip
    (start, (_, settings), *steps, finish) = tracker.events
    assert (start, finish) == (("start",), ("finish",))
    assert settings.items() >= {"method": "dcpcse", "prefix": 3, "examples": 7, "batch_size": 3}.items()
    assert all(type(value) in (bool, int, float, str) for value in settings.values())
    names = ("loss", "learning_rate", "sentences_per_second", "dev", "best")
    assert steps == [
        (entry["step"], {name: entry[name] for name in names if entry.get(name) is not None}) for entry in entries
    ]
    assert [sorted(values.keys() & {"dev", "best"}) for _, values in steps] == [
        [],
        ["best", "dev"],
        ["best"],
        ["best", "dev"],
    ]


def test_a_tracker_is_finished_when_the_run_fails(bert_folder, tmp_path):
    def fail(entry: dict) -> None:
        raise RuntimeError

    tracker = Kept()
    with pytest.raises(RuntimeError):
        cse.train("simcse", SENTENCES, output=tmp_path / "out", backbone=bert_folder, report_to=[tracker],
                  callbacks=fail, **OPTIONS)  # fmt: skip
    assert [event[0] for event in tracker.events] == ["start", "settings", 1, "finish"]


def test_a_named_tracker_is_that_of_accelerate(bert_folder, tmp_path, monkeypatch):
    file = tmp_path / "tracked.jsonl"
    (tmp_path / "trackio.py").write_text(STAND_IN.format(file=str(file)))
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TRACKIO_PROJECT", "tickets")
    words = ["simcse", "--data", tmp_path / "text.txt", "--output", tmp_path / "mine", "--backbone", bert_folder]
    done = CliRunner().invoke(app, [*map(str, words), "--max-steps", "1", "--report-to", "trackio"])
    sys.modules.pop("trackio")
    assert done.exit_code == 0, done.output
    (init, (_, settings), step, finish) = map(json.loads, file.read_text().splitlines())
    assert init == ["init", {"project": "tickets", "name": "mine"}]
    assert (settings["method"], settings["data"]) == ("simcse", "text.txt")
    assert (step[0], sorted(step[1]), finish) == (1, ["learning_rate", "loss", "sentences_per_second"], ["finish"])


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_that_is_not_installed_says_what_to_install(bert_folder, tmp_path, monkeypatch, name):
    monkeypatch.setattr("cse.training.tracking.find_spec", lambda module: None)
    with pytest.raises(ValueError, match=f"^`report_to` is {name}, which is not installed; run pip install {name}$"):
        cse.train("simcse", ["not", "read"], output=tmp_path / "out", report_to=name)
    words = ["simcse", "--data", "missing.txt", "--output", str(tmp_path / "out"), "--report-to", name]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stderr) == (
        3,
        f"Error: --report-to is {name}, which is not installed; run pip install {name}\n",
    )
    assert not any(tmp_path.iterdir())


def test_what_is_no_tracker_is_refused_and_a_failing_one_is_one_line(bert_folder, tmp_path):
    for wrong in ("mlflow", 5):
        with pytest.raises(ValueError, match=f"`report_to` is {wrong!r}; .*tensorboard, wandb, trackio"):
            check_trackers([wrong])

    class Failing(Kept):
        def start(self) -> None:
            raise RuntimeError("not logged in\nsecond line")

    first = Kept()
    with pytest.raises(ValueError, match=r"`report_to` kept: cannot be started \(not logged in\)$"):
        cse.train(
            "simcse", SENTENCES, output=tmp_path / "out", backbone=bert_folder, report_to=[first, Failing()], **OPTIONS
        )
    assert not any(tmp_path.iterdir())
    assert first.events[-1] == ("finish",)
