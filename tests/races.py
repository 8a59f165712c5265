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


def index_writer(folder: Path) -> Callable[[], object]:
    """The function that builds one index over the other: row r of one holds sentence r, of the other the last but r."""
    from index import BuildSettings, VectorIndex

    orders = [(TEXTS, VECTORS), (TEXTS[::-1], VECTORS[::-1])]

    def write() -> None:
        VectorIndex.build([orders[0]], folder / "index", settings=BuildSettings())
        orders.reverse()

    return write


def index_reader(folder: Path) -> Callable[[], bool]:
    """The function that opens the index and tells whether it finds sentences that are known to be in it."""
    from index import VectorIndex

    def read() -> bool:
        index = VectorIndex.load(folder / "index")
        hits = index.texts(index.search(VECTORS[KNOWN], 1)[1][:, 0])
        return hits == [TEXTS[row] for row in KNOWN]

    return read


def model_writer(folder: Path) -> Callable[[], object]:
    """The function that saves one model over the other; both are left next to it."""
    from app_models import write_model
    from conftest import tiny_bert

    import cse
    from cse.models.checkpoint import save

    backbone = tiny_bert(folder / "backbone")
    names = ("simcse", "promptbert")
    models = [cse.load(str(write_model(folder / name, backbone, name)), backend="torch") for name in names]

    def write() -> None:
        save(cast("TorchEncoder", models[0]), folder / "model", {})
        models.reverse()

    return write


def model_reader(folder: Path) -> Callable[[], bool]:
    """The function that opens the model and compares its vectors with those of the one of its method."""
    import cse

    def encoded(path: Path) -> tuple[str, np.ndarray]:
        encoder = cse.load(str(path))
        return encoder.method.name, encoder.encode(TEXTS[:3])

    expected = dict(encoded(folder / name) for name in ("simcse", "promptbert"))

    def read() -> bool:
        method, vectors = encoded(folder / "model")
        return np.allclose(vectors, expected[method], atol=1e-5)  # processes may round otherwise

    return read


WRITERS = {"index": index_writer, "model": model_writer}
OPENERS = {"index": index_reader, "model": model_reader}


def race(kind: str, number: int, folder: Path, stop: Event, counts: Any) -> None:
    """Write (`number` 0) or read until the race is over or its process has died; add up what came of it in `counts`."""
    parent, seen = multiprocessing.parent_process(), Counter[str]()
    action = OPENERS[kind](folder) if number else WRITERS[kind](folder)
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
    parser.add_argument("--only", choices=tuple(WRITERS), help="what is replaced; both without it")
    options = parser.parse_args()
    kinds = [options.only] if options.only else list(WRITERS)
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
