"""Visitors' texts: kept for a time and within bounds, encoded in turns, gone when asked."""

import threading
from itertools import count

import numpy as np
import pytest

import cse
from cse.app.corpus import own as corpora
from cse.app.corpus.own import (
    BLOCK,
    FAILED,
    FULL,
    KEPT,
    UNDO,
    Encoding,
    OwnCorpora,
    OwnCorpus,
    quick,
)
from cse.app.models.models import Column, Failure
from cse.app.models.recent import Bounds
from cse.app.top import progress
from cse.vectors import cosines

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
        try:
            return {column.name: function(column, Encoder(self, column.name))}
        except OSError as error:  # an error of a model is an answer, as in the app's own `Models`
            return {column.name: Failure(str(error))}


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
    for later in (KEPT, 2 * KEPT):
        clock.now = later
        assert labels(kept, ONE, TWO) == ["one (2)", None]
    kept.put(ONE, own("other"), [])
    assert labels(kept, ONE) == ["other (2)"]
    clock.now += KEPT + 1
    assert labels(kept, ONE) == [None]


def test_the_least_lately_used_goes_where_there_are_too_many_or_too_large_ones():
    kept = OwnCorpora(Models(), Clock(), Bounds(2, own=2))
    for key in (ONE, TWO):
        kept.put(key, own(key), [])
    assert labels(kept, ONE) == [f"{ONE} (2)"]  # used now
    kept.put(THREE, own("three"), [])
    assert labels(kept, ONE, TWO, THREE) == [f"{ONE} (2)", None, "three (2)"]
    kept = OwnCorpora(Models(), Clock(), Bounds(64, 1000))
    for key in (ONE, TWO, THREE):
        kept.put(key, own("x" * 20, 5), [])  # 400 bytes
    assert labels(kept, ONE, TWO, THREE) == [None, *["x" * 20 + " (5)"] * 2]


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


def test_a_model_that_is_not_ready_says_how_far_it_is_and_one_that_fails_why():
    models = Models(held=True)
    kept = OwnCorpora(models)
    kept.put(ONE, own("a", 4 * BLOCK), [FIRST])
    encoding = kept.corpus(ONE).encodings[FIRST]
    with pytest.raises(ValueError, match=r"^first has encoded 0 % of your texts; the rest takes a while\.$"):
        encoding.vectors()
    models.permits.release(1)
    while not encoding.done:
        threading.Event().wait(0.01)
    with pytest.raises(ValueError, match=r"^first has encoded 25 % of your texts; the rest takes about \d+ seconds\.$"):
        encoding.vectors()
    models.apply = lambda function, columns: {"first": Failure("its weights are damaged")}
    models.permits.release(1)
    done(kept)
    with pytest.raises(ValueError, match="its weights are damaged"):
        encoding.vectors()


