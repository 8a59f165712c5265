"""Training steps measured: every method and the peer in turn, on the same sentences."""

from pathlib import Path

import pytest
import torch
from conftest import SENTENCES

from cse.training.run import TrainRequest, prepare
from tests.bench.train import PEER, measure_training, peer_steps


@pytest.fixture
def texts(tmp_path: Path) -> str:
    (tmp_path / "texts.txt").write_text("\n".join(f"{one} {two}" for one in SENTENCES for two in SENTENCES))
    return str(tmp_path / "texts.txt")


def test_methods_and_the_peer_take_steps_in_turn(texts: str, bert_folder: Path) -> None:
    settings = {"batch_size": 4}
    requests = [TrainRequest(name, texts, str(bert_folder), settings=settings) for name in ("simcse", "dcpcse")]
    speed = measure_training(requests, against=PEER, rounds=2)
    assert list(speed.works) == ["simcse", "dcpcse", PEER]
    for work in speed.works.values():
        assert 0 < work["slowest"] <= work["rate"] <= work["fastest"]
    assert speed.works["simcse"]["share"] > 0
    assert list(speed.times_faster) == ["dcpcse", PEER]


def test_the_peer_learns_the_sentences(texts: str, bert_folder: Path) -> None:
    encoder, run = prepare(TrainRequest("simcse", texts, str(bert_folder), settings={"batch_size": 16}))
    torch.manual_seed(0)
    steps = peer_steps(encoder, run, "no")
    losses = [next(steps) for _ in range(12)]
    assert sum(losses[-3:]) < sum(losses[:3])
