"""Work beside that of a device: order and errors as without it, and copies to a GPU that wait for nothing."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from test_encoder import make

from cse.encoding import encoder as encoder_module
from cse.encoding.overlap import ahead, to_device


def test_items_come_in_order_each_made_while_the_one_before_is_used() -> None:
    made = [threading.Event() for _ in range(4)]

    def items() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    for number in ahead(items()):
        following = made[number + 1 : number + 2]
        assert all(event.wait(10) for event in following)
    assert list(ahead(range(5))) == list(range(5))
    assert list(ahead([])) == []


def test_an_error_comes_where_its_item_would() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no second one")

    coming = ahead(items())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="no second one"):
        next(coming)


def test_what_goes_to_a_gpu_is_copied_from_locked_memory_without_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: calls.append("locked") or tensor)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, device, **options: calls.append((device, options)) or tensor)
    values = np.arange(3)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert to_device(values, gpu).tolist() == to_device(values, cpu).tolist() == [0, 1, 2]
    assert calls == ["locked", (gpu, {"non_blocking": True}), (cpu, {})]


def test_a_long_list_is_tokenised_in_turn_on_a_cpu(bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, threads = make(str(bert_folder), "simcse"), []
    expected, tokenise = encoder.encode(SENTENCES * 3), encoder.tokenise

    def seen(*arguments: list) -> list[list[int]]:
        threads.append(threading.current_thread() is threading.main_thread())
        return tokenise(*arguments)

    monkeypatch.setattr(encoder, "tokenise", seen)
    monkeypatch.setattr(encoder_module, "WINDOW", 5)
    np.testing.assert_allclose(encoder.encode(SENTENCES * 3), expected, atol=1e-5)
    assert set(threads) == {True}
