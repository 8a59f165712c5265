"""Works timed against each other: in turn, again and again, so that what else the machine does meets all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.bench.machine import with_peak_memory

ROUNDS = 5

Clock = Callable[[], float]


@dataclass(frozen=True)
class Timing:
    """Seconds of one work in every round, and the most bytes of memory the process had in one of them."""

    seconds: tuple[float, ...]
    peak: int | None = None

    @property
    def median(self) -> float:
        """The median of the seconds."""
        return median(self.seconds)

    def figures(self, amount: float) -> dict[str, float | int | None]:
        """The `rate` at which an amount of anything is done by the median round, its slowest and fastest, the peak."""
        return {
            "rate": amount / self.median,
            "slowest": amount / max(self.seconds),
            "fastest": amount / min(self.seconds),
            "peak_mb": None if self.peak is None else round(self.peak / 2**20),
        }


def interleaved(
    works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, clock: Clock = time.perf_counter
) -> dict[str, Timing]:
    """The times of each work in `rounds` rounds, A B A B ..., after a first run of each that is not timed.

    That first run tells the memory. `time.process_time` as the `clock` leaves out what other processes took of a busy
    machine, and adds the time of all threads. Raises ValueError for less than one round.
    """
    if rounds < 1:
        raise ValueError(f"`rounds` is {rounds}; give at least 1")
    peaks = {name: with_peak_memory(work) for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            begun = clock()
            work()
            seconds[name].append(clock() - begun)
    return {name: Timing(tuple(seconds[name]), peaks[name]) for name in works}


def ratio(ours: Timing, others: Timing) -> tuple[float, float, float]:
    """How many times faster ours is: the median, least and most of the rounds' ratios, each of two neighbours."""
    ratios = [other / own for own, other in zip(ours.seconds, others.seconds, strict=True)]
    return median(ratios), min(ratios), max(ratios)


def beside_first(
    works: Mapping[str, Callable[[], object]], amount: int, rounds: int = ROUNDS, clock: Clock = time.perf_counter
) -> dict[str, dict[str, Any]]:
    """Of each work the `milliseconds` for one of an amount, and how many `times` as long as the first work it takes.

    They run `interleaved`; the times are the median, least and most of the rounds' ratios.
    """
    timings = interleaved(works, rounds, clock)
    first = next(iter(timings.values()))
    return {
        name: {"milliseconds": 1000 * each.median / amount, "times": ratio(first, each)}
        for name, each in timings.items()
    }
