"""Commands killed at any moment: what stood under the output's name stays or the new one does, and a rerun heals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cse.files.replace import recover
from tests.campaign.subjects import Subject, content, fresh_folder, litter
from tests.campaign.system import Kill, must_run, run
from tests.campaign.verdicts import Verdict, failed


@dataclass(frozen=True)
class Undisturbed:
    """An output before and after its command, the command's seconds, and how many of its calls change a file."""

    before: str
    after: str
    seconds: float
    calls: int


def measure(subject: Subject, root: Path) -> Undisturbed:
    """Figures of an undisturbed run, which each rerun after a kill has to come to. Raises ValueError where it fails.

    What stands before the command runs is kept for `working_folder`.
    """
    folder = fresh_folder(root, "earlier")
    if subject.earlier:
        must_run(subject.earlier, folder)
    folder.rename(_earlier(subject, root))
    folder = working_folder(subject, root)
    before = content(folder / subject.output)
    ended = must_run(subject.words, folder)
    return Undisturbed(before, content(folder / subject.output), ended.seconds, ended.calls)


def _earlier(subject: Subject, root: Path) -> Path:
    return root / f"before {subject.name}"


def working_folder(subject: Subject, root: Path) -> Path:
    """A folder for the subject's command, with the earlier output in it."""
    return fresh_folder(root, "working", _earlier(subject, root))


def kill(subject: Subject, undisturbed: Undisturbed, harm: Kill, root: Path) -> Verdict:
    """The state that a kill leaves, and the outcome of continuing after it."""
    folder = working_folder(subject, root)
    ended = run(subject.words, folder, harm)
    if ended.code not in (None, 0):
        return failed(f"it ended by itself: {ended}")
    recover(folder / subject.output)
    found = _found(subject, undisturbed, folder / subject.output)
    if not found:
        return failed("neither the old output nor the new one stood under the name")
    return go_on(subject, undisturbed, folder, "came through" if ended.code == 0 else f"{found} stood")


def _found(subject: Subject, undisturbed: Undisturbed, output: Path) -> str:
    """The kind of output under the output's name, in a word; empty if it is none of the allowed kinds."""
    stands = content(output)
    if stands in (undisturbed.before, undisturbed.after):
        return "nothing" if stands == "nothing" else "old" if stands == undisturbed.before else "new"
    partial = subject.grows and (stands == "nothing" or isinstance(json.loads(output.read_text()), dict))
    return "partial" if partial else ""


def go_on(subject: Subject, undisturbed: Undisturbed, folder: Path, what: str) -> Verdict:
    """`what` stood, and whether the result of continuing, or of the same again, is the undisturbed one."""
    output, unfinished = folder / subject.output, folder / "out.partial"
    if content(output) == undisturbed.after and not subject.repeats and not unfinished.exists():
        return Verdict(what)
    for words in subject.again:
        ended = run(words, folder)
        if ended.code == 0:
            break
    if content(output) != undisturbed.after:  # a command that failed may say that nothing is left to do
        reason = f"no rerun went through: {ended}" if ended.code else "the rerun's result is another"
        return failed(f"{what}; {reason}")
    if left := [*litter(folder), *([unfinished.name] if unfinished.exists() else [])]:
        return failed(f"{what}; the rerun left {', '.join(left)}")
    return Verdict(what)


def planned(undisturbed: Undisturbed, count: int, rng: Random) -> list[Kill]:
    """`count` kills: before each call while there are enough, drawn calls where not, and at random times."""
    at_calls = min(undisturbed.calls, count * 3 // 4)
    calls = sorted(rng.sample(range(undisturbed.calls), at_calls))
    times = [rng.uniform(1e-4, undisturbed.seconds) for _ in range(count - at_calls)]
    return [*(Kill(call=call) for call in calls), *(Kill(seconds=at) for at in times)]
