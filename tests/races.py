"""Replace an index and a checkpoint again and again while other processes open them: `python -m tests.races`.

One process of each kind writes the same sentences in two orders, or two models in turn, under one name; two others open
what is there and compare its answers with both. Prints the counts as JSON; the exit code is 1 where an answer was wrong
or an opening was refused.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from cse.encoder.torch_encoder import TorchEncoder

sys.path[:0] = [str(Path(__file__).parent / name) for name in ("", "support")]
READERS = 2  # of each kind
PAUSES = {"index": 0.02, "model": 0.2}  # seconds between two replacements; opening takes less, or none would succeed
TEXTS = [f"sentence {number}" for number in range(500)]
VECTORS = np.random.default_rng(0).normal(size=(len(TEXTS), 32)).astype(np.float32)
KNOWN = [3, 250, 499]


def index_race(folder: Path) -> tuple[Callable[[], object], Callable[[], bool]]:
    """Build one index over the other, row r of one is sentence r, of the other the last but r; search known ones."""
    from index import BuildSettings, VectorIndex

    orders = [(TEXTS, VECTORS), (TEXTS[::-1], VECTORS[::-1])]

    def write() -> None:
        VectorIndex.build([orders[0]], folder / "index", settings=BuildSettings())
        orders.reverse()

    def read() -> bool:
        index = VectorIndex.load(folder / "index")
        hits = index.texts(index.search(VECTORS[KNOWN], 1)[1][:, 0])
        return hits == [TEXTS[row] for row in KNOWN]

    return write, read


def model_race(folder: Path) -> tuple[Callable[[], object], Callable[[], bool]]:
    """Save one of two models over the other; compare the vectors of what is there with those of its method."""
    from app_models import write_model
    from conftest import tiny_bert

    import cse
    from cse.models.checkpoint import save

    names = ["simcse", "promptbert"]
    if not (folder / names[-1]).exists():  # the writer is the first
        backbone = tiny_bert(folder / "backbone")
        for name in names:
            write_model(folder / name, backbone, name)
    models = {name: cse.load(str(folder / name), backend="torch") for name in names}

    def write() -> None:
        save(cast("TorchEncoder", models[names[0]]), folder / "model", {})
        names.reverse()

    def read() -> bool:
        encoder = cse.load(str(folder / "model"))
        expected = models[encoder.method.name].encode(TEXTS[:3])
        return np.allclose(encoder.encode(TEXTS[:3]), expected, atol=1e-4)  # engines may round otherwise

    return write, read


RACES = {"index": index_race, "model": model_race}


def race(kind: str, number: int, folder: Path, stop: Event, counts: Any) -> None:
    """Write (`number` 0) or read until the race is over or its process has died; add up what came of it in `counts`."""
    parent, seen = multiprocessing.parent_process(), Counter[str]()
    action = RACES[kind](folder)[bool(number)]
    while not stop.is_set() and (parent is None or parent.is_alive()):
        try:
            correct = action()
        except Exception as error:
            if not number:
                raise
            seen[f"{kind} refused"] += 1
            counts.setdefault(f"{kind} refused, first", str(error))
        else:
            seen[f"{kind} {'right' if correct else 'wrong'}" if number else f"{kind} replaced"] += 1
        counts[kind, number] = dict(seen)
        if not number:
            stop.wait(PAUSES[kind])


def main() -> int:
    """Run the race for the time asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="default %(default)s")
    parser.add_argument("--only", choices=tuple(RACES), help="what is replaced; both without it")
    options = parser.parse_args()
    kinds = [options.only] if options.only else list(RACES)
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, context.Manager() as manager:
        folder, stop, counts, processes = Path(name), context.Event(), manager.dict(), []
        for number in range(READERS + 1):
            for kind in kinds:
                processes.append(context.Process(target=race, args=(kind, number, folder, stop, counts)))
                processes[-1].start()
            while not all((folder / kind).exists() for kind in kinds) and all(one.is_alive() for one in processes):
                time.sleep(0.1)
        while len(counts) < len(processes) and all(one.is_alive() for one in processes):
            time.sleep(0.1)
        time.sleep(options.seconds)
        stop.set()
        for process in processes:
            process.join()
        total, errors = Counter[str](), {}
        for key, value in counts.items():
            if isinstance(key, str):
                errors[key] = value
            else:
                total.update(value)
        summary = {"seconds": options.seconds, **total, **errors}
    sys.stdout.write(json.dumps(summary, indent=1) + "\n")
    failed = any(process.exitcode for process in processes)
    return int(failed or any("wrong" in kind or "refused" in kind for kind in summary))


if __name__ == "__main__":
    sys.exit(main())
