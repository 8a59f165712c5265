"""How a running app bears many clients: calls of every kind beside maps that are drawn, its memory, what goes wrong."""

from __future__ import annotations

import random
import secrets
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from typing import Any

from tests.bench.app import CALL_LIMIT, DEMO, Load, call, compare, new_map
from tests.bench.timing import resident_memory

MIX = {  # how often each is asked for
    "similarity": 8, "search": 6, "tokens": 4, "words": 2, "pairs": 2, "changes": 1, "prefix": 1, "template": 1,
    "prototypes": 1, "disagreements": 1, "models": 1, "scores": 2, "ledger": 1, "refused": 2, "left": 1, "page": 1,
}  # fmt: skip
STAYS = 20  # calls that a client makes before it comes back as a new visitor
REPEATED = 0.3  # of the texts are among those that everyone asks for
MAPS = "map"


@dataclass
class Mixed:
    """Measurements: seconds by kind, what went wrong by its reason, and (second, bytes) of its memory."""

    seconds: float = 0.0
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, int]] = field(default_factory=list)

    @property
    def loads(self) -> list[Load]:
        """The figures of each kind of call, the most frequent first."""
        return [Load.of(kind, took) for kind, took in sorted(self.took.items(), key=lambda item: -len(item[1])) if took]

    @property
    def calls(self) -> int:
        """How many calls were answered."""
        return sum(map(len, self.took.values()))

    @property
    def quarters(self) -> list[float]:
        """The median of the server's memory in each quarter of the time; empty for too few measurements."""
        quarter = len(self.memory) // 4
        sizes = [size for _, size in self.memory[len(self.memory) - 4 * quarter :]]
        return [median(sizes[start : start + quarter]) for start in range(0, 4 * quarter, quarter)] if quarter else []


def bear(
    url: str, clients: int, seconds: float, process: int | None = None, seed: int = 0, *, warm_up: float = 0.0
) -> Mixed:
    """So many clients call for so long, each as soon as it has its answer, beside one that has maps drawn all the time.

    `process` is the server's number, whose memory is looked at; the first answer of the models comes before the clock,
    and so do other calls of the same mix for `warm_up` seconds, of which only the errors count.
    """
    compare(url, 0, "first")
    before = bear(url, clients, warm_up, seed=seed + 1) if warm_up else Mixed()
    found, over = Mixed(errors=before.errors), threading.Event()
    chances = [random.Random(f"{seed} {number}") for number in range(clients)]
    loads = [partial(visit, url, chance, found, over) for chance in chances]
    run_loads([*loads, partial(draw, url, found, over)], seconds, found, process, over)
    return found


def run_loads(
    loads: Sequence[Callable[[], Any]], seconds: float, found: Mixed, process: int | None, over: threading.Event
) -> None:
    """Run loads beside each other, and set `over` after `seconds`, at which they end; record a process's memory."""
    begun = time.perf_counter()

    def watch() -> None:
        while not over.wait(1.0):
            size = resident_memory(process) if process else None
            if size is not None:
                found.memory.append((time.perf_counter() - begun, size))

    with ThreadPoolExecutor(len(loads) + 1) as pool:
        jobs = [pool.submit(load) for load in (*loads, watch)]
        try:
            over.wait(seconds)
        finally:
            over.set()
        for job in jobs:
            job.result()
    found.seconds = time.perf_counter() - begun


def visit(url: str, chance: random.Random, found: Mixed, over: threading.Event) -> None:
    """One client's calls until it is over."""
    kinds, weights = list(MIX), list(MIX.values())
    visitor, calls = secrets.token_hex(8), 0
    while not over.is_set():
        kind = chance.choices(kinds, weights)[0]
        timed(kind, found, lambda kind=kind, visitor=visitor: asked(url, kind, chance, visitor))  # type: ignore[misc]
        calls += 1
        if calls % STAYS == 0:
            visitor = secrets.token_hex(8)


def draw(url: str, found: Mixed, over: threading.Event) -> None:
    """Maps of the whole demo corpus, one after the other, none of which was drawn before."""
    while not over.is_set():
        timed(MAPS, found, lambda: call(url, "map", new_map()))


def timed(kind: str, found: Mixed, work: Callable[[], object]) -> None:
    """Write down how long a call took, or why it went wrong."""
    begun = time.perf_counter()
    try:
        work()
    except Exception as error:  # the count of whatever goes wrong is the result
        found.errors[f"{kind}: {type(error).__name__}: {error}"[:200]] += 1
    else:
        found.took[kind].append(time.perf_counter() - begun)


def asked(url: str, kind: str, chance: random.Random, visitor: str) -> None:
    """One call of a kind. Raises what goes wrong, and ValueError where a wrong call is answered."""
    first, second = (text(chance) for _ in range(2))
    values: dict[str, list[object]] = {
        "similarity": [first, second, *DEMO], "words": [first, second, []], "search": [first, 5, 0.0, "", *DEMO],
        "tokens": [first, 5, 1.0, []],
        "pairs": ["\n".join((first, second, text(chance), text(chance))), "cosine", *DEMO],
        "changes": [first, "", *DEMO], "prefix": [first, second, *DEMO], "prototypes": [first, []],
        "template": [first, '"[X]" is [MASK] .', 5, []], "disagreements": [*DEMO], "models": [[]],
        "scores": ["sts", []], "ledger": [[]],
    }  # fmt: skip
    if kind == "refused":
        refused(url, visitor)
    elif kind == "left":
        # A closed page takes its session away.
        call(url, "similarity", values["similarity"], secrets.token_hex(8), leave=True)
    elif kind == "page":
        with urllib.request.urlopen(f"{url}/config", timeout=CALL_LIMIT) as answer:
            answer.read()
    else:
        answer = call(url, kind, values[kind], visitor)
        if '{"error": ' in answer:
            raise ValueError(f"a model has no answer: {answer[:100]}")


def refused(url: str, visitor: str) -> None:
    """A call with an empty sentence. Raises ValueError where it is answered."""
    try:
        call(url, "similarity", ["", "b", *DEMO], visitor)
    except ValueError as error:
        if "is empty" in str(error):
            return
        raise
    raise ValueError("an empty sentence was answered")


def text(chance: random.Random) -> str:
    """A sentence: one that many ask for, or a new one of 4 to 28 words."""
    if chance.random() < REPEATED:
        return f"Visitor {chance.randrange(20)} asks for the way to the station."
    words = ("visitor", "asks", "the", "way", "to", "a", "small", "house", "near", "water", "and", "sees", "nobody")
    return " ".join(chance.choices(words, k=chance.randrange(3, 28))) + f" {chance.randrange(10**6)}."


def to_json(found: Mixed) -> dict[str, Any]:
    """The measurements as JSON values."""
    return {
        "seconds": round(found.seconds, 1),
        "calls": found.calls,
        "errors": dict(found.errors),
        "loads": [asdict(load) for load in found.loads],
        "memory_mb": [[round(second), round(size / 2**20)] for second, size in found.memory],
        "most_memory_mb": round(max((size for _, size in found.memory), default=0) / 2**20),
        "quarters_mb": [round(size / 2**20) for size in found.quarters],
    }
