"""Commands killed at any moment: what stood under the output's name stays or the new one does, and a rerun heals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cse.storage.replace import recover
from tests.campaign.report import Verdict
from tests.campaign.subjects import Subject, content, fresh_folder, litter, must_run
from tests.campaign.system import Disturbance, run, warm_up


@dataclass(frozen=True)
class Undisturbed:
    """What a subject makes undisturbed, from what, how long it takes and how many calls that change a file it makes."""

    before: str
    after: str
    seconds: float
    calls: int


def measure(subject: Subject, root: Path) -> Undisturbed:
    """Two undisturbed runs, the second one's figures. Raises ValueError where one fails or they make different things.

    What stands before the command runs is kept for `working_folder`.
    """
    folder = fresh_folder(root, "earlier")
    if subject.earlier:
        must_run(subject.earlier, folder)
    folder.rename(_earlier(subject, root))
    results = []
    for traced in (False, True):
        folder = working_folder(subject, root)
        before = content(folder / subject.output)
        ended = run(subject.words, folder, Disturbance(traced=True)) if traced else warm_up(subject.words, folder)
        if ended.code:
            raise ValueError(f"{subject.name} failed without a disturbance: {ended.err.strip()}")
        results.append((before, content(folder / subject.output)))
    if results[0] != results[1]:
        raise ValueError(f"{subject.name}: two undisturbed runs differ")
    return Undisturbed(*results[0], ended.seconds, ended.calls)


def _earlier(subject: Subject, root: Path) -> Path:
    return root / f"before {subject.name}"


def working_folder(subject: Subject, root: Path) -> Path:
    """A folder for the subject's command, with the earlier output in it."""
    return fresh_folder(root, "working", _earlier(subject, root))


def kill(subject: Subject, undisturbed: Undisturbed, harm: Disturbance, root: Path) -> Verdict:
    """What a kill leaves, and what comes of going on after it."""
    folder = working_folder(subject, root)
    ended = run(subject.words, folder, harm)
    if ended.code not in (None, 0):
        return Verdict("failed", f"it ended by itself with {ended.code}: {ended.err.strip()[-300:]}")
    output = folder / subject.output
    gap = not output.exists()
    recover(output)
    stands = content(output)
    names = {undisturbed.before: "old", undisturbed.after: "new"}
    if subject.grows:
        whole = stands == "nothing" or isinstance(json.loads(output.read_text()), dict)
        found = names.get(stands, "partial" if whole else "")
    else:
        found = names.get(stands, "")
    if not found:
        return Verdict("failed", "neither the old output nor the new one stood under the name")
    what = "came through" if ended.code == 0 else f"{'nothing' if stands == 'nothing' else found} stood"
    if gap and found != "old":
        what = f"{what}, recovered"
    return go_on(subject, undisturbed, folder, what)


def go_on(subject: Subject, undisturbed: Undisturbed, folder: Path, what: str) -> Verdict:
    """`what` stood, and whether the result of going on, or of the same again, is the undisturbed one."""
    output = folder / subject.output
    unfinished = folder / "out.partial"
    if content(output) != undisturbed.after or subject.repeats or unfinished.exists():
        for words in subject.again:
            ended = run(words, folder)
            if ended.code == 0:
                break
        if ended.code and content(output) != undisturbed.after:  # else it may say that nothing is left to do
            return Verdict("failed", f"{what}; no rerun went through: {ended.err.strip()[-300:]}")
        if content(output) != undisturbed.after:
            return Verdict("failed", f"{what}; the rerun's result is another than the undisturbed run's")
        if left := [*litter(folder), *([unfinished.name] if unfinished.exists() else [])]:
            return Verdict("failed", f"{what}; the rerun left {', '.join(left)}")
    return Verdict(what)


def planned(subject: Subject, undisturbed: Undisturbed, count: int, rng: Random) -> list[Disturbance]:
    """`count` kills: before each system call while there are enough, drawn calls where not, and at random times."""
    at_calls = min(undisturbed.calls, count * 3 // 4)
    calls = sorted(rng.sample(range(undisturbed.calls), at_calls))
    times = [rng.uniform(0, undisturbed.seconds) for _ in range(count - at_calls)]
    return [*(Disturbance(call=call) for call in calls), *(Disturbance(seconds=at) for at in times)]
