"""What one visitor waits for with texts of their own, step by step: seconds, the server's processor time and memory."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cse.evaluation.transfer import labelled_rows
from cse.models.names import BUNDLED
from tests.bench.app import call, compare
from tests.bench.timing import processor_seconds, resident_memory

POINTS, GROUPS = 10_000, 12
WAIT = 1.0  # seconds between looks at an encoding
MODEL = "simcse"  # the first of the page


@dataclass
class Step:
    """Seconds by the clock and of the server's processor, and its memory in MB afterwards."""

    what: str
    seconds: float
    computed: float | None
    memory_mb: float | None


class Job:
    """One visitor's steps with `count` texts."""

    def __init__(self, url: str, count: int, process: int | None, say: Callable[[str], object] = str) -> None:
        """Make the texts; `process` is the server's number. `say` gets each measurement in words."""
        self.url, self.process, self.steps, self.say = url, process, list[Step](), say
        self.session = secrets.token_hex(8)
        sentences = [text for _, text in labelled_rows(BUNDLED / "demo" / "corpus.tsv")]
        self.texts, self.key = [ticket(sentences, row) for row in range(count)], ""

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Measure the block."""
        begun, before = time.perf_counter(), processor_seconds(self.process) if self.process else None
        yield
        seconds, after = time.perf_counter() - begun, processor_seconds(self.process) if self.process else None
        computed = None if before is None or after is None else after - before
        size = resident_memory(self.process) if self.process else None
        self.steps.append(Step(what, seconds, computed, None if size is None else round(size / 2**20, 1)))
        self.say(str(self.steps[-1]))

    def call(self, endpoint: str, *values: object) -> str:
        """Return the answer of an endpoint."""
        return call(self.url, endpoint, values, self.session)

    def run(self) -> list[Step]:
        """Upload, search, draw maps, find near-duplicates, delete; return the measurements."""
        compare(self.url, 0, "first")  # opens the models
        with self.step("upload to first search"):
            self.key = json.loads(self.call("texts", self.texts, None, ""))[0]["key"]
            wait_for(self.url, self.key, self.session, 1)
            self.search("Where is my order?")
        with self.step("first map"):
            self.map([MODEL])
        with self.step("all models"):
            wait_for(self.url, self.key, self.session, None)
        with self.step("search in all models"):
            answer = self.search("The printer does not work.")
        if '{"error": ' in answer:
            raise ValueError(f"a model has no answer: {answer[:100]}")
        with self.step("maps of all models"):
            self.map([])
        with self.step("near-duplicates"):
            self.call("duplicates", MODEL, 5.0, "first", 1, "", "own", self.key, [])
        with self.step("deletion"):
            self.call("forget", self.key)
        return self.steps

    def search(self, query: str) -> str:
        """Return the answer of a search among the texts."""
        return self.call("search", query, 5, 0.0, "", "own", self.key, [])

    def map(self, models: Sequence[str]) -> None:
        """Have maps and groups made in these models, or in all."""
        self.call("map", POINTS, 0, GROUPS, "own", self.key, models)


def wait_for(url: str, key: str, session: str, models: int | None) -> None:
    """Wait until so many models, or all, have encoded the texts. Raises ValueError if one fails."""
    while True:
        told = json.loads(call(url, "texts", [[], None, key], session))[0]
        failed = [model["error"] for model in told["models"].values() if model["error"]]
        if failed:
            raise ValueError(failed[0])
        ready = sum(model["done"] == told["texts"] for model in told["models"].values())
        if ready >= (len(told["models"]) if models is None else models):
            return
        time.sleep(WAIT)


def ticket(sentences: Sequence[str], row: int) -> str:
    """Return a text of the visitor's own: one to four sentences of the demo corpus, drawn by the number."""
    chance = random.Random(f"0 {row}")
    return f"Ticket {row}: {' '.join(chance.choices(sentences, k=chance.randint(1, 4)))}"
