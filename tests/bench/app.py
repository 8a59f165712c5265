"""How fast a running app answers: comparisons of one visitor, of many at once, and beside a map that is being drawn."""

from __future__ import annotations

import json
import math
import secrets
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.ports import free_port

START_LIMIT = 300.0  # seconds
CALL_LIMIT = 600.0
POINTS = 1200  # sentences on the map that is drawn meanwhile: the whole demo corpus
DEMO: tuple[Any, ...] = ("demo", "", [])  # the last values of endpoints that read a corpus: it, no key, and all models


@dataclass(frozen=True)
class Load:
    """Seconds a comparison took: the median, the 95th percentile and the most of `count` ones."""

    what: str
    count: int
    median: float
    p95: float
    worst: float

    @classmethod
    def of(cls, what: str, seconds: Sequence[float]) -> Load:
        """The figures of measured times, by nearest rank. Raises ValueError for none."""
        if not seconds:
            raise ValueError(f"{what}: nothing was measured; give more seconds")
        ordered = sorted(seconds)
        median, p95 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
        return cls(what, len(ordered), median, p95, ordered[-1])


class Started(NamedTuple):
    """The address of a new app, the seconds from its start to its first page, and the number of its process."""

    url: str
    page: float
    process: int


@contextmanager
def started_app(root: Path, *options: str) -> Iterator[Started]:
    """A new app in `root`, on a free port, with further options."""
    port = free_port()
    url, begun = f"http://127.0.0.1:{port}", time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "app.py", "--port", str(port), *options],
        cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:

        def wait_for(started: Callable[[str], bool], pause: float) -> None:
            while not started(url):
                if process.poll() is not None or time.perf_counter() - begun > START_LIMIT:
                    raise ValueError("the app did not start; try `python app.py`")
                time.sleep(pause)

        wait_for(_answers, 0.05)
        page = time.perf_counter() - begun
        wait_for(_computes, 1.0)
        yield Started(url, page, process.pid)
    finally:
        process.terminate()
        process.wait()


def compare(url: str, number: int, visitor: str) -> float:
    """The seconds of one comparison of two sentences by a visitor; `number` makes them new to the app."""
    begun = time.perf_counter()
    sentences = f"Visitor {number} asks for the way.", "Somebody wants to know where to go."
    call(url, "similarity", [*sentences, *DEMO], visitor)
    return time.perf_counter() - begun


def measure(url: str, visitors: int, seconds: float) -> list[Load]:
    """Comparisons of one visitor alone, of `visitors` at once, and of one beside a map, for `seconds` each.

    Beside the map they go on for as long as that is drawn.
    """
    compare(url, 0, "first")  # which waits for the models
    drawing = threading.Event()

    def draw() -> None:
        try:
            call(url, "map", new_map())
        finally:
            drawing.set()

    def alone() -> list[float]:
        return list(_until(url, lambda begun: time.perf_counter() - begun > seconds))

    with ThreadPoolExecutor(visitors) as pool:
        loads = [Load.of("one visitor", alone())]
        many = [pool.submit(alone) for _ in range(visitors)]
        loads.append(Load.of(f"{visitors} visitors", [took for job in many for took in job.result()]))
        map_job = pool.submit(draw)
        loads.append(Load.of("one visitor beside a map", list(_until(url, lambda begun: drawing.is_set()))))
        map_job.result()
    return loads


def new_map() -> list[object]:
    """The values of a map of the demo corpus that is not kept yet."""
    return [POINTS, time.time_ns() % 2**32, 12, *DEMO]


def call(url: str, endpoint: str, values: Sequence[object], visitor: str | None = None, *, leave: bool = False) -> str:
    """The answer of an endpoint, as JSON text. Raises ValueError with the app's reason.

    A `visitor` has a session, as a page has; without one Gradio prepares a new session for the call. One who is to
    `leave` does not wait for the answer, and gets none.
    """
    with answer_stream(url, endpoint, values, visitor) as stream:
        if leave:
            return ""
        *_, (kind, data) = events(stream)
    if kind != "complete":
        raise ValueError(f"/{endpoint} answered {data}")
    return data


@contextmanager
def answer_stream(url: str, endpoint: str, values: Sequence[object], visitor: str | None) -> Iterator[Iterable[bytes]]:
    """The open stream of an endpoint's answer."""
    body = json.dumps({"data": list(values), "session_hash": visitor}).encode()
    request = urllib.request.Request(f"{url}/gradio_api/call/{endpoint}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=CALL_LIMIT) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{request.full_url}/{event}", timeout=CALL_LIMIT) as stream:
        yield stream


def events(stream: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """The kind and the JSON text of each event of a stream."""
    kind = ""
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, value


def _until(url: str, done: Callable[[float], bool]) -> Iterator[float]:
    begun, visitor = time.perf_counter(), secrets.token_hex(8)
    number = 0
    while True:
        number += 1
        yield compare(url, number + time.time_ns(), visitor)
        if done(begun):
            return


def _computes(url: str) -> bool:
    """True once Gradio's queue has started, which is shortly after the first page."""
    try:
        call(url, "ledger", [[]])
    except (OSError, ValueError):
        return False
    return True


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=CALL_LIMIT):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False
