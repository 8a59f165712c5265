"""A disk that fills up while an output is written: an error in one line, the earlier output kept, a rerun heals."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.campaign.kills import Undisturbed, go_on, working_folder
from tests.campaign.report import Verdict
from tests.campaign.subjects import Subject, content
from tests.campaign.system import Disturbance, run

PAGE = 4096
LARGEST = 60_000  # bytes; more than any file here has
FULL = 3  # the exit code


def may_mount() -> bool:
    """Whether a small file system can be mounted here."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def fill_up(subject: Subject, undisturbed: Undisturbed, rng: Random, root: Path) -> tuple[str, Verdict]:
    """How much room a command got beyond what lay there, and what came of it and of going on with all the room.

    Where nothing can be mounted, no file may grow beyond a drawn size instead.
    """
    folder = working_folder(subject, root)
    if not may_mount():
        size = rng.randrange(1, LARGEST)
        verdict = _filled(subject, undisturbed, folder, Disturbance(file_size=size))
        return f"{subject.name}: files of {size} bytes", verdict
    pages = rng.choice((0, 1, 2, 3, rng.randrange(40), rng.randrange(120)))
    with _small_disk(folder, pages):
        return f"{subject.name}: {pages} free pages", _filled(subject, undisturbed, folder, Disturbance())


def _filled(subject: Subject, undisturbed: Undisturbed, folder: Path, harm: Disturbance) -> Verdict:
    ended = run(subject.words, folder, harm)
    shown = f"exit code {ended.code}: {ended.err.strip()[-400:]}"
    stands = content(folder / subject.output)
    if ended.code == 0:
        what = "there was room"
    elif ended.code != FULL or len(ended.error_lines) != 1 or "Traceback" in ended.err:
        return Verdict("failed", f"no clear error: {shown}")
    else:
        what = "refused"
    if stands not in (undisturbed.before, undisturbed.after) and not subject.grows:
        return Verdict("failed", f"neither the old output nor the new one stood under the name: {shown}")
    if os.path.ismount(folder):
        _resize(folder, 0)
    return go_on(subject, undisturbed, folder, what)


@contextmanager
def _small_disk(folder: Path, pages: int) -> Iterator[None]:
    """Meanwhile `folder` is a file system of its own, in memory, with what lay there and so many free pages."""
    aside = folder.rename(folder.with_name(f"{folder.name}.aside"))
    folder.mkdir()
    _mount("-t", "tmpfs", "tmpfs", str(folder))
    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        shutil.rmtree(aside)
        state = os.statvfs(folder)
        _resize(folder, (state.f_blocks - state.f_bfree) * state.f_frsize + pages * PAGE)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _resize(folder: Path, size: int) -> None:
    _mount("-o", f"remount,size={size}", str(folder))


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
