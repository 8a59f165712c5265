"""Pretraining steps measured: the rate is the tokens of the steps in the time they take, and no model is written."""

from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from pretraining_runs import CONFIG, write_corpus

from cse.training.pretraining import prepare, start_training
from cse.training.pretraining_data import PretrainRequest
from tests.bench import pretrain as pretrain_speed
from tests.bench.flops import training_flops
from tests.bench.timing import Timing


def test_the_rate_is_that_of_all_tokens_and_nothing_but_text_is_written(tmp_path: Path, monkeypatch) -> None:
    losses = []

    def two_seconds(works, rounds):
        losses.append([work() for work in works.values()])
        return {name: Timing((2.0,) * rounds) for name in works}

    monkeypatch.setattr(pretrain_speed, "interleaved", two_seconds)
    request = PretrainRequest([write_corpus(tmp_path)], tmp_path / "out", replace(CONFIG, tokens=192), precision="no")
    speed = pretrain_speed.measure_pretraining(request, steps=3, rounds=2)
    assert speed["rate"] == 3 * 64 / 2
    assert speed["slowest"] == speed["fastest"] == 96
    assert losses[0][0] > 3 * 3  # three steps' losses: nats of a model that knows nothing of 90 word pieces
    assert not (tmp_path / "out" / "model").exists()
    model = start_training(request, prepare(request)).model
    flops = mean(training_flops(model, length) for length in (8, 16, 40))
    assert speed["share"] * speed["matrix_rate"] == pytest.approx(speed["rate"] * flops)
