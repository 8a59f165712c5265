"""Trackers: they get the settings, then the values of each step, and are finished whatever happens."""

import pytest
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker
from conftest import SENTENCES
from typer.testing import CliRunner

import cse
from cse.commands.train import app
from cse.training.tracking import TRACKERS

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


def test_a_tracker_is_finished_when_the_run_fails(bert_folder, tmp_path):
    def fail(entry: dict) -> None:
        raise RuntimeError

    tracker = Kept()
    with pytest.raises(RuntimeError):
        cse.train("simcse", SENTENCES, output=tmp_path / "out", backbone=bert_folder, report_to=[tracker],
                  callbacks=fail, **OPTIONS)  # fmt: skip
    assert [event[0] for event in tracker.events] == ["start", "settings", 1, "finish"]


def test_a_named_tracker_is_that_of_accelerate(bert_folder, tmp_path, monkeypatch):
    made = []

    class Named(Kept):
        def __init__(self, project: str, name: str) -> None:
            super().__init__()
            made.append((project, name, self))

    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "trackio", Named)
    monkeypatch.setattr("cse.training.tracking.find_spec", lambda module: True)
    monkeypatch.setenv("TRACKIO_PROJECT", "tickets")
    cse.train("simcse", SENTENCES, output=tmp_path / "mine", backbone=bert_folder, report_to="trackio", **OPTIONS)
    ((project, name, tracker),) = made
    assert (project, name) == ("tickets", "mine")
    assert [event[0] for event in tracker.events] == ["start", "settings", 1, 2, 3, 4, "finish"]


def test_a_tracker_that_is_not_installed_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("cse.training.tracking.find_spec", lambda module: None)
    name = next(iter(TRACKERS))
    words = ["simcse", "--data", "missing.txt", "--output", str(tmp_path / "out"), "--report-to", name]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stderr) == (
        3,
        f"Error: --report-to is {name}, which is not installed; run pip install {name}\n",
    )
    assert not any(tmp_path.iterdir())
