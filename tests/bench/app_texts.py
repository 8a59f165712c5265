"""How a running app bears visitors with texts of their own: uploads, searches and maps at once, beside comparisons."""

from __future__ import annotations

import json
import random
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from cse.app.state.corpora import Demo
from tests.bench.app import call, compare
from tests.bench.app_mix import Mixed, timed
from tests.bench.machine import resident_memory

WAIT = 1.0  # seconds between looks at an encoding
MAPPED = 100  # texts on each visitor's map
SETTLED = 3.0  # seconds from the last visitor's end to the look at the memory


@dataclass
class Uploaded:
    """Measurements: times and errors by kind, and the server's memory before and after the visits, in MB."""

    visitors: int
    texts: int
    mixed: Mixed
    before: float | None
    after: float | None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        kept = self.after / self.before if self.before and self.after else None
        return {
            "visitors": self.visitors, "texts": self.texts, "seconds": round(self.mixed.seconds, 1),
            "errors": dict(self.mixed.errors), "loads": [asdict(load) for load in self.mixed.loads],
            "memory_mb": [self.before, self.after], "memory_kept": kept,
        }  # fmt: skip


def measure_uploads(url: str, visitors: int, texts: int, process: int | None = None) -> Uploaded:
    """Have visitors upload, search and map texts and leave, while another one compares.

    A first round, which is not counted, fills what the server keeps for all: models, kernels, its allocator's memory.
    """
    compare(url, 0, "first")
    visit_all(url, visitors, texts, Mixed(), 0)
    found, before = Mixed(), memory_of(process)
    begun = time.perf_counter()
    visit_all(url, visitors, texts, found, visitors)
    found.seconds = time.perf_counter() - begun
    time.sleep(SETTLED)
    return Uploaded(visitors, texts, found, before, memory_of(process))


def visit_all(url: str, visitors: int, texts: int, found: Mixed, first: int) -> None:
    """Run the visits numbered from `first` at once, beside comparisons until all have ended."""
    over = threading.Event()
    with ThreadPoolExecutor(visitors + 1) as pool:
        beside = pool.submit(compare_until, url, found, over)
        jobs = [pool.submit(visit, url, number, texts, found) for number in range(first, first + visitors)]
        for job in jobs:
            job.result()
        over.set()
        beside.result()


def compare_until(url: str, found: Mixed, over: threading.Event) -> None:
    """Compare new pairs of sentences, one after the other."""
    visitor = secrets.token_hex(8)
    while not over.is_set():
        timed("comparison", found, lambda: compare(url, time.time_ns(), visitor))


def visit(url: str, number: int, count: int, found: Mixed) -> None:
    """One visitor's work with texts: upload, first search, all models, map, vectors, and their deletion."""
    session, begun = secrets.token_hex(8), time.perf_counter()
    texts = [ticket(number, row) for row in range(count)]
    key = json.loads(call(url, "texts", [texts, None, ""], session))[0]["key"]
    try:
        timed("first search", found, lambda: wait_for(url, key, session, 1))
        found.took["upload to first search"].append(time.perf_counter() - begun)
        timed("all models", found, lambda: wait_for(url, key, session, None))
        drawn = ["corpus", "", MAPPED, number, 5, "own", key]
        timed("map", found, lambda: call(url, "map", drawn, session))
        timed("own search", found, lambda: answered(call(url, "search", [texts[0], 5, "own", 0.0, key], session)))
        timed("vectors", found, lambda: call(url, "vectors", ["simcse", "own", key, 0], session))
    finally:
        timed("deletion", found, lambda: call(url, "forget", [key], session))


def wait_for(url: str, key: str, session: str, models: int | None) -> None:
    """Wait until so many models, or all, have encoded the texts. Raises ValueError if one fails."""
    while True:
        told = json.loads(call(url, "texts", [[], None, key], session))[0]
        failed = [each["error"] for each in told["models"].values() if each["error"]]
        if failed:
            raise ValueError(failed[0])
        ready = sum(each["done"] == told["texts"] for each in told["models"].values())
        if ready >= (len(told["models"]) if models is None else models):
            return
        time.sleep(WAIT)


def answered(answer: str) -> None:
    """Raise ValueError if a model has no answer."""
    if '{"error": ' in answer:
        raise ValueError(f"a model has no answer: {answer[:100]}")


def ticket(visitor: int, row: int) -> str:
    """Return a text of a visitor's own: one to four sentences of the demo corpus, drawn by the two numbers."""
    chance = random.Random(f"{visitor} {row}")
    return f"Ticket {visitor}-{row}: {' '.join(chance.choices(sentences(), k=chance.randint(1, 4)))}"


@cache
def sentences() -> list[str]:
    """Return the demo corpus."""
    return Demo().sentences


def memory_of(process: int | None) -> float | None:
    """Return a process's memory in MB, None if it is not known."""
    size = resident_memory(process) if process else None
    return None if size is None else round(size / 2**20, 1)
