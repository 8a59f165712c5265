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
from tests.campaign.subjects import Subject, content
from tests.campaign.system import run
from tests.campaign.verdicts import Verdict, failed

PAGE = 4096
FULL = 3  # the exit code


def may_mount() -> bool:
    """Whether a small file system can be mounted here."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def fill_up(subject: Subject, undisturbed: Undisturbed, rng: Random, root: Path) -> tuple[str, Verdict]:
    """How much room a command got beyond its input, and what came of it and of continuing with all the room."""
    folder = working_folder(subject, root)
    pages = rng.choice((0, 1, 2, 3, rng.randrange(40), rng.randrange(120)))
    with _small_disk(folder, pages):
        return f"{subject.name}: {pages} free pages", _filled(subject, undisturbed, folder)


def _filled(subject: Subject, undisturbed: Undisturbed, folder: Path) -> Verdict:
    ended = run(subject.words, folder)
    if ended.code and not ended.refuses(FULL):
        return failed(f"no clear error: {ended}")
    if content(folder / subject.output) not in (undisturbed.before, undisturbed.after) and not subject.grows:
        return failed(f"neither the old output nor the new one stood under the name: {ended}")
    _resize(folder, 0)
    return go_on(subject, undisturbed, folder, "refused" if ended.code else "there was room")


@contextmanager
def _small_disk(folder: Path, pages: int) -> Iterator[None]:
    """Make `folder` a file system in memory with its content and so many free pages."""
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
