"""The folder of an unfinished run: its checks before a run starts or resumes, its log, and its publication."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from cse.errors import ArtefactError
from cse.files.checksums import verify
from cse.files.replace import sweep
from cse.files.writing import (
    FolderKind,
    check_folder,
    digest,
    file_digest,
    partial_folder,
    read_json,
    replacing,
    reserved,
    write_file,
    write_json,
)
from cse.models.checkpoint import CHECKPOINT, LOG, read_checkpoint_config
from cse.models.config import DevScores
from cse.models.fitted_texts import write_fitted_texts
from cse.models.names import record_file
from cse.training.records import RUN_FILE, STATE_FOLDER, TOKENS_FOLDER
from cse.training.resume import check_resume

BEST_FOLDER = "best"
PUBLISHED_KEY = "published"  # in the mark: digests of the configuration and the log that `publish` copies to the output
RESTART_CURE = "start the run again with `overwrite`"
UNFINISHED_RUN = FolderKind(
    "an unfinished run", RUN_FILE, ("recipe",),
    (
        RUN_FILE, LOG, STATE_FOLDER, f"{STATE_FOLDER}/*.json", f"{STATE_FOLDER}/*.safetensors",
        BEST_FOLDER, *(f"{BEST_FOLDER}/{name}" for name in CHECKPOINT.files),
        f"{TOKENS_FOLDER}-*", f".{TOKENS_FOLDER}-*",
        f".{STATE_FOLDER}.*", f".{BEST_FOLDER}.*", f".{LOG}.*", f".*.{LOG}", f".{RUN_FILE}.*",  # left by a killed write
    ),
)  # fmt: skip


def check_output(output: Path, *, resume: bool, overwrite: bool) -> None:
    """Raise ValueError if a run may not write to `output`, ArtefactError if there is nothing to resume.

    Files that this project did not write are never replaced, a finished checkpoint only with `overwrite`. An unfinished
    run in `output.partial` is continued only with `resume` and deleted only with `overwrite`.
    """
    output, work = Path(output), partial_folder(output)
    check_folder(output)
    sweep(output)
    if _is_left_over(work, output):
        UNFINISHED_RUN.check_replaceable(work)
        UNFINISHED_RUN.delete(work)
    begun = work.exists()
    if output.is_dir() and any(output.iterdir()):
        if resume and not begun:
            raise ValueError(f"{output} is already finished; there is nothing to resume")
        if not overwrite:
            raise ValueError(f"{output} already holds something; give another `output` or pass `overwrite`")
        CHECKPOINT.check_replaceable(output)
    UNFINISHED_RUN.check_replaceable(work)
    if resume:
        check_resume(work, begun)
    elif begun and not overwrite:
        raise ValueError(f"{work} holds an unfinished run; pass `resume` to go on or `overwrite` to drop it")


@contextmanager
def reserved_output(output: Path, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Lock `output` against other runs in the block. Raises as `check_output` does, and if another run holds it."""
    check_folder(output)
    with reserved(output):
        check_output(output, resume=resume, overwrite=overwrite)
        yield


def open_log(work: Path, state: Mapping[str, Any], main_process: bool) -> IO[str]:
    """The run's log, without lines after the `state`'s step; only the main process writes one.

    At step 0 the folder is replaced by one with the run's recipe as its mark. Raises ArtefactError if earlier lines are
    missing or differ from the digest in the state.
    """
    step = state["step"]
    if not main_process:
        return Path(os.devnull).open("a")
    path = work / LOG
    if step == 0:
        with replacing(work, UNFINISHED_RUN) as fresh:
            (fresh / RUN_FILE).write_text(json.dumps({"recipe": state["recipe"]}))
    lines = _lines_until(path, step) if path.exists() else []
    if lines and state.get("log", digest("".join(lines))) != digest("".join(lines)):
        raise ArtefactError(f"{path}: damaged; restore it, or delete it to continue without")
    write_file(path, lambda fresh: fresh.write_text("".join(lines)))
    return path.open("a")


def publish(
    work: Path, output: Path, overwrite: bool, dev: Mapping[str, Any], texts: Iterable[str], backbone: str
) -> None:
    """Replace `output` by the best checkpoint and the log, unless something else was written there during the run.

    The `texts` that the run was fitted on are recorded, with those of its `backbone`. Raises ArtefactError if the best
    checkpoint is damaged or its step is not that of `dev`.
    """
    check_output(output, resume=True, overwrite=overwrite)
    if check_best(work).get("best_step") != dev.get("best_step"):
        raise ArtefactError(f"{work / BEST_FOLDER}: of another run; {RESTART_CURE}")

    published = {PUBLISHED_KEY: _digests(work / BEST_FOLDER, work)}  # for `_is_left_over`
    write_json(work / RUN_FILE, read_json(work / RUN_FILE) | published)
    with replacing(output, CHECKPOINT) as target:
        shutil.copytree(work / BEST_FOLDER, target, dirs_exist_ok=True)
        shutil.copy2(work / LOG, target / LOG)
        write_fitted_texts(target, texts, backbone)
    UNFINISHED_RUN.delete(work)


def _digests(checkpoint: Path, logged: Path) -> list[str]:
    return [file_digest(record_file(checkpoint)), file_digest(logged / LOG)]


def _is_left_over(work: Path, output: Path) -> bool:
    """True if a run was killed after it wrote `output`, so that `work` is only to be deleted, or is empty already."""
    if not (record_file(output).is_file() and (output / LOG).is_file()):
        return False
    if not UNFINISHED_RUN.is_marked(work):
        return work.is_dir() and not any(work.iterdir())
    return read_json(work / RUN_FILE).get(PUBLISHED_KEY) == _digests(output, output)


def check_best(work: Path) -> DevScores:
    """The dev scores of an unfinished run's best checkpoint. Raises ArtefactError if it is missing or damaged."""
    try:
        config = read_checkpoint_config(work / BEST_FOLDER)
    except ArtefactError as error:
        raise ArtefactError(f"{error}, or {RESTART_CURE}") from error
    verify(work / BEST_FOLDER, config.sha256, RESTART_CURE)
    return config.training["dev"]


def _lines_until(path: Path, step: int) -> list[str]:
    """The lines of the steps up to `step`. Raises ArtefactError if one is missing."""
    lines = [line for line in path.read_text(errors="replace").splitlines(keepends=True) if line.endswith("\n")]
    try:
        numbers = [json.loads(line)["step"] for line in lines]
        kept = [number for number in numbers if number <= step]
        whole = kept == list(range(step + 1 - len(kept), step + 1)) and bool(kept) == bool(step)
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise ArtefactError(
            f"{path}: lacks steps before {step}, that of the saved state; restore it, or delete it to continue without"
        )
    return lines[: len(kept)]
