"""The whole campaign: what is tried, shared among processes forked when everything is imported, and counted."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from tests.campaign import artefacts, disk, inputs, kills
from tests.campaign.report import FAILED, Case, Verdict, counted
from tests.campaign.subjects import SUBJECTS, fresh_folder, prepare
from tests.campaign.system import warm_up
from tests.campaign.tracing import may_trace

Task = Callable[[], Case]
Measured = dict[str, kills.Undisturbed]
EVERY = 20.0  # seconds between two lines of progress


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
        """What draws for one purpose, whatever else is drawn."""
        return Random(f"{self.seed} {what}")


QUICK = Plan(kills=22, inputs=30, artefacts=18, disks=10)


def campaign(plan: Plan, root: Path, record: Path) -> None:
    """Carry the plan out in the empty folder `root` and write its record as JSON. Call it in a process of its own.

    Raises ValueError where something fails that nothing disturbs.
    """
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    from tqdm import tqdm

    tqdm.set_lock(threading.RLock())  # its own is the system's, and killed processes would leave many of these
    begun = time.perf_counter()
    prepare(root)
    tasks = list(_tasks(plan, root))
    plan.random("order").shuffle(tasks)  # so that no process has all the long ones
    results = [root / f"cases-{number}.jsonl" for number in range(plan.processes)]
    workers = [_worker(tasks[number :: plan.processes], result) for number, result in enumerate(results)]
    _wait(workers, results, len(tasks))
    cases = [_read(line) for result in results for line in result.read_text().splitlines()]
    missing = len(tasks) - len(cases)
    cases += [Case("campaign", "a process", Verdict(FAILED, "ended early"))] * missing
    made = {"plan": asdict(plan), "calls_traced": may_trace(), "disk": "tmpfs" if disk.may_mount() else "file size"}
    record.write_text(json.dumps({**made, "seconds": round(time.perf_counter() - begun), **counted(cases)}, indent=1))


def _tasks(plan: Plan, root: Path) -> Iterator[Task]:
    """Everything that is tried, after undisturbed runs of each command."""
    measured = {subject.name: kills.measure(subject, root) for subject in SUBJECTS}
    for words, _ in inputs.READERS.values():
        warm_up([word.replace(inputs.FILE, "../few.txt") for word in words], fresh_folder(root, "scratch"))
    yield from _kills(plan, root, measured)
    yield from _inputs(plan, root)
    yield from _artefacts(plan, root)
    yield from _disks(plan, root, measured)


def _kills(plan: Plan, root: Path, measured: Measured) -> Iterator[Task]:
    for number, subject in enumerate(SUBJECTS):
        share = plan.kills * (number + 1) // len(SUBJECTS) - plan.kills * number // len(SUBJECTS)
        undisturbed = measured[subject.name]
        for harm in kills.planned(subject, undisturbed, share, plan.random(subject.name)):
            yield partial(_case, f"kills of {subject.name}", harm.shown, kills.kill, subject, undisturbed, harm, root)


def _inputs(plan: Plan, root: Path) -> Iterator[Task]:
    lines = (root / "few.txt").read_text().splitlines()
    for given in inputs.planned(plan.inputs, plan.random("inputs"), lines):
        what = f"{given.what}, {given.suffix}"
        yield partial(_case, f"inputs of {given.reader}", what, inputs.read, given, plan.random("a link"), root)


def _artefacts(plan: Plan, root: Path) -> Iterator[Task]:
    whole = {artefact.name: artefacts.make(artefact, root) for artefact in artefacts.ARTEFACTS}
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


def _worker(tasks: Sequence[Task], result: Path) -> int:
    """A process that does the tasks and writes a line of JSON for each; its number."""
    result.touch()
    worker = os.fork()
    if worker:
        return worker
    try:
        with result.open("a") as lines:
            for task in tasks:
                try:
                    case = task()
                except Exception:
                    case = Case("campaign", "a task", Verdict(FAILED, traceback.format_exc()[-1000:]))
                lines.write(json.dumps(asdict(case)) + "\n")
                lines.flush()
    finally:
        os._exit(0)


def _read(line: str) -> Case:
    values = json.loads(line)
    return Case(values["part"], values["what"], Verdict(**values["verdict"]))


def _wait(workers: Sequence[int], results: Sequence[Path], count: int) -> None:
    """Wait for all workers, with a line on stderr now and then."""
    for worker in workers:
        shown = 0.0
        while not os.waitpid(worker, os.WNOHANG)[0]:
            time.sleep(0.05)
            if time.perf_counter() - shown > EVERY:
                shown = time.perf_counter()
                done = sum(len(result.read_text().splitlines()) for result in results)
                print(f"{done} of {count}", file=sys.stderr, flush=True)  # noqa: T201
