"""A visitor's training: a process of its own that a kill, a stop or another visitor does not break, within bounds."""

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import psutil
import pytest
from app_models import AtOnce
from conftest import ROOT, SENTENCES, WORDS
from sentence_transformers import SentenceTransformer

import cse
from cse.app.training import training as module
from cse.app.training.request import CLOSED, GUESTS, OWN, checked
from cse.app.training.training import State, how_to_open
from cse.app.training.trainings import Trainings, unpack_model

ONE, TWO = "1" * 32, "2" * 32
TEXTS = [" ".join(np.random.default_rng(number).choice(WORDS[:30], 8)) for number in range(150)]
MANY = [f"{text} {number}" for number, text in enumerate(TEXTS * 3)]
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
    return checked(OWN, MANY, None, name="pets <b>", method="simcse", corpus="Mine", start=str(bert_folder), minutes=5)


@pytest.fixture
def adaptation(bert_folder):
    return checked(OWN, MANY, None, name="mine", start=str(bert_folder), minutes=5)


def finished(training):
    assert training.wait(PATIENCE)
    assert training.state is State.FINISHED, (training.failure, training.lines)
    return training.folder / "model"


def until(condition):
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_an_adaptation_says_what_training_takes_and_stop_keeps_the_first_answer(trainings, adaptation):
    """Real processes: one that Ctrl-C ends, and, if that came too late for it, one that publishes what is there."""
    training = trainings.begin(ONE, adaptation)
    until(lambda: training.asks or not training.running)
    assert "and may add about 2 points" in training.asks, (training.failure, training.lines)
    assert training.progress.answered
    trainings.stop(ONE)
    assert not training.asks
    folder = finished(training)
    assert (folder / "report.json").is_file()
    report = training.outcome.report
    assert report["verdict"] == training.outcome.sentence
    assert report["finding"]["start"] == report["stages"]["start"]["scores"]["recall@1"]
    assert training.failure == ""


def test_an_adaptation_that_is_killed_after_its_first_answer_keeps_it_and_says_so(trainings, adaptation):
    training = trainings.begin(ONE, adaptation)
    until(lambda: training.asks or not training.running)
    os.kill(training.process.pid, signal.SIGKILL)
    finished(training)
    assert training.failure == "The training process was killed (signal 9); the machine may lack memory."
    assert "left_out" in training.outcome.report["stages"]["training"]


def test_a_run_that_is_stopped_before_its_first_answer_has_no_model(trainings, request_):
    training = trainings.begin(ONE, request_)
    for key in (ONE, TWO):
        with pytest.raises(ValueError, match="this server runs one at a time"):
            trainings.begin(key, request_)
    assert trainings.newest(TWO) is None
    trainings.stop(TWO)
    assert not training.wait(0.2)
    trainings.stop(ONE)
    assert training.wait(PATIENCE)
    assert (training.state, training.failure, training.outcome) == (State.STOPPED, "", None)
    assert trainings.models(ONE) == []


def short(words):
    """The words of a training that takes two steps."""
    return [*words, "--max-steps", "2", "--batch-size", "8"] if words[0] == "train" else words


SERVER = """
import sys
from pathlib import Path
from cse.app.training.training import CommandProcess

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


@pytest.mark.parametrize(("method", "whole"), [("promptbert", True), ("dcpcse", False)])
def test_the_zip_of_a_training_opens_as_the_page_says(trainings, bert_folder, tmp_path, method, whole, monkeypatch):
    monkeypatch.setattr(module, "CommandProcess", lambda words, folder: AtOnce(short(words), folder))
    asked = checked(OWN, TEXTS, None, name="mine", method=method, start=str(bert_folder), minutes=5)
    folder, unpacked = finished(trainings.begin(ONE, asked)), tmp_path / "unpacked"
    said = how_to_open(folder)
    assert ("sentence-transformers cannot, as it lacks its backbone" in said) == (not whole)
    with zipfile.ZipFile(trainings.archive(ONE, "mine")) as archive:
        archive.extractall(unpacked)
    vectors = cse.load(str(folder)).encode(SENTENCES)
    np.testing.assert_allclose(cse.load(str(unpacked / "mine")).encode(SENTENCES), vectors, atol=1e-5)
    if whole:
        opened = SentenceTransformer(str(unpacked / "mine"), device="cpu")
        np.testing.assert_allclose(opened.encode(SENTENCES), vectors, atol=1e-5)
    with pytest.raises(ValueError, match="no such model of yours"):
        trainings.archive(TWO, "mine")
    second = finished(trainings.begin(ONE, replace(asked, name="mi,ne")))  # an address parts names by commas
    assert [(made.name, made.folder) for made, _ in trainings.models(ONE)] == [("mine 2", second), ("mine", folder)]
    shutil.rmtree(unpacked)
    own = unpack_model(trainings.archive(ONE, "mine"), tmp_path / "own", 10**8)
    np.testing.assert_allclose(cse.load(str(own)).encode(SENTENCES), vectors, atol=1e-5)
    shutil.rmtree(tmp_path / "own")


@pytest.mark.parametrize(
    ("rules", "texts", "given", "reason"),
    [
        (CLOSED, TEXTS, {}, r"with the option --train \(or CSE_TRAIN=1"),
        (GUESTS, TEXTS * 34, {}, "5,100 texts; this server trains on at most 5,000"),
        (OWN, ["the same words here"] * 60, {}, "all its texts are the same"),
        (OWN, TEXTS, {"method": "bert"}, "choose adapt or simcse"),
        (OWN, TEXTS, {}, "Mine: only 150 different texts in it; an adaptation needs at least 320"),
        (OWN, MANY, {"purpose": "groups"}, "Grouping is measured by labels"),
        (GUESTS, MANY, {"minutes": 16}, "a number from 1 to 15"),
    ],
)
def test_what_a_server_does_not_take_is_refused_before_anything_is_written(rules, texts, given, reason):
    with pytest.raises(ValueError, match=reason) as error:
        checked(rules, texts, None, corpus="Mine", **given)
    assert "\n" not in str(error.value)


def test_the_command_of_a_request_has_what_was_asked():
    topics = [f"topic {number % 3}" for number in range(450)]
    named = checked(OWN, MANY, topics, saved=("pets.csv", "Body", "Kind of pet"))
    assert named.command.partition("adapt ")[2] == (
        "pets.csv --backbone bundled --column Body --output my-model --label 'Kind of pet' --minutes 240"
    )
