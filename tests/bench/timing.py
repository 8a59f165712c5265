"""Works timed against each other in turn, so that what else the machine does meets all; the machine and its memory."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cse.encoder.devices import CPU, extensions, read

MEMORY, OWN = Path("/proc/meminfo"), Path("/proc/self")


def describe_machine() -> dict[str, str | int]:
    """Return processor, cores for this process, matrix extensions, memory, GPU and library versions."""
    import torch
    import transformers

    cpu = read(CPU)
    name = re.search(r"^model name\s*: (.+)$", cpu, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", read(MEMORY), re.MULTILINE)
    found: dict[str, str | int] = {
        "cpu": name[1] if name else platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "extensions": ", ".join(extensions()) or "unknown",
        "threads": torch.get_num_threads(),
        "memory_gb": round(int(memory[1]) / 2**20) if memory else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    return found | ({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {})


def with_peak_memory(work: Callable[[], object]) -> int | None:
    """Call `work` and return the peak memory of this process during the call in bytes; None if it is not reported.

    Needs Linux, which can reset the peak (`/proc/self/clear_refs`).
    """
    try:
        (OWN / "clear_refs").write_text("5")
    except OSError:
        work()
        return None
    work()
    most = re.search(r"^VmHWM:\s*(\d+) kB$", read(OWN / "status"), re.MULTILINE)
    return int(most[1]) * 1024 if most else None


def resident_memory(process: int) -> int | None:
    """Return the resident memory of a process id in bytes; None if the system does not report it (not Linux)."""
    found = re.search(r"^VmRSS:\s*(\d+) kB$", read(OWN.with_name(str(process)) / "status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def processor_seconds(process: int) -> float | None:
    """Return the processor time of a process id in seconds; None if the system does not report it (not Linux)."""
    fields = read(OWN.with_name(str(process)) / "stat").rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else None


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
