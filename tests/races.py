"""Replace an index and a checkpoint again and again while other processes open them: `python -m tests.races`.

One process of each kind writes the same 500 sentences in two orders, or two models in turn, under one name; others open
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
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent / name) for name in ("", "encoding")]
SENTENCES, DIMENSION, EACH = 500, 32, 2
PAUSES = {"index": 0.02, "model": 0.2}  # seconds between two replacements; opening takes less, or none would succeed
WORDS = ["a man plays the guitar", "the dog runs", "a child eats an apple"]


def going_on(stop: Event) -> bool:
    """Return True until the race is over, or the process that began it has died."""
    parent = multiprocessing.parent_process()
    return not stop.is_set() and (parent is None or parent.is_alive())


def write_indexes(folder: Path, stop: Event, counts: Any) -> None:
    """Build one index over the other: row r of one holds sentence r, of the other the last but r."""
    from index import BuildSettings, VectorIndex

    texts = [f"sentence {number}" for number in range(SENTENCES)]
    vectors = points()
    while going_on(stop):
        VectorIndex.build([(texts, vectors)], folder / "index", settings=BuildSettings())
        texts, vectors = texts[::-1], vectors[::-1]
        counts["indexes replaced"] = counts.get("indexes replaced", 0) + 1
        stop.wait(PAUSES["index"])


def read_indexes(folder: Path, stop: Event, tell: Callable[[str], None]) -> None:
    """Open the index and search for sentences that are known to be in it."""
    from index import VectorIndex

    vectors, known = points(), [3, 250, 499]
    while going_on(stop):
        try:
            index = VectorIndex.load(folder / "index")
            found = index.texts(index.search(vectors[known], 1)[1][:, 0])
        except Exception as error:
            tell(f"index refused: {error}")
        else:
            tell("index right" if found == [f"sentence {number}" for number in known] else f"index wrong: {found}")


def points() -> np.ndarray:
    """(SENTENCES, DIMENSION) vectors, one a sentence."""
    return np.random.default_rng(0).normal(size=(SENTENCES, DIMENSION)).astype(np.float32)


def make_models(folder: Path) -> dict[str, Any]:
    """Two encoders that learn the same tensors, with other values, and read them in other ways."""
    import torch
    from conftest import tiny_bert
    from encoders import make

    models = {name: make(str(tiny_bert(folder / "backbone")), name) for name in ("simcse", "promptbert")}
    for seed, encoder in enumerate(models.values()):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for tensor in encoder.learned().values():
                tensor += 0.05 * torch.randn(tensor.shape, generator=generator)
    return models


def write_models(folder: Path, stop: Event, counts: Any) -> None:
    """Save one model over the other."""
    from cse.models.checkpoint import save

    models = list(make_models(folder).values())
    while going_on(stop):
        save(models[0], folder / "model", {})
        models.reverse()
        counts["models replaced"] = counts.get("models replaced", 0) + 1
        stop.wait(PAUSES["model"])


def read_models(folder: Path, stop: Event, tell: Callable[[str], None]) -> None:
    """Open the model and compare its vectors with those of the encoder that its method names."""
    import cse

    vectors = dict(np.load(folder / "vectors.npz"))
    while going_on(stop):
        try:
            encoder = cse.load(str(folder / "model"))
            expected = vectors[encoder.method.name]
            right = np.allclose(encoder.encode(WORDS), expected, atol=1e-5)  # processes may round otherwise
        except Exception as error:
            tell(f"model refused: {error}")
        else:
            tell("model right" if right else f"model wrong: {encoder.method.name}")


WRITERS = {"index": write_indexes, "model": write_models}
READERS = {"index": read_indexes, "model": read_models}


def reading(read: Callable[..., None], folder: Path, stop: Event, counts: Any, number: int, begun: Semaphore) -> None:
    """Count what a reader tells, and keep one example of each kind of failure; release `begun` at the first."""
    seen: Counter[str] = Counter()

    def tell(what: str) -> None:
        if not seen:
            begun.release()
        kind, _, detail = what.partition(": ")
        seen[kind] += 1
        if detail:
            counts.setdefault(f"first {kind}", detail)

    read(folder, stop, tell)
    for kind, count in seen.items():
        counts[f"{kind} ({read.__name__} {number})"] = count


def main() -> int:
    """Run the race for the time asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="default %(default)s")
    parser.add_argument("--only", choices=("index", "model"), help="what is replaced; both without it")
    options = parser.parse_args()
    kinds = [options.only] if options.only else ["index", "model"]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, context.Manager() as manager:
        folder, stop, counts = Path(name), context.Event(), manager.dict()
        if "model" in kinds:
            (folder / "expected").mkdir()
            models = make_models(folder / "expected")
            np.savez(folder / "vectors.npz", **{key: encoder.encode(WORDS) for key, encoder in models.items()})
        (folder / "backbone").mkdir()
        given, begun = (folder, stop, counts), context.Semaphore(0)
        writers = [context.Process(target=WRITERS[kind], args=given) for kind in kinds]
        for writer in writers:
            writer.start()
        while not all((folder / kind).exists() for kind in kinds):
            time.sleep(0.1)
        readers = [
            context.Process(target=reading, args=(read, *given, number, begun))
            for read in (READERS[kind] for kind in kinds)
            for number in range(EACH)
        ]
        for reader in readers:
            reader.start()
        for _ in readers:
            begun.acquire()
        time.sleep(options.seconds)
        stop.set()
        for process in (*readers, *writers):
            process.join()
        found = dict(counts)
    summed: dict[str, Any] = {"seconds": options.seconds}
    for kind, value in sorted(found.items()):
        kind = kind.partition(" (")[0]
        summed[kind] = value if kind.startswith("first") else summed.get(kind, 0) + value
    sys.stdout.write(json.dumps(summed, indent=1) + "\n")
    return int(any("wrong" in kind or "refused" in kind for kind in summed))


if __name__ == "__main__":
    sys.exit(main())
