"""Memory and processor time of encoding texts of ever new shapes, as a server or a long corpus brings them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cse.encoder.devices import read
from cse.encoder.encoder import Encoder

MOST_TEXTS, MOST_WORDS = 8, 60
WORDS = "the a dog cat runs river market price hospital doctor music play child green".split()


@dataclass(frozen=True)
class Growth:
    """Resident megabytes before the first call and after each sixth of `calls`, and their processor seconds."""

    calls: int
    megabytes: tuple[int, ...]
    seconds: float


def measure_growth(encoder: Encoder, calls: int, seed: int = 0) -> Growth:
    """Encode `calls` lists of 1 to 8 texts of 2 to 59 words, drawn by `seed`."""
    encoder.encode(["a"])
    draw = np.random.default_rng(seed)
    megabytes, began = [resident()], time.process_time()
    for call in range(1, calls + 1):
        sizes = draw.integers(2, MOST_WORDS, draw.integers(1, MOST_TEXTS + 1))
        encoder.encode([" ".join(draw.choice(WORDS, size)) for size in sizes])
        if call % max(1, calls // 6) == 0:
            megabytes.append(resident())
    return Growth(calls, tuple(megabytes), time.process_time() - began)


def resident() -> int:
    """Return the resident megabytes of this process (Linux)."""
    found = next(line for line in read(Path("/proc/self/status")).splitlines() if line.startswith("VmRSS"))
    return int(found.split()[1]) // 1024
