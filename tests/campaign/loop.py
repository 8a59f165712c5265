"""The whole campaign: what is tried, shared among processes forked when everything is imported, and counted."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from tests.campaign import artefacts, disk, inputs, kills
from tests.campaign.subjects import SUBJECTS, fresh_folder, prepare
from tests.campaign.verdicts import Case, Verdict, counted, failed

Task = Callable[[], Case]
Measured = dict[str, kills.Undisturbed]
EVERY = 100  # cases between two lines of progress
TASKS: list[Task] = []  # of this process and its forks


@dataclass(frozen=True)
class Plan:
    """How much is tried of each part, drawn by `seed`, in so many processes."""

    kills: int = 1000
    inputs: int = 500
    artefacts: int = 200
    disks: int = 60
    seed: int = 42
    processes: int = 2

    def random(self, what: str) -> Random:
        """The random generator for one purpose, independent of the others."""
        return Random(f"{self.seed} {what}")


QUICK = Plan(kills=24, inputs=16, artefacts=7, disks=4)  # two kills of each command, each artefact once


def campaign(plan: Plan) -> dict[str, Any]:
    """Carry the plan out, in a process without other threads: counts and failures as JSON values.

    Raises ValueError where something fails that nothing disturbs.
    """
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    from tqdm import tqdm

    tqdm.set_lock(threading.RLock())  # its own is the system's, and killed processes would leave many of these
    begun, cases = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare(root)
        TASKS[:] = _tasks(plan, root)
        plan.random("order").shuffle(TASKS)  # so that the long ones are spread
        with ProcessPoolExecutor(plan.processes, get_context("fork")) as pool:
            for case in pool.map(_tried, range(len(TASKS))):
                cases.append(case)
                if len(cases) % EVERY == 0:
                    print(f"{len(cases)} of {len(TASKS)}", file=sys.stderr, flush=True)  # noqa: T201
    return {"plan": asdict(plan), "seconds": round(time.perf_counter() - begun), **counted(cases)}


def _tried(number: int) -> Case:
    try:
        return TASKS[number]()
    except Exception:
        return Case("campaign", "a task", failed(traceback.format_exc()[-1000:]))


def _tasks(plan: Plan, root: Path) -> Iterator[Task]:
    """Everything that is tried, after undisturbed runs of each command."""
    measured = {subject.name: kills.measure(subject, root) for subject in SUBJECTS}
    for words in {words[0]: words for words, _ in inputs.READERS.values()}.values():
        inputs.warm_up(words, fresh_folder(root, "scratch"))
    yield from _kills(plan, root, measured)
    yield from _inputs(plan, root)
    yield from _artefacts(plan, root, measured)
    if disk.may_mount():
        yield from _disks(plan, root, measured)


def _kills(plan: Plan, root: Path, measured: Measured) -> Iterator[Task]:
    for number, subject in enumerate(SUBJECTS):
        share = plan.kills * (number + 1) // len(SUBJECTS) - plan.kills * number // len(SUBJECTS)
        undisturbed = measured[subject.name]
        for harm in kills.planned(undisturbed, share, plan.random(subject.name)):
            yield partial(_case, f"kills of {subject.name}", str(harm), kills.kill, subject, undisturbed, harm, root)


def _inputs(plan: Plan, root: Path) -> Iterator[Task]:
    lines = (root / "few.txt").read_text().splitlines()
    for given in inputs.planned(plan.inputs, plan.random("inputs"), lines):
        what = f"{given.what}, {given.suffix}"
        yield partial(_case, f"inputs of {given.reader}", what, inputs.read, given, plan.random("a link"), root)


def _artefacts(plan: Plan, root: Path, measured: Measured) -> Iterator[Task]:
    calls = {subject.words: measured[subject.name].calls for subject in SUBJECTS}
    whole = {artefact.name: artefacts.make(artefact, root, calls) for artefact in artefacts.ARTEFACTS}
    for number, artefact in zip(range(plan.artefacts), cycle(artefacts.ARTEFACTS), strict=False):
        rng = plan.random(f"artefact {number}")
        yield partial(_told, f"damaged {artefact.name}", artefacts.damage, artefact, whole[artefact.name], rng, root)


def _disks(plan: Plan, root: Path, measured: Measured) -> Iterator[Task]:
    for number, subject in zip(range(plan.disks), cycle(SUBJECTS), strict=False):
        part, rng = f"a full disk under {subject.name}", plan.random(f"disk {number}")
        yield partial(_told, part, disk.fill_up, subject, measured[subject.name], rng, root)


def _case(part: str, what: str, act: Callable[..., Verdict], *given: Any) -> Case:
    return Case(part, what, act(*given))


def _told(part: str, act: Callable[..., tuple[str, Verdict]], *given: Any) -> Case:
    """A case whose `what` comes of the act."""
    return Case(part, *act(*given))
