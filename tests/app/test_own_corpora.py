"""Visitors' texts: kept for a time and within bounds, encoded in turns, gone when asked."""

import threading

import numpy as np
import pytest

from cse.app.corpus.own import (
    BLOCK,
    FAILED,
    FULL,
    KEPT,
    UNDO,
    OwnCorpora,
    OwnCorpus,
)
from cse.app.models.models import Column
from cse.app.models.recent import Bounds

ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32
FIRST, SECOND = Column("first", "first"), Column("second", "second")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Models:
    """Two models; one waits for a permit before each block."""

    def __init__(self, *, held: bool = False) -> None:
        self.order: list[tuple[str, str]] = []
        self.permits, self.held = threading.Semaphore(0), held

    def apply(self, function, columns):
        if self.held:
            assert self.permits.acquire(timeout=60)
        (column,) = columns
        return {column.name: function(column, Encoder(self, column.name))}


class Encoder:
    fingerprint = "f"

    def __init__(self, models: Models, name: str) -> None:
        self.models, self.name = models, name

    def encode_document(self, texts):
        self.models.order.append((texts[0], self.name))
        return np.full((len(texts), 4), len(texts), np.float32)


def done(kept: OwnCorpora, *keys: str) -> None:
    """Wait until nothing is encoded."""
    for _ in range(6000):
        with kept._lock:
            if not kept._encoding:
                return
        threading.Event().wait(0.01)
    pytest.fail(f"{keys} are still encoded")


def own(name: str, count: int = 2) -> OwnCorpus:
    return OwnCorpus(name, [name] * count)


def labels(kept: OwnCorpora, *keys: str) -> list[str | None]:
    found = map(kept.corpus, keys)
    return [each and each.label for each in found]


def test_texts_are_kept_for_two_hours_after_their_last_use_and_new_ones_take_their_place():
    clock = Clock()
    kept = OwnCorpora(Models(), clock)
    kept.put(ONE, own("one"), [FIRST])
    done(kept)
    clock.now = KEPT
    assert labels(kept, ONE, TWO) == ["one (2)", None]
    kept.put(ONE, own("other"), [])
    assert labels(kept, ONE) == ["other (2)"]
    clock.now += KEPT + 1
    assert labels(kept, ONE) == [None]


def test_the_least_lately_used_goes_where_there_are_too_many():
    kept = OwnCorpora(Models(), Clock(), Bounds(2, own=2))
    for key in (ONE, TWO):
        kept.put(key, own(key), [])
    assert labels(kept, ONE) == [f"{ONE} (2)"]  # used now
    kept.put(THREE, own("three"), [])
    assert labels(kept, ONE, TWO, THREE) == [f"{ONE} (2)", None, "three (2)"]


def test_texts_that_are_encoded_stay_and_others_are_refused_while_there_is_no_room():
    models = Models(held=True)
    kept = OwnCorpora(models, Clock(), Bounds(64, 1000, own=8))
    for key in (ONE, TWO):
        kept.put(key, own("x" * 20, 5), [FIRST])
    with pytest.raises(ValueError, match=FULL):
        kept.put(THREE, own("x" * 20, 5), [FIRST])
    models.permits.release(2)
    done(kept)
    kept.put(THREE, own("x" * 20, 5), [])
    assert labels(kept, ONE) == [None]


def test_every_visitors_first_model_comes_before_anyones_second_a_block_at_a_time():
    models = Models(held=True)
    kept = OwnCorpora(models)
    kept.put(ONE, own("a", BLOCK + 1), [FIRST, SECOND])
    kept.put(TWO, own("b", BLOCK + 1), [FIRST, SECOND])
    models.permits.release(8)
    done(kept)
    assert models.order == [(text, name) for name in ("first", "second") for _ in range(2) for text in "ab"]
    found = kept.corpus(TWO).encodings[SECOND].vectors()
    assert (found.dtype, found[:, 0].tolist()) == (np.float32, [BLOCK] * BLOCK + [1])


