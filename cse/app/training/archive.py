"""Models as .zip files: written to be taken away, and read from visitors, who may send anything."""

from __future__ import annotations

import shutil
import stat
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cse.adaptation.workspace import CANDIDATE
from cse.files.writing import DISK_FULL_ERRORS
from cse.models.names import CONFIG

if TYPE_CHECKING:
    from cse.app.training.process import CommandProcess

MOST_FILES, DEEPEST = 200, 4
READ = (".json", ".safetensors")
VOCABULARIES = ("vocab.txt", "merges.txt")
EXPORT, PREFIX_CODE = "export", "sentence-transformers"
PATIENCE = 300.0  # seconds of an export
BLOCK = 2**20


def add_export(model: Path, folder: Path, start: Callable[[list[str]], CommandProcess]) -> None:
    """Write the folder `EXPORT` for a checkpoint without its backbone, which sentence-transformers cannot open.

    `start` runs a command in `folder`. Raises ValueError if the command fails.
    """
    from cse.models.checkpoint import CHECKPOINT, read_checkpoint_config

    if not CHECKPOINT.is_marked(model) or read_checkpoint_config(model).whole or (folder / EXPORT).exists():
        return
    process = start(["export", str(model), "--to", PREFIX_CODE, "--output", EXPORT])
    if not process.ended(PATIENCE):
        process.end()
    if process.failure:
        raise ValueError(process.failure)


def opened_by(model: Path) -> str:
    """Return how the unpacked .zip of a model is opened."""
    from cse.models.checkpoint import CHECKPOINT, read_checkpoint_config

    call = 'SentenceTransformer("FOLDER"'
    if model.with_name(EXPORT).is_dir():
        return (
            f"Unpack it and open it in sentence-transformers with {call}, trust_remote_code=True): its folder has the "
            "code that reads the prefix. Without that argument the prefix is left out, and the vectors are wrong."
        )
    record = read_checkpoint_config(model) if CHECKPOINT.is_marked(model) else None
    reason = "" if record is None else record.reason or ("" if record.whole else "lacks its backbone")
    if reason:
        return f'Unpack it and open it with cse.load("FOLDER"). sentence-transformers cannot, as it {reason}.'
    return f'Unpack it and open it in sentence-transformers with {call}), or with cse.load("FOLDER").'


def write_archive(model: Path, target: Path, name: str) -> None:
    """Write the folder of a model as a .zip with the one folder `name`; other models within it are left out."""
    exported = model.with_name(EXPORT)
    source = exported if exported.is_dir() else model
    partial = target.with_suffix(".writing")
    try:
        with zipfile.ZipFile(partial, "w") as archive:  # weights do not compress
            for path in sorted(source.rglob("*")):
                inside = path.relative_to(source)
                if path.is_file() and inside.parts[0] != CANDIDATE:
                    archive.write(path, f"{name}/{inside.as_posix()}")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def unpack_model(archive: Path, folder: Path, most: int) -> Path:
    """Unpack the model in a .zip of at most `most` bytes to an empty folder and return its own folder within.

    Only .json and .safetensors files and vocabularies are read; all others stay in the archive. Raises ValueError for
    a file that is no .zip, that has links, too many or too large files, or no model; nothing is left then.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            wanted = [each for each in checked_members(opened.infolist(), most) if is_read(each.filename)]
            left = most
            for member in wanted:
                left -= unpack_member(opened, member, folder.joinpath(*PurePosixPath(member.filename).parts), left)
        return model_in(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        if type(error) is ValueError or getattr(error, "errno", None) in DISK_FULL_ERRORS:
            raise
        # The libraries that decompress raise errors of any type for a damaged archive.
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise ValueError(f"The file cannot be read as a .zip ({reason}); pack the model's folder again.") from error


def checked_members(members: Sequence[zipfile.ZipInfo], most: int) -> list[zipfile.ZipInfo]:
    """Return the files of an archive. Raises ValueError for links, paths to the outside, and beyond the bounds."""
    if len(members) > MOST_FILES:
        raise ValueError(f"The archive has {len(members):,} entries; a model has at most {MOST_FILES}.")
    if (total := sum(each.file_size for each in members)) > most:
        raise ValueError(f"The archive unpacks to {total / 1e9:.1f} GB; give at most {most / 1e9:.1f} GB.")
    names = [each.filename for each in members]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"The archive has {twice[:80]!r} twice; pack the model's folder again.")
    for each in members:
        kind, path = stat.S_IFMT(each.external_attr >> 16), PurePosixPath(each.filename)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ValueError(f"The archive has a link or device, {each.filename[:80]!r}; pack plain files alone.")
        if path.is_absolute() or ".." in path.parts or "\\" in each.filename or ":" in each.filename:
            raise ValueError(f"The archive has the path {each.filename[:80]!r}, which leads out of it; pack it again.")
        if len(path.parts) > DEEPEST:
            raise ValueError(f"The archive has folders deeper than {DEEPEST}; pack the model's own folder.")
    return [each for each in members if not each.is_dir()]


def is_read(name: str) -> bool:
    """True for the files that opening a model reads."""
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "__")) for part in path.parts)  # what systems add
    return not hidden and (path.suffix in READ or path.name in VOCABULARIES)


def unpack_member(opened: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, most: int) -> int:
    """Write a file of an archive and return its bytes. Raises ValueError beyond `most`, whatever the archive says."""
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with opened.open(member) as source, target.open("xb") as file:
        while block := source.read(BLOCK):
            size += len(block)
            if size > most:
                raise ValueError("The archive unpacks to more than it says; pack the model's folder again.")
            file.write(block)
    return size


def model_in(folder: Path) -> Path:
    """Return the outermost folder with a configuration and weights. Raises ValueError if there is none."""
    found = sorted(folder.rglob(CONFIG), key=lambda path: len(path.parts))
    if not found:
        raise ValueError(f"The archive has no {CONFIG}; pack the folder of a model.")
    place = found[0].parent
    if not list(place.glob("*.safetensors")):
        raise ValueError("The archive has no weights as .safetensors; pickled weights are never opened.")
    return place
