"""What one visitor waits for with texts of their own, step by step: seconds, the server's processor time and memory."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench.app import answer_stream, call, compare, events
from tests.bench.app_texts import answered, memory_of, ticket, wait_for
from tests.bench.machine import processor_seconds
from tests.bench.timing import beside_first

POINTS, GROUPS = 10_000, 12
SMALL = 64
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
        self.texts, self.key = [ticket(0, row) for row in range(count)], ""

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Measure the block."""
        begun, before = time.perf_counter(), processor_seconds(self.process) if self.process else None
        yield
        seconds, after = time.perf_counter() - begun, processor_seconds(self.process) if self.process else None
        computed = None if before is None or after is None else after - before
        self.steps.append(Step(what, seconds, computed, memory_of(self.process)))
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
            self.maps(lambda maps: any("xy" in each for each in maps.values()))
        with self.step("all models"):
            wait_for(self.url, self.key, self.session, None)
        with self.step("search in all models"):
            answered(self.search("The printer does not work."))
        with self.step("maps of all models"):
            self.maps(lambda maps: False)
        with self.step("near-duplicates"):
            self.call("duplicates", MODEL, "own", 5.0, "first", 1, self.key)
        with self.step("deletion"):
            self.call("forget", self.key)
        return self.steps

    def search(self, query: str) -> str:
        """Return the answer of a search among the texts."""
        return self.call("search", query, 5, "own", 0.0, self.key)

    def maps(self, enough: Callable[[dict], bool]) -> None:
        """Have maps and groups made, and leave as soon as they are enough."""
        values = ["corpus", "", POINTS, 0, GROUPS, "own", self.key]
        session = secrets.token_hex(8)  # who leaves takes the session away
        with answer_stream(self.url, "map", values, session) as stream:
            for kind, data in events(stream):
                if kind == "error":
                    raise ValueError(f"/map answered {data}")
                if kind == "generating" and enough(json.loads(data)[0]["maps"]):
                    return


def encodings(count: int, rounds: int, model: str = MODEL) -> dict[str, dict[str, Any]]:
    """Return the processor time in which a model encodes so many texts in one call, in small blocks, and as the page.

    Times are beside those of the one call, in rounds (`beside_first`).
    """
    import cse
    from cse.app.models.models import Models
    from cse.app.state.encodings import Encoding, Order, encode_block

    texts, models = [ticket(0, row) for row in range(count)], Models([model])
    encoder, order, column = cse.load(model), Order(texts), models.columns[0]

    def as_the_page() -> None:
        encoding = Encoding(column, count)
        while not encoding.ended:
            encode_block(models, texts, order, encoding)

    works = {
        "float32 in one call": lambda: encoder.encode(texts),
        f"float32, {SMALL} texts at a time": lambda: [
            encoder.encode(texts[start : start + SMALL]) for start in range(0, count, SMALL)
        ],
        "as the page": as_the_page,
    }
    return beside_first(works, count, rounds, time.process_time)