class Panic(BaseException):
    """As libraries in Rust raise, outside of Exception."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise MemoryError


@pytest.mark.parametrize(
    "error", [Panic("a panic"), MemoryError(), Unprintable(), OSError(28, "No space left")], ids=type
)
@pytest.mark.parametrize("inside", [True, False])
def test_whatever_fails_ends_its_own_encoding_with_a_line_and_the_others_go_on(error, inside, monkeypatch, caplog):
    def failing(encoder, texts):
        if encoder.name == "first":
            raise error
        return apply(encoder, texts)

    def failing_size(corpus):
        first = corpus.encodings.get(FIRST)
        if first and first.done and not first.failure:
            raise error
        return 100

    apply, kept = Encoder.encode_document, OwnCorpora(Models())
    if inside:
        monkeypatch.setattr(Encoder, "encode_document", failing)
    else:
        monkeypatch.setattr(OwnCorpus, "size", property(failing_size))
    kept.put(ONE, own("a"), [FIRST, SECOND])
    done(kept)
    first, second = kept.corpus(ONE).encodings.values()
    assert len(second.vectors()) == 2
    with pytest.raises(ValueError, match=FAILED if not isinstance(error, OSError) or not inside else "No space left"):
        first.vectors()
    assert ("an encoding failed" in caplog.text) == (not isinstance(error, OSError) or not inside)
    kept.put(TWO, own("b"), [SECOND])
    done(kept)
    assert kept.corpus(TWO).encodings[SECOND].complete


def test_an_encoding_that_no_thread_could_begin_is_refused_and_begins_with_the_next(monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    kept = OwnCorpora(Models())
    with monkeypatch.context() as patch:
        patch.setattr(corpora.Thread, "start", start)
        with pytest.raises(ValueError, match=FULL):
            kept.put(ONE, own("a"), [FIRST])
        assert kept.corpus(ONE) is None
    for key in (ONE, TWO):
        kept.put(key, own("b"), [FIRST])
    done(kept)
    assert [kept.corpus(key).encodings[FIRST].complete for key in (ONE, TWO)] == [True, True]


def test_progress_and_vectors_are_read_while_another_thread_adds_models(monkeypatch):
    """A dictionary that changes within a loop over it ends the loop in a RuntimeError."""
    kept, corpus, names = OwnCorpora(Models()), own("a"), map(str, count())
    kept.put(ONE, corpus, [FIRST, SECOND])
    done(kept)
    known = {name: vars(Encoding)[name] for name in ("ended", "complete", "seconds_left")}

    def interrupted(name):
        def read(encoding):
            if threading.current_thread() is threading.main_thread():
                other = threading.Thread(target=kept.encode, args=(corpus, [Column(next(names), "")]))
                other.start()
                other.join()
            return getattr(known[name], "fget", known[name])(encoding)

        return read if name == "seconds_left" else property(read)

    for name in known:
        monkeypatch.setattr(Encoding, name, interrupted(name))
    assert corpus.ready([FIRST, SECOND]) == corpus.answering([FIRST, SECOND]) == [FIRST, SECOND]
    assert corpus.complete >= 2
    assert corpus.current is None or corpus.current.column not in (FIRST, SECOND)
    said = progress(corpus)
    assert said == "" or " reads " in said


def test_two_requests_that_see_a_replaced_model_encode_the_texts_again_once():
    kept, corpus = OwnCorpora(Models()), own("a")
    kept.put(ONE, corpus, [FIRST])
    done(kept)
    old = corpus.encodings[FIRST]
    for _ in range(2):
        kept.encode(corpus, [FIRST], stale=old)
    done(kept)
    assert kept._models.order == [("a", "first")] * 2
    assert corpus.encodings[FIRST] is not old


def test_the_same_texts_with_other_labels_are_not_encoded_again():
    models = Models(held=True)
    kept = OwnCorpora(models)
    kept.put(ONE, own("a", 2 * BLOCK), [FIRST])
    models.permits.release(1)
    other = OwnCorpus("with labels", ["a"] * 2 * BLOCK, ["x"] * 2 * BLOCK)
    kept.put(ONE, other, [FIRST])
    models.permits.release(9)
    done(kept)
    assert models.order == [("a", "first")] * 2
    assert other.ready([FIRST]) == [FIRST]
    kept.put(ONE, own("b", 2), [FIRST])
    done(kept)
    assert models.order[2:] == [("b", "first")]


def test_removed_texts_are_gone_and_no_longer_encoded():
    models = Models(held=True)
    kept = OwnCorpora(models)
    kept.put(ONE, own("a", 9 * BLOCK), [FIRST])
    kept.remove(TWO)
    kept.remove(ONE)
    models.permits.release(1)  # of the block that was begun
    done(kept)
    assert labels(kept, ONE) == [None]
    assert len(models.order) <= 1


def test_a_corpus_of_more_than_its_share_keeps_the_vectors_that_fit():
    kept = OwnCorpora(Models(), bounds=Bounds(64, own=8, own_size=2 * 74 + 3 * 8))
    kept.put(ONE, own("a"), [FIRST, SECOND])
    done(kept)
    first, second = kept.corpus(ONE).encodings.values()
    assert len(first.vectors()) == 2
    with pytest.raises(ValueError, match="give fewer texts"):
        second.vectors()


@pytest.mark.parametrize("key", ["", "1" * 31, "1" * 33, "G" * 32, None, 5, ["1" * 32]])
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


def test_texts_are_encoded_in_bfloat16_only_by_openvino_and_where_that_is_fast(bert_folder, monkeypatch):
    opened = cse.load(str(bert_folder), "mean", backend="openvino")
    on_torch = cse.load(str(bert_folder), "mean", backend="torch")
    texts = ["the cat sat on the mat", "a dog"]
    monkeypatch.setattr(corpora, "computes_in_bf16", lambda *_: False)
    assert quick(opened) is opened
    monkeypatch.setattr(corpora, "computes_in_bf16", lambda *_: True)
    fast = quick(opened)
    assert fast is quick(opened) is not opened
    assert (opened.graphs.precision, fast.graphs.precision, fast.fingerprint) == ("f32", "bf16", opened.fingerprint)
    assert cosines(fast.encode(texts), opened.encode(texts)).min() > 0.999
    assert quick(on_torch) is on_torch


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
    assert kept.restore(TWO) is None
    clock.now = UNDO
    assert kept.restore(ONE) is kept.corpus(ONE) is corpus
    done(kept, ONE)
    assert corpus.encodings[FIRST].complete
    clock.now = 3 * UNDO
    assert (kept.corpus(ONE), ended) == (corpus, [])
    kept.set_aside(ONE, lambda: ended.append(2))
    clock.now = 5 * UNDO
    assert (kept.corpus(TWO), ended) == (None, [2])
    assert kept.restore(ONE) is None
