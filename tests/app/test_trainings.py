"""A visitor's training: a process of its own that a kill, a stop or another visitor does not break, within bounds."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress

import gradio as gr
import numpy as np
import psutil
import pytest
from app_models import AtOnce
from conftest import ROOT, SENTENCES, WORDS
from sentence_transformers import SentenceTransformer

import cse
from cse.app.drawing import html
from cse.app.state.app_state import open_state
from cse.app.train_tab.form import train_form
from cse.app.train_tab.view import training_html
from cse.app.training import training as module
from cse.app.training.archive import opened_by, unpack_model
from cse.app.training.process import environment
from cse.app.training.request import EVALUATIONS, TrainingRequest, checked
from cse.app.training.rules import CLOSED, GUESTS, OWN, Rules
from cse.app.training.training import State, size_of
from cse.app.training.trainings import Trainings
from cse.encoder.devices import BOUNDED, CAPACITY, bound_kernels
from cse.training.listing import read_run

ONE, TWO = "1" * 32, "2" * 32
TEXTS = [" ".join(np.random.default_rng(number).choice(WORDS[:30], 8)) for number in range(150)]
SETTINGS = {"batch_size": 8, "epochs": 1, "learning_rate": 1e-3, "seed": 3}
PATIENCE = 300  # seconds: the machine may be busy


@pytest.fixture
def trainings(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "POLL", 0.05)
    made = Trainings(OWN, tmp_path)
    yield made
    made.close()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def request_(bert_folder):
    return checked(
        OWN, TEXTS, None, name="pets <b>", method="simcse", corpus="Mine", start=str(bert_folder), minutes=5,
        settings=SETTINGS,
    )  # fmt: skip


def finished(training):
    assert training.wait(PATIENCE)
    assert training.state is State.FINISHED, (training.failure, training.lines)
    return training.folder / "model"


def until(condition):
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_the_untouched_form_asks_for_a_training() -> None:
    """What a page sends before its fields are shown, as after a reload, is their first values."""
    with gr.Blocks():
        form = train_form(open_state(["simcse"], ()), OWN)
    asked = checked(OWN, TEXTS, None, **form.values(*(field.value for field in form.fields)))
    assert (asked.name, asked.method, asked.start, asked.settings) == ("my adapt", "adapt", "bundled", {})


def test_a_killed_run_says_so_and_resumes_to_the_model_of_an_undisturbed_one(
    trainings, request_, tmp_path, monkeypatch
):
    """It goes on in this process; `tests/slow/test_train_page.py` has one that ends in its own."""
    training = trainings.begin(ONE, request_)
    until(lambda: training.progress.best or not training.running)  # a state is saved with it
    os.kill(training.process.pid, signal.SIGKILL)
    assert training.wait(PATIENCE)
    assert training.state is State.FAILED
    assert training.failure.startswith("The training process was killed (signal 9)")
    assert 0 < training.progress.step < training.progress.steps == request_.steps == 15
    monkeypatch.setattr(module, "CommandProcess", AtOnce)
    trainings.resume(ONE)
    folder = finished(training)
    assert training.process.words[-1] == "--resume"
    whole = tmp_path / "whole"
    settings = {**SETTINGS, "eval_every": 15 // EVALUATIONS}
    cse.train("simcse", TEXTS, output=whole, backbone=request_.start, dev="auto", progress=False, **settings)
    # Sums of floats may differ in their last digit between two processes.
    resumed, undisturbed = (cse.load(str(path)).encode(SENTENCES) for path in (folder, whole))
    np.testing.assert_allclose(resumed, undisturbed, atol=1e-4)
    losses = [entry["loss"] for entry in read_run(whole, "").log]
    assert [value for _, value in training.progress.losses] == pytest.approx(losses, abs=1e-3)
    assert training.progress.start == pytest.approx(read_run(whole, "").dev["start"])
    (made,) = training.outcome.models
    assert made.name == "pets <b>"
    assert training.changes.compared == len(TEXTS)
    with zipfile.ZipFile(trainings.archive(ONE, made.name)) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"pets-b"}
    opened = unpack_model(trainings.archive(ONE, made.name), tmp_path / "unpacked", 10**8)
    np.testing.assert_array_equal(cse.load(str(opened)).encode(SENTENCES), resumed)
    for path in ("whole", "unpacked"):
        shutil.rmtree(tmp_path / path)


class StoppedAtTheEnd(AtOnce):
    """Stands for a process that is stopped when it has published its result."""

    failure, stopped = "The training process was killed (signal 15)", False

    def ended(self, seconds: float) -> bool:
        return self.stopped

    def end(self, patience: float = 0) -> None:
        self.stopped = True


@pytest.mark.parametrize(("method", "settings"), [("dcpcse", {"batch_size": 8, "max_steps": 2}), ("adapt", {})])
def test_a_run_that_is_stopped_when_its_model_is_published_is_finished(
    trainings, bert_folder, method, settings, monkeypatch
):
    def process(words, folder):
        return (AtOnce if words[0] == "export" else StoppedAtTheEnd)(words, folder)

    monkeypatch.setattr(module, "CommandProcess", process)
    texts = [f"{text} {number}" for number, text in enumerate(TEXTS * 3)]
    asked = checked(OWN, texts, None, name="mine", method=method, start=str(bert_folder), minutes=5, settings=settings)
    training = trainings.begin(ONE, asked)
    trainings.stop(ONE)
    finished(training)
    assert not training.failure
    said = training_html(training)
    assert all(html.escape(part) in said for part in training.outcome.sentence.split(". ", 1))
    assert "Finished: " in said
    with zipfile.ZipFile(trainings.archive(ONE, training.outcome.models[0].name)) as archive:
        assert any(name.endswith("config.json") for name in archive.namelist())
    with pytest.raises(ValueError, match="This training is finished: its outcome is on this page"):
        trainings.resume(ONE)


def test_a_model_that_is_published_is_shown_even_if_it_cannot_be_exported(trainings, bert_folder, monkeypatch):
    def refused(words, folder):
        if words[0] == "export":
            raise OSError("no process can be started")
        return AtOnce(words, folder)

    monkeypatch.setattr(module, "CommandProcess", refused)
    settings = {"batch_size": 8, "max_steps": 2}
    asked = checked(OWN, TEXTS, None, name="mine", method="dcpcse", start=str(bert_folder), settings=settings)
    training = trainings.begin(ONE, asked)
    finished(training)
    assert training.failure == "no process can be started"
    assert "sentence-transformers cannot, as it lacks its backbone" in opened_by(training.outcome.models[0].folder)
    assert trainings.archive(ONE, "mine").is_file()


def test_a_run_stopped_in_its_grace_can_be_resumed(trainings, request_, monkeypatch):
    monkeypatch.setattr(module.Training, "begin", lambda training: None)
    training = trainings.begin(ONE, request_)
    for seconds, resumable in ((60 * 5 + module.GRACE, True), (60 * 5 + module.GRACE + 1, False)):
        training.seconds = seconds
        assert training.resumable == resumable


SERVER = """
import sys
from pathlib import Path
from cse.app.training.process import CommandProcess

