"""Works timed in turn: whose round is when, what a ratio is, and the memory that one of them takes."""

import subprocess
import sys

import pytest
from conftest import ROOT

from tests.bench import machine
from tests.bench.timing import Timing, interleaved, ratio


def test_works_are_timed_in_turn_after_a_first_run_of_each() -> None:
    clock, done = [0.0], []

    def work(name: str, took: list[float]) -> None:
        done.append(name)
        clock[0] += took.pop(0)

    slow, fast = [9.0, 4.0, 8.0, 6.0], [9.0, 2.0, 2.0, 2.0]
    found = interleaved({"slow": lambda: work("slow", slow), "fast": lambda: work("fast", fast)}, 3, lambda: clock[0])
    assert done == ["slow", "fast"] * 4
    assert found["slow"].seconds == (4.0, 8.0, 6.0)
    assert ratio(found["fast"], found["slow"]) == (3.0, 2.0, 4.0)
    figures = found["slow"].figures(24)
    assert (figures["rate"], figures["slowest"], figures["fastest"]) == (4.0, 3.0, 6.0)
    with pytest.raises(ValueError, match="`rounds` is 0"):
        interleaved({}, rounds=0)


PEAKS = """
from tests.bench.machine import with_peak_memory
print(*[with_peak_memory(lambda: len(b"x" * size)) for size in (1, 2**28, 1)])
"""


@pytest.mark.skipif(not (machine.OWN / "clear_refs").exists(), reason="the system counts no peak (2026-11)")
def test_the_peak_is_of_the_work_alone() -> None:
    """In a process of its own, which has no freed memory to use again."""
    done = subprocess.run([sys.executable, "-c", PEAKS], cwd=ROOT, capture_output=True, text=True, check=True)
    before, large, after = map(int, done.stdout.split())
    assert abs(large - before - 2**28) < 2**20  # the system counts pages by the batch
    assert abs(after - before) < 2**20
    assert Timing((1.0,), large).figures(1)["peak_mb"] == round(large / 2**20)
