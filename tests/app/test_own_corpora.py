"""What visitors have indexed is kept by their keys, for a time, in a bounded number and size; nothing sleeps here."""

import threading

import pytest

from cse.app.models.corpora import OWN_KEY, Corpus
from cse.app.models.own_corpora import KEPT, Built, OwnCorpora, Step

ONE, TWO, THREE = ("1" * 32, "2" * 32, "3" * 32)


class Clock:
    """Stands for the time, which passes where a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def built(name: str, size: int = 1) -> Built:
    return Built(Corpus(OWN_KEY, name, (), lambda *_: None), size)


def index(kept: OwnCorpora, key: str, *steps: Step | Built) -> str:
    """The failure of an indexing with these steps, once it has ended."""
    job = kept.begin(key, iter(steps))
    assert job.wait(60)
    return job.failure


def labels(kept: OwnCorpora, *keys: str) -> list[str | None]:
    found = [kept.corpus(key) for key in keys]
    return [None if corpus is None else corpus.label for corpus in found]


class Held:
    """The steps of an indexing that waits after each for the test."""

    def __init__(self, count: int = 3) -> None:
        self.count, self.reached, self.go_on = count, threading.Semaphore(0), threading.Semaphore(0)

    def __iter__(self):
        for done in range(self.count):
            yield Step(done, self.count, "model")
            self.reached.release()
            assert self.go_on.acquire(timeout=60)
        yield built("held")


def test_a_corpus_is_kept_for_two_hours_after_its_last_use():
    clock = Clock()
    kept = OwnCorpora(clock)
    assert index(kept, ONE, built("one")) == ""
    for later in (KEPT, 2 * KEPT):
        clock.now = later
        assert labels(kept, ONE, TWO) == ["one", None]
    clock.now += KEPT + 1
    assert labels(kept, ONE) == [None]


def test_a_new_corpus_takes_the_place_of_the_earlier_and_a_failed_one_does_not():
    kept = OwnCorpora()
    index(kept, ONE, built("one"))
    index(kept, ONE, built("other"))
    assert labels(kept, ONE) == ["other"]

    def failing():
        yield Step(0, 1, "model")
        raise ValueError("the disk is full")

    job = kept.begin(ONE, failing())
    assert job.wait(60)
    assert (job.failure, kept.job(ONE)) == ("the disk is full", job)  # a page that comes back reads it
    assert labels(kept, ONE) == ["other"]


def test_the_least_lately_used_goes_where_there_are_too_many_or_too_large_ones():
    kept = OwnCorpora(Clock(), most=2)
    for key in (ONE, TWO):
        index(kept, key, built(key))
    assert labels(kept, ONE) == [ONE]  # used now
    index(kept, THREE, built("three"))
    assert labels(kept, ONE, TWO, THREE) == [ONE, None, "three"]
    kept = OwnCorpora(Clock(), most_bytes=10 * 2**20)
    index(kept, ONE, built("one", 6 * 2**20))
    index(kept, TWO, built("two", 4 * 2**20))
    index(kept, THREE, built("three", 5 * 2**20))
    assert labels(kept, ONE, TWO, THREE) == [None, "two", "three"]
    failure = index(kept, ONE, built("one", 11 * 2**20))
    assert failure == "The indexes take 11 MB, and the server keeps 10 MB; give fewer sentences."
    assert labels(kept, TWO, THREE) == ["two", "three"]


def test_an_indexing_goes_on_while_nobody_looks_and_its_corpus_expires():
    clock, steps = Clock(), Held()
    kept = OwnCorpora(clock)
    job = kept.begin(ONE, iter(steps))
    for done in range(3):
        assert steps.reached.acquire(timeout=60)
        clock.now += KEPT + 1  # a slow one is not forgotten
        assert kept.job(ONE) is job
        assert (job.running, job.step) == (True, Step(done, 3, "model"))
        steps.go_on.release()
    assert job.wait(60)
    assert labels(kept, ONE) == ["held"]
    clock.now += KEPT + 1
    assert (labels(kept, ONE), kept.job(ONE)) == ([None], None)


def test_an_indexing_is_stopped_after_its_step_and_leaves_the_earlier_corpus():
    kept, steps = OwnCorpora(), Held()
    index(kept, ONE, built("one"))
    job = kept.begin(ONE, iter(steps))
    assert steps.reached.acquire(timeout=60)
    kept.stop(TWO)
    assert not job.stopping.is_set()
    kept.stop(ONE)
    steps.go_on.release()
    assert job.wait(60)
    assert (job.step, job.failure, labels(kept, ONE)) == (Step(0, 3, "model"), "", ["one"])


def test_a_visitor_has_one_indexing_and_a_server_some():
    kept, steps = OwnCorpora(most_jobs=2), [Held(1), Held(1)]
    jobs = [kept.begin(key, iter(each)) for key, each in zip((ONE, TWO), steps, strict=True)]
    with pytest.raises(ValueError, match="Your sentences are being indexed already"):
        kept.begin(ONE, iter(()))
    with pytest.raises(ValueError, match="The server is indexing for 2 visitors; try again"):
        kept.begin(THREE, iter(()))
    for job, each in zip(jobs, steps, strict=True):
        each.go_on.release()
        assert job.wait(60)
    assert index(kept, THREE, built("three")) == ""
    assert labels(kept, ONE, TWO, THREE) == ["held", "held", "three"]


@pytest.mark.parametrize("key", ["", "1" * 31, "1" * 33, "G" * 32, None, 5, ["1" * 32]])
def test_what_could_be_guessed_is_no_key(key):
    kept = OwnCorpora()
    with pytest.raises(ValueError, match="This page has no key to keep sentences under; reload it"):
        kept.begin(key, iter(()))
    assert (kept.corpus(key), kept.job(key)) == (None, None)