def test_whatever_fails_ends_its_own_encoding_with_a_line_and_the_others_go_on(monkeypatch):
    def failing(encoder, texts):
        if encoder.name == "first":
            raise MemoryError
        return apply(encoder, texts)

    apply, kept = Encoder.encode_document, OwnCorpora(Models())
    monkeypatch.setattr(Encoder, "encode_document", failing)
    kept.put(ONE, own("a"), [FIRST, SECOND])
    done(kept)
    first, second = kept.corpus(ONE).encodings.values()
    assert len(second.vectors()) == 2
    with pytest.raises(ValueError, match=FAILED):
        first.vectors()


def test_a_corpus_of_more_than_its_share_keeps_the_vectors_that_fit():
    kept = OwnCorpora(Models(), bounds=Bounds(64, own=8, own_size=2 * 74 + 3 * 8))
    kept.put(ONE, own("a"), [FIRST, SECOND])
    done(kept)
    first, second = kept.corpus(ONE).encodings.values()
    assert len(first.vectors()) == 2
    with pytest.raises(ValueError, match="give fewer texts"):
        second.vectors()


@pytest.mark.parametrize("key", ["", "1" * 31, "G" * 32, None])
def test_what_could_be_guessed_is_no_key(key):
    kept = OwnCorpora(Models())
    with pytest.raises(ValueError, match="This page has no key to keep texts under; reload it"):
        kept.put(key, own("a"), [])
    assert kept.corpus(key) is None
    kept.remove(key)


def test_vectors_stand_in_the_order_of_the_texts():
    class Lengths(Encoder):
        def encode_document(self, texts):
            return np.array([[len(text)] for text in texts], np.float32)

    models = Models()
    models.apply = lambda function, columns: {columns[0].name: function(columns[0], Lengths(models, ""))}
    kept, texts = OwnCorpora(models), ["x" * (7 * row % 600) for row in range(600)]
    kept.put(ONE, OwnCorpus("one", texts), [FIRST])
    done(kept)
    np.testing.assert_array_equal(kept.corpus(ONE).encodings[FIRST].vectors()[:, 0], [len(text) for text in texts])


def test_a_removal_can_be_undone_until_its_time_ends() -> None:
    clock, models = Clock(), Models(held=True)
    kept, corpus, ended = OwnCorpora(models, clock), OwnCorpus("a", ["a"] * (2 * BLOCK), ["x"] * (2 * BLOCK)), []
    kept.put(ONE, corpus, [FIRST])
    models.permits.release()  # one of two blocks
    assert kept.set_aside(ONE, lambda: ended.append(1)) is corpus
    assert kept.corpus(ONE) is kept.set_aside(ONE) is None
    models.permits.release(9)
    done(kept, ONE)
    assert not corpus.encodings[FIRST].ended  # what is removed is not encoded
    clock.now = UNDO
    assert kept.restore(ONE) is kept.corpus(ONE) is corpus
    done(kept, ONE)
    assert corpus.encodings[FIRST].complete
    clock.now = 3 * UNDO
    assert (kept.corpus(ONE), ended) == (corpus, [])
    kept.set_aside(ONE, lambda: ended.append(2))
    clock.now = 5 * UNDO
    assert (kept.corpus(ONE), ended) == (None, [2])
    assert kept.restore(ONE) is None


def test_texts_that_others_replaced_can_be_brought_back() -> None:
    clock, models = Clock(), Models()
    kept, first, other = OwnCorpora(models, clock), OwnCorpus("a", ["a", "b"]), OwnCorpus("b", ["c"])
    assert kept.put(ONE, first, [FIRST]) is None
    assert kept.put(ONE, other, [FIRST]) is first
    assert kept.restore(ONE) is kept.corpus(ONE) is first
    relabelled = OwnCorpus("a", ["a", "b"], ["x", "y"])
    assert kept.put(ONE, relabelled, [FIRST]) is None  # other columns of the same texts replace nothing
    assert kept.restore(ONE) is None
    kept.put(ONE, other, [FIRST])
    kept.remove(ONE)
    assert kept.restore(ONE) is None  # whoever deletes texts means those, too
    ended: list[int] = []
    kept.put(ONE, other, [FIRST])
    kept.set_aside(ONE, lambda: ended.append(1))
    kept.remove(ONE)
    assert ended == [1]  # and what goes with them, such as votes
