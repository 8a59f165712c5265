"""Turns at an encoder: who waits together is encoded together, and hears what he would have heard alone."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from app_models import GOOD, write_model

from cse.app.models.models import Models, Turns

TEXTS = (["a", "bb"], ["ccc"], ["dddd", "a"])


class Counting:
    """Stands for an encoder: a text's vector is its length; texts with "!" cannot be encoded."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.batches.append(list(texts))
        if any("!" in text for text in texts):
            raise IndexError(f"no vector of {texts}")
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def waiting_together(texts: Sequence[list[str]], encoder: Counting) -> list[object]:
    """The answers to several requests that were made while another one held the encoder."""
    turns, heard = Turns(), [None] * len(texts)
    known = threading.Barrier(len(texts) + 1, timeout=30)

    class Announced(list):
        """Tells that a turn has begun to wait: its texts are read when it asks."""

        def __iter__(self):
            known.wait()
            return super().__iter__()

    def ask(place: int) -> None:
        with turns.turn(Announced(texts[place])) as asked:
            try:
                heard[place] = turns.vectors(encoder, asked)[:, 0].tolist()
            except IndexError as error:
                heard[place] = error

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(texts))]
    with turns.turn():
        for thread in threads:
            thread.start()
        known.wait()
        while len(turns._waiting) < len(texts) + 1:
            threading.Event().wait(0.001)
    for thread in threads:
        thread.join(30)
    assert turns._waiting == []
    return heard


def test_texts_that_wait_for_an_encoder_are_one_batch() -> None:
    encoder = Counting()
    assert waiting_together(TEXTS, encoder) == [[1, 2], [3], [4, 1]]
    assert len(encoder.batches) == 1
    assert sorted(encoder.batches[0]) == sorted(text for texts in TEXTS for text in texts)


def test_a_text_that_cannot_be_encoded_is_its_own_visitors_concern() -> None:
    encoder = Counting()
    first, second, third = waiting_together([["a"], ["b!"], ["cc"]], encoder)
    assert (first, third) == ([1], [2])
    with pytest.raises(IndexError, match=r"no vector of \['b!'\]"):
        raise second  # type: ignore[misc]


def test_a_turn_within_a_turn_of_the_same_visitor_does_not_wait_for_ever() -> None:
    encoder, turns = Counting(), Turns()
    with turns.turn(), turns.turn(["a"]) as inner:
        assert turns.vectors(encoder, inner).tolist() == [[1]]
    assert encoder.batches == [["a"]]


def test_a_model_answers_one_at_a_time_and_another_model_meanwhile(tmp_path, bert_folder):
    """The first holds `simcse` until the second has its answer from `promptbert`."""
    models = Models([str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]])
    inside, answered, order = threading.Event(), threading.Event(), []

    def hold(column, encoder):
        inside.set()
        assert answered.wait(30)
        order.append("first")

    holding = threading.Thread(target=models.apply, args=(hold, models.columns[:1]))
    holding.start()
    assert inside.wait(30)
    waiting = threading.Thread(target=models.apply, args=(lambda *_: order.append("second"), models.columns[:1]))
    waiting.start()
    assert models.apply(lambda column, encoder: encoder.dim, models.columns[1:]) == {"promptbert": 32}
    assert order == []
    answered.set()
    for thread in (holding, waiting):
        thread.join(30)
    assert order == ["first", "second"]
