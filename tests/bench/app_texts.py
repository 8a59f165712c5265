"""How a running app bears visitors with texts of their own: uploads, searches and maps at once, beside comparisons."""

from __future__ import annotations

import itertools
import json
import random
import secrets
import threading
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

from cse.app.state.corpora import Demo
from tests.bench.app import CALL_LIMIT, call, compare
from tests.bench.app_mix import Mixed, run_loads, timed
from tests.bench.machine import resident_memory

WAIT = 1.0  # seconds between looks at an encoding
MAPPED = 100  # texts on each visitor's map
SETTLED = 3.0  # seconds from the last visitor's end to the look at the memory
SESSIONS = 2  # of each of these visitors
KINDS = (
    "similarity", "words", "tokens", "pairs", "xray", "changes", "template", "search", "disagreements", "map", "map",
    "duplicates", "vectors", "judge", "encode", "selection", "file", "figure",
)  # fmt: skip


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


def measure_stays(
    url: str, visitors: int, texts: int, seconds: float, process: int | None = None, *, think: float = 1.0
) -> Mixed:
    """Have so many visitors use everything with texts of their own for so long, each going after a while for a new one.

    `think` is the mean of the seconds before a visitor's next call. Every kind of use and every figure comes once
    before the clock, which opens the models on both engines; of these calls only the errors count.
    """
    models = [each["name"] for each in json.loads(call(url, "models", []))[0]]
    figures = [each for each in figure_calls(url) if is_drawn(url, *each)]
    found, over = Mixed(), threading.Event()
    stay(Stay(url, random.Random("first"), texts, 0.001, models, figures), found, over, KINDS)
    found.took.clear()

    def stays(number: int) -> None:
        for count in itertools.count():
            if over.is_set():
                return
            stay(Stay(url, random.Random(f"{number} {count}"), texts, think, models, figures), found, over)

    run_loads([partial(stays, number) for number in range(visitors)], seconds, found, process, over)
    return found


@dataclass(frozen=True)
class Stay:
    """A visitor's stay: `texts` is the most of them, `figures` are the page's calls that draw one."""

    url: str
    chance: random.Random
    texts: int
    think: float
    models: list[str]
    figures: list[tuple[int, list[Any]]]


def stay(visitor: Stay, found: Mixed, over: threading.Event, kinds: Sequence[str] = ()) -> None:
    """Upload texts and use them in `SESSIONS` sessions, one after the other; half of the visitors delete them.

    Each session has these `kinds` of use, by default a few of all.
    """
    url, chance = visitor.url, visitor.chance
    count, number = chance.randint(20, visitor.texts), chance.randrange(10**9)
    texts, key = [ticket(number, row) for row in range(count)], ""

    labels = [f"label {row % 5}" for row in range(count)]

    def upload(session: str) -> None:
        nonlocal key
        key = json.loads(call(url, "texts", [texts, labels, ""], session))[0]["key"]

    for _ in range(SESSIONS):
        session = secrets.token_hex(8)
        timed("page", found, partial(page, url))
        if not key:
            timed("upload", found, partial(upload, session))
            timed("all models", found, partial(wait_for, url, key, session, None))
        for kind in kinds or chance.choices(KINDS, k=chance.randint(4, 10)):
            if over.wait(chance.expovariate(1 / visitor.think)):
                break
            timed(kind, found, partial(used, visitor, kind, texts, key, session))
    if chance.random() < 0.5:
        timed("deletion", found, partial(call, url, "forget", [key], session))


def used(visitor: Stay, kind: str, texts: list[str], key: str, session: str) -> None:
    """One use of a visitor's texts, or of texts that are typed. Raises ValueError where there is no answer."""
    url, chance = visitor.url, visitor.chance
    first, second = (f"{chance.choice(sentences())} {chance.randrange(10**6)}" for _ in range(2))
    model = chance.choice(visitor.models)
    values: dict[str, list[object]] = {
        "similarity": [first, second], "words": [first, second], "tokens": [first, 5, 1.0],
        "pairs": ["\n".join(chance.sample(texts, 6))], "xray": [first, second, []], "changes": [first, ""],
        "template": [first, f'"[X]" is {chance.randrange(10**4)} [MASK] .', 5],
        "search": [first, 10, "own", 0.0, key], "disagreements": ["corpus", "", "own", key],
        "map": ["corpus", "", len(texts) if len(texts) > 100 else 100, chance.randrange(3), 5, "own", key],
        "duplicates": [model, "own", 5.0, "first", 1, key], "vectors": [model, "own", key, 0],
        "judge": [*chance.sample(visitor.models, 2), "own", 10, key], "encode": [texts[:64], model, False],
        "selection": [list(range(10)), model, "corpus", "", 10_000, 5, "own", key],
    }  # fmt: skip
    if kind == "file":
        body = json.dumps({"kind": chance.choice(("npy", "zip", "csv")), "corpus": "own", "key": key, "model": model})
        request = urllib.request.Request(f"{url}/corpus/files", body.encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=CALL_LIMIT) as answer:
            answer.read()
    elif kind == "figure":
        page_call(url, *chance.choice(visitor.figures), session)
    else:
        answered(call(url, kind, values[kind], session))


def page(url: str) -> None:
    """Read the page and its settings."""
    for path in ("", "/config"):
        with urllib.request.urlopen(f"{url}{path}", timeout=CALL_LIMIT) as answer:
            answer.read()


def figure_calls(url: str) -> list[tuple[int, list[Any]]]:
    """Return the number and the first inputs of each function of the page that makes a figure."""
    with urllib.request.urlopen(f"{url}/config", timeout=CALL_LIMIT) as answer:
        config = json.load(answer)
    props = {each["id"]: each["props"] for each in config["components"]}
    buttons = {number for number, each in props.items() if str(each.get("value")).startswith("Figure (")}
    return [
        (each["id"], ["" if (value := props[number].get("value")) is None else value for number in each["inputs"]])
        for each in config["dependencies"]
        if any(target in buttons for target, _ in each["targets"])
    ]


def is_drawn(url: str, function: int, inputs: list[Any]) -> bool:
    """True if the page can draw a figure; it cannot before there are votes, or a training."""
    try:
        page_call(url, function, inputs, secrets.token_hex(8))
    except ValueError:
        return False
    return True


def page_call(url: str, function: int, inputs: list[Any], session: str) -> None:
    """Call a function of the page as the page does. Raises ValueError with the app's reason."""
    body = json.dumps({"data": inputs, "fn_index": function, "session_hash": session}).encode()
    request = urllib.request.Request(f"{url}/gradio_api/queue/join", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=CALL_LIMIT) as answer:
        answer.read()
    with urllib.request.urlopen(f"{url}/gradio_api/queue/data?session_hash={session}", timeout=CALL_LIMIT) as stream:
        for line in stream:
            message = json.loads(line.decode().removeprefix("data:")) if line.startswith(b"data:") else {}
            if message.get("msg") == "process_completed":
                if not message["success"]:
                    raise ValueError(f"function {function} answered {message['output']}"[:200])
                return


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
