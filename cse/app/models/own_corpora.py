"""The corpora of visitors and their indexing jobs, by each visitor's secret key, bounded in number and time.

They do not depend on a page or session: a job continues, and a corpus stays, after its page is closed.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from cse.app.models.corpora import Corpus
from cse.app.models.models import error_line

log = logging.getLogger(__name__)
KEPT = 2 * 60 * 60  # seconds after the last use
MOST_KEPT, MOST_BYTES_KEPT = 64, 512 * 2**20  # of all visitors together
MOST_JOBS = 4  # of all visitors at once
KEY = re.compile(r"[0-9a-f]{32}")
PROMISE = (
    f"The server keeps them for {KEPT // 3600} hours after their last use, under a key that only this browser has: you "
    f"find them in other tabs and after a reload, and no one else can search them. It keeps those of {MOST_KEPT} "
    f"visitors, {MOST_BYTES_KEPT // 2**20} MB in all; where newer ones need the room, or it restarts, they go earlier."
)
GONE = (
    f"There are no sentences of yours on this server. It keeps them for {KEPT // 3600} hours after their last use, "
    'until it restarts or newer ones need the room. Index them under "Your own sentences", or choose another corpus.'
)


class Step(NamedTuple):
    """Progress of indexing: sentences encoded, of all models together, and the current model."""

    done: int
    total: int
    name: str


class Built(NamedTuple):
    """An indexed corpus and its size in bytes."""

    corpus: Corpus
    size: int


class Job:
    """An indexing job in its own thread. `step` is the last one, `failure` the reason if it failed."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self.failure = ""
        self.stopping, self._ended = Event(), Event()

    @property
    def running(self) -> bool:
        """True until the job has ended."""
        return not self._ended.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; return True if the job has ended."""
        return self._ended.wait(seconds)

    def end(self) -> None:
        """Mark the job as ended."""
        self._ended.set()


@dataclass
class Own:
    """A visitor's corpus with its size in bytes, and the last job; `used` is the time of the last access."""

    used: float
    corpus: Corpus | None = None
    size: int = 0
    job: Job | None = None

    @property
    def running(self) -> bool:
        """True while the visitor's job runs."""
        return self.job is not None and self.job.running


class OwnCorpora:
    """Corpora and jobs by visitor key, thread-safe; beyond the bounds the least recently used are dropped."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_KEPT,
        most_bytes: int = MOST_BYTES_KEPT,
        most_jobs: int = MOST_JOBS,
    ) -> None:
        """`clock` returns seconds; at most `most` visitors with `most_bytes` in all are kept, `most_jobs` jobs run."""
        self._clock, self._most, self._most_bytes, self._most_jobs = clock, most, most_bytes, most_jobs
        self._owned: dict[str, Own] = {}  # least recently used first
        self._lock = Lock()

    def corpus(self, key: Any) -> Corpus | None:
        """Return the corpus of a key, or None."""
        with self._lock:
            own = self._used(key)
            return None if own is None else own.corpus

    def job(self, key: Any) -> Job | None:
        """Return the last job of a key, which may have ended, or None."""
        with self._lock:
            own = self._used(key)
            return None if own is None else own.job

    def begin(self, key: Any, steps: Iterator[Step | Built]) -> Job:
        """Start a job that runs the steps; the corpus at their end replaces the one of the key.

        Raises ValueError for an invalid key, if the visitor has a job running, or if `most_jobs` run already.
        """
        if not isinstance(key, str) or not KEY.fullmatch(key):
            raise ValueError("This page has no key to keep sentences under; reload it.")
        with self._lock:
            own = self._used(key) or Own(self._clock())
            if own.running:
                raise ValueError("Your sentences are being indexed already; wait until they are, or press Stop.")
            if sum(each.running for each in self._owned.values()) >= self._most_jobs:
                raise ValueError(f"The server is indexing for {self._most_jobs} visitors; try again in a few minutes.")
            own.job = job = Job()
            self._owned[key] = own
            self._sweep()
        Thread(target=self._run, args=(key, job, steps), name="indexing", daemon=True).start()
        return job

    def stop(self, key: Any) -> None:
        """Stop the job of a key after its current step; an earlier corpus stays."""
        job = self.job(key)
        if job is not None:
            job.stopping.set()

    def _run(self, key: str, job: Job, steps: Iterator[Step | Built]) -> None:
        try:
            for step in steps:
                if job.stopping.is_set():
                    break
                if isinstance(step, Built):
                    self._put(key, step)
                else:
                    job.step = step
        except Exception as error:  # the thread has no caller to raise to
            if not isinstance(error, (ValueError, OSError)):
                log.exception("an indexing failed")
            job.failure = error_line(error)
        finally:
            job.end()

    def _put(self, key: str, built: Built) -> None:
        if built.size > self._most_bytes:
            size, most = (round(number / 2**20) for number in (built.size, self._most_bytes))
            raise ValueError(f"The indexes take {size:,} MB, and the server keeps {most:,} MB; give fewer sentences.")
        with self._lock:
            own = self._used(key)
            assert own is not None  # its job runs
            own.corpus, own.size = built
            self._sweep()

    def _used(self, key: Any) -> Own | None:
        """Return the entry of a key and mark it as used."""
        self._sweep()
        own = self._owned.pop(key, None) if isinstance(key, str) else None
        if own is not None:
            own.used = self._clock()
            self._owned[key] = own
        return own

    def _sweep(self) -> None:
        """Drop expired entries, and the least recently used beyond the bounds; entries with a running job stay."""
        for key, own in [item for item in self._owned.items() if not item[1].running]:
            size = sum(each.size for each in self._owned.values())
            crowded = len(self._owned) > self._most or size > self._most_bytes
            if not crowded and self._clock() - own.used <= KEPT:
                return  # the rest was used later
            del self._owned[key]