print(CommandProcess(sys.argv[2:], Path(sys.argv[1])).pid, flush=True)
sys.stdin.read()
"""


def test_a_training_ends_with_a_server_that_is_killed(request_, tmp_path):
    (tmp_path / "temporary").mkdir()
    request_.write_texts(tmp_path)
    words = [*request_.words(), "--epochs", "1000"]
    command = [sys.executable, "-c", SERVER, str(tmp_path), *words]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        training = psutil.Process(int(server.stdout.readline()))
        until((tmp_path / "model.partial" / "train_log.jsonl").exists)
        assert is_running(training)
        server.kill()
    until(lambda: not is_running(training))


def is_running(process):
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE  # which a container's first process may not collect
    return False


def test_a_folder_that_vanishes_while_it_is_measured_counts_nothing(tmp_path, monkeypatch):
    for name in ("kept", "gone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(bytes(7))
    scandir = os.scandir

    def vanishing(path):
        if str(path).endswith("gone"):
            shutil.rmtree(tmp_path / "gone")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert size_of(tmp_path) == 7


@pytest.mark.parametrize(("method", "trusted"), [("promptbert", {}), ("dcpcse", {"trust_remote_code": True})])
def test_the_zip_of_a_training_opens_in_sentence_transformers_as_the_page_says(
    trainings, bert_folder, tmp_path, method, trusted, monkeypatch
):
    monkeypatch.setattr(module, "CommandProcess", AtOnce)
    asked = checked(
        OWN, TEXTS, None, name="mine", method=method, start=str(bert_folder), minutes=5,
        settings={"batch_size": 8, "max_steps": 2},
    )  # fmt: skip
    training = trainings.begin(ONE, asked)
    folder, unpacked = finished(training), tmp_path / "unpacked"
    said = opened_by(folder)
    assert ('SentenceTransformer("FOLDER", trust_remote_code=True)' in said) == bool(trusted)
    assert html.escape(said) in training_html(training)
    with zipfile.ZipFile(trainings.archive(ONE, "mine")) as archive:
        archive.extractall(unpacked)
    opened = SentenceTransformer(str(unpacked / "mine"), device="cpu", **trusted)
    np.testing.assert_allclose(opened.encode(SENTENCES), cse.load(str(folder)).encode(SENTENCES), atol=1e-5)
    shutil.rmtree(unpacked)


def test_one_run_at_a_time_which_its_visitor_stops_and_nobody_else_finds(trainings, request_):
    training = trainings.begin(ONE, request_)
    for key in (ONE, TWO):
        with pytest.raises(ValueError, match="this server runs one at a time"):
            trainings.begin(key, request_)
    assert trainings.newest(TWO) is None
    with pytest.raises(ValueError, match="no training of yours"):
        trainings.resume(TWO)
    trainings.stop(TWO)
    assert not training.wait(0.2)
    trainings.stop(ONE)
    assert training.wait(PATIENCE)
    assert training.state is State.STOPPED
    assert training.resumable
    assert not training.failure


def begun_at_once(training):
    """Stands for a process that has ended already, so that bounds are tested without any."""
    training.state = State.FINISHED


def test_the_oldest_run_goes_beyond_the_bounds_and_all_go_after_their_time(request_, tmp_path, monkeypatch):
    monkeypatch.setattr(module.Training, "begin", begun_at_once)
    now = [0.0]
    kept = Trainings(Rules(allowed=True, runs=2, all_runs=3, kept=10.0), tmp_path, clock=lambda: now[0])
    first, second, third = (kept.begin(ONE, request_) for _ in range(3))
    assert kept.of(ONE) == [third, second]
    now[0] = 6.0
    other = kept.begin(TWO, request_)
    kept.newest(ONE)
    newest = kept.begin("3" * 32, request_)  # the second is the least recently used, by the order of both
    assert [each.folder.exists() for each in (first, second, third, other, newest)].count(True) == 3
    now[0] = 15.0
    kept.newest(ONE)
    now[0] = 17.0
    assert kept.of(TWO) == []
    assert [each.folder.exists() for each in (third, other, newest)] == [True, False, False]
    kept.close()
    assert not third.folder.exists()


@pytest.mark.parametrize(
    ("rules", "texts", "given", "reason"),
    [
        (CLOSED, TEXTS, {}, r"with the option --train \(or CSE_TRAIN=1"),
        (GUESTS, TEXTS * 34, {}, "5,100 texts; this server trains on at most 5,000"),
        (OWN, TEXTS[:1], {}, "only 1 text in it; training needs at least 2"),
        (OWN, ["the same words here"] * 60, {}, "all its texts are the same"),
        (OWN, TEXTS, {"method": "bert"}, "choose adapt or simcse"),
        (OWN, TEXTS, {"name": "x" * 41}, "41 characters; give at most 40"),
        (GUESTS, TEXTS, {"minutes": 16}, "a number from 1 to 15"),
        (OWN, TEXTS, {"method": "simcse", "settings": {"batch_size": 1e6}}, "batch_size must be a whole number from 2"),
        (OWN, TEXTS, {"settings": {"chunk": 1}}, "The setting is unknown"),
        (OWN, TEXTS, {"settings": {"temperature": float("nan")}}, "temperature must be a number"),
    ],
)
def test_what_a_server_does_not_take_is_refused_before_anything_is_written(rules, texts, given, reason):
    with pytest.raises(ValueError, match=reason) as error:
        checked(rules, texts, None, corpus="Mine", **given)
    assert "\n" not in str(error.value)


def test_labels_judge_a_training_only_if_they_repeat_and_differ(bert_folder):
    topics = [f"topic {number % 3}" for number in range(150)]
    words = checked(OWN, TEXTS, topics).words()
    assert words[words.index("--label") + 1] == "label"
    for useless in (None, ["one"] * 150, [str(number) for number in range(150)], [""] * 150):
        assert checked(OWN, TEXTS, useless).labels is None


def test_a_full_disk_is_told_in_a_line_and_leaves_nothing(trainings, request_, monkeypatch):
    def full(self, folder):
        (folder / "texts.csv").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TrainingRequest, "write_texts", full)
    with pytest.raises(OSError, match=r"The texts: cannot be written \(.*No space left on device\); free some space"):
        trainings.begin(ONE, request_)
    assert trainings.newest(ONE) is None
    assert list(trainings._place._folder.iterdir()) == []


@pytest.mark.parametrize("given", [None, "7", "64"])
def test_a_training_has_onednns_own_limit_of_kernels_unless_the_user_gave_one(monkeypatch, tmp_path, given) -> None:
    monkeypatch.delenv(BOUNDED, raising=False)
    monkeypatch.delenv(CAPACITY, raising=False)
    if given:
        monkeypatch.setenv(CAPACITY, given)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    bound_kernels()
    assert os.environ[CAPACITY] == (given or "64")
    assert environment(tmp_path).get(CAPACITY) == given
    assert BOUNDED not in environment(tmp_path)
