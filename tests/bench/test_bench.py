"""Measurements of speed and memory: figures by hand, and every command on something small."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import torch
from app_models import GOOD, serving, write_model
from command_line import ran
from conftest import SENTENCES
from index_corpus import brute_force, overlap, vectors
from pretraining_runs import CONFIG, write_corpus
from transformers import AutoModelForMaskedLM

import cse
from cse.training.pretraining import prepare as prepare_pretraining
from cse.training.pretraining_data import PretrainRequest
from cse.training.pretraining_model import freeze_lowest
from cse.training.run import TrainRequest, prepare
from index import BuildSettings, VectorIndex
from tests.bench import app as app_load
from tests.bench import app_corpus, pretrain
from tests.bench import encode as encode_speed
from tests.bench.app import DEMO, call, measure
from tests.bench.app_corpus import Job
from tests.bench.app_mix import MIX, asked, bear, to_json
from tests.bench.flops import encoding_flops, training_flops
from tests.bench.index import measure as measure_index
from tests.bench.timing import Timing, interleaved, ratio
from tests.bench.train import peer_steps


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(f"{one} {two}" for one in SENTENCES for two in SENTENCES))
    return path


def bench(*words: object) -> dict[str, Any]:
    done = ran("bench", *words, "--json")
    return json.loads(done.stdout)


def test_works_are_timed_in_turn_after_a_first_run_of_each() -> None:
    clock, done = [0.0], []

    def work(name: str, took: list[float]) -> None:
        done.append(name)
        clock[0] += took.pop(0)

    slow, fast = [9.0, 4.0, 8.0, 6.0], [9.0, 2.0, 2.0, 2.0]
    timings = interleaved({"slow": lambda: work("slow", slow), "fast": lambda: work("fast", fast)}, 3, lambda: clock[0])
    assert done == ["slow", "fast"] * 4
    assert timings["slow"].seconds == (4.0, 8.0, 6.0)
    assert ratio(timings["fast"], timings["slow"]) == (3.0, 2.0, 4.0)
    figures = timings["slow"].figures(24)
    assert (figures["rate"], figures["slowest"], figures["fastest"]) == (4.0, 3.0, 6.0)


def test_flops_are_those_of_a_sum_by_hand(bert_folder: Path) -> None:
    model = AutoModelForMaskedLM.from_pretrained(bert_folder)
    width, layers, inner = 32, 2, 64
    weights = 4 * width * width + 2 * width * inner
    rows = sum(2 * layers * length * (weights + 2 * width * (length + 3)) for length in (10, 4))
    assert encoding_flops(model, [10, 4], prefix=3) == pytest.approx(rows)
    block = weights + 2 * 10 * width  # scores and weighted sum of ten tokens
    head = 0.15 * (width * width + model.config.vocab_size * width)
    assert training_flops(model, 10) == pytest.approx(6 * (layers * block + head))
    freeze_lowest(model, 1)  # which has no backward pass
    assert training_flops(model, 10) == pytest.approx(6 * (layers * block + head) - 4 * block)


def test_an_encoders_figures_are_of_the_tokens_with_specials(
    bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_speed, "matrix_rate", lambda device, dtype, clock: 1e9)
    encoder = cse.load(str(bert_folder), "prompt", backend="torch")
    speed = encode_speed.measure_encoding(encoder, SENTENCES, rounds=2)
    ids = encoder.tokenizer([f'This sentence : "{text}" means [MASK].' for text in SENTENCES])["input_ids"]
    assert speed.tokens == sum(map(len, ids))
    (work,) = speed.works.values()
    seconds = len(SENTENCES) / work["rate"]
    assert work["tokens"] == pytest.approx(speed.tokens / seconds)
    assert work["share"] == pytest.approx(encoding_flops(encoder.model, map(len, ids)) / seconds / 1e9)
    assert work["slowest"] <= work["rate"] <= work["fastest"]


def test_methods_and_the_peer_take_steps_in_turn_and_the_peer_learns(texts: Path, bert_folder: Path) -> None:
    methods = ("--method", "simcse", "--method", "dcpcse", "--batch-size", 4, "--rounds", 2)
    peer = ("--against", "sentence-transformers")
    speed = bench("train", "--data", texts, "--backbone", bert_folder, *methods, *peer)
    assert list(speed["works"]) == ["simcse", "dcpcse", "sentence-transformers"]
    for work in speed["works"].values():
        assert 0 < work["slowest"] <= work["rate"] <= work["fastest"]
    assert speed["works"]["simcse"]["share"] > 0
    assert list(speed["times_faster"]) == ["dcpcse", "sentence-transformers"]
    encoder, training = prepare(TrainRequest("simcse", str(texts), str(bert_folder), settings={"batch_size": 16}))
    torch.manual_seed(0)
    steps = peer_steps(encoder, training, "no")
    losses = [next(steps) for _ in range(12)]
    assert sum(losses[-3:]) < sum(losses[:3])


def test_the_rate_of_pretraining_is_that_of_all_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = []

    def two_seconds(works: dict, rounds: int) -> dict[str, Timing]:
        losses.append([work() for work in works.values()])
        return {name: Timing((2.0,) * rounds) for name in works}

    monkeypatch.setattr(pretrain, "interleaved", two_seconds)
    request = PretrainRequest([write_corpus(tmp_path)], tmp_path / "out", replace(CONFIG, tokens=192), precision="no")
    speed = pretrain.measure_pretraining(request, steps=3, rounds=2)
    assert speed["rate"] == speed["slowest"] == speed["fastest"] == 3 * 64 / 2
    assert losses[0][0] > 3 * 3  # three steps' losses: nats of a model that knows nothing of 90 word pieces
    model = prepare_pretraining(request).model
    flops = mean(training_flops(model, length) for length in (8, 16, 40))
    assert speed["share"] * speed["matrix_rate"] == pytest.approx(speed["rate"] * flops)


def test_encoding_and_steps_stand_beside_the_tokenizer(bert_folder: Path, texts: Path) -> None:
    words = ("--model", bert_folder, "--input", texts, "--batch-size", 16, "--rounds", 2)
    works = bench("host", *words, "--method", "promptbert", "--method", "consert")["works"]
    assert list(works) == ["tokenizer", "encode", "tokens of promptbert", "promptbert", "tokens of consert", "consert"]
    assert works["tokenizer"]["times"] == [1, 1, 1]
    assert all(work["microseconds"] > 0 for work in works.values())


def test_a_search_is_compared_with_faiss_alone() -> None:
    speed = bench("search", "--rows", 300, "--factory", "HNSW32,Flat", "--rounds", 2)
    assert (speed["factory"], speed["sentences"]) == ("HNSW32,Flat", 300)
    assert list(speed["works"]) == ["FAISS alone", "search", "hits with texts"]
    assert speed["works"]["FAISS alone"]["times"] == [1, 1, 1]


def test_the_recall_of_an_index_is_that_for_the_last_rows(tmp_path: Path) -> None:
    given = vectors(600)
    (speed,) = measure_index(given, "PQ8", None, rounds=3)
    index = VectorIndex.build([([""] * 400, given[:400])], tmp_path / "x", settings=BuildSettings(factory="PQ8"))
    expected = overlap(index.search(given[400:], 10)[1], brute_force(given[400:], given[:400], 10)[1])
    assert speed.recall == pytest.approx(expected)
    assert 0.5 < speed.recall < 1
    assert (speed.where, speed.rows, speed.dimension) == ("folder", 400, 32)
    assert 0 < speed.one <= speed.one_p95
    assert min(speed.build, speed.open, speed.together) > 0


def test_sentences_are_encoded_alone_and_into_an_index(bert_folder: Path, texts: Path) -> None:
    words = ("--model", bert_folder, "--input", texts, "--rows", 40, "--factory", "Flat", "--factory", "IVF2,Flat")
    speed = bench("index", *words, "--rounds", 1)
    assert speed["sentences"] == 40
    assert list(speed["works"]) == ["encoding alone", "encoding and Flat", "encoding and IVF2,Flat"]


def test_visitors_and_many_clients_of_a_small_app_are_answered_and_measured(
    tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_load, "POINTS", 120)
    monkeypatch.setattr(app_corpus, "WAIT", 0.1)
    monkeypatch.setattr(app_corpus, "MODEL", GOOD[0])
    with serving([str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]]) as address:
        url = address.rstrip("/")
        loads = measure(url, visitors=3, seconds=0.2)
        with pytest.raises(ValueError, match="/similarity answered"):
            call(url, "similarity", ["", "b", *DEMO])
        for kind in MIX:
            asked(url, kind, random.Random(kind), "everything")
        mixed = bear(url, clients=4, seconds=1.5, process=os.getpid())
        steps = Job(url, 70, os.getpid()).run()
    assert [load.what for load in loads] == ["one visitor", "3 visitors", "one visitor beside a map"]
    assert all(load.count >= least for load, least in zip(loads, (1, 3, 1), strict=True))
    assert all(0 < load.median <= load.p95 <= load.worst for load in loads)
    assert dict(mixed.errors) == {}
    assert {"map", "similarity", "search"} <= set(mixed.took)
    assert to_json(mixed)["calls"] == mixed.calls == sum(load.count for load in mixed.loads)
    assert all(size > 50 * 2**20 for _, size in mixed.memory)
    assert [step.what for step in steps][:2] == ["upload to first search", "first map"]
    assert all(step.seconds > 0 and step.memory_mb > 50 for step in steps)
