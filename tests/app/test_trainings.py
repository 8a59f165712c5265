"""A visitor's training: a process of its own that a kill, a stop or another visitor does not break, within bounds."""

import os
import signal
import time
import zipfile

import numpy as np
import pytest
from conftest import SENTENCES, WORDS

import cse
from cse.app.training import training as module
from cse.app.training.archive import unpack_model
from cse.app.training.request import checked
from cse.app.training.rules import OWN
from cse.app.training.training import State
from cse.app.training.trainings import Trainings
from cse.runs.listing import read_run

ONE, TWO = "1" * 32, "2" * 32
TEXTS = [" ".join(np.random.default_rng(number).choice(WORDS[:30], 8)) for number in range(150)]
SETTINGS = {"batch_size": 8, "epochs": 2, "learning_rate": 1e-3, "seed": 3}
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


def test_a_killed_run_says_so_and_resumes_to_the_model_of_an_undisturbed_one(trainings, request_, tmp_path):
    training = trainings.begin(ONE, request_)
    until(lambda: training.progress.best or not training.running)  # a state is saved with it
    os.kill(training.process.pid, signal.SIGKILL)
    assert training.wait(PATIENCE)
    assert training.state is State.FAILED
    assert training.failure.startswith("The training process was killed (signal 9)")
    assert 0 < training.progress.step < training.progress.steps == request_.steps == 30
    trainings.resume(ONE)
    folder = finished(training)
    whole = tmp_path / "whole"
    settings = {**SETTINGS, "eval_every": 3}
    cse.train("simcse", TEXTS, output=whole, backbone=request_.start, dev="auto", progress=False, **settings)
    kept = [path.joinpath("model.safetensors").read_bytes() for path in (folder, whole)]
    assert kept[0] == kept[1]
    assert [value for _, value in training.progress.losses] == [entry["loss"] for entry in read_run(whole, "").log]
    assert training.progress.start == read_run(whole, "").dev["start"]
    (made,) = training.outcome.models
    assert made.name == "pets <b>"
    assert training.changes.compared == len(TEXTS)
    with zipfile.ZipFile(trainings.archive(ONE, made.name)) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"pets-b"}
    opened = unpack_model(trainings.archive(ONE, made.name), tmp_path / "unpacked", 10**8)
    np.testing.assert_array_equal(cse.load(str(opened)).encode(SENTENCES), cse.load(str(whole)).encode(SENTENCES))
    for path in ("whole", "unpacked"):
        __import__("shutil").rmtree(tmp_path / path)


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
