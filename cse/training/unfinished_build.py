"""Resumable index builds: each encoded block of vectors is kept until the index is written.

The folder `OUTPUT.partial` holds `build.json` with the model's fingerprint and the options; for each block
`block-000000.npy`, (n, d) float32, and a `.json` with its digest and that of its sentences; and `state`, the unfinished
index.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from cse.encoding.shards import MANIFEST, record, survey
from cse.errors import ArtefactError
from cse.storage.replace import sweep
from cse.storage.reservation import hold
from cse.storage.writing import FolderKind, file_digest, partial_folder, read_json, write_file, write_folder, write_json

MARK, STATE = "build.json", "state"
UNFINISHED = FolderKind(
    "an unfinished build", MARK, ("fingerprint",),
    (MARK, f".{MARK}.*", "block-*", ".block-*", STATE, f"{STATE}/*", f".{STATE}.*"),
)  # fmt: skip

Encode = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class UnfinishedBuild:
    """The files in `folder` of a build that is in progress or was killed.

    A `with` block locks out other processes from `check` or `begin` on, and deletes the files if it ends without error.
    """

    folder: Path
    _held: list[IO[bytes]] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, output: Path) -> UnfinishedBuild:
        """The unfinished build of the index folder `output`."""
        return cls(partial_folder(output))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None:
                self.drop()
        finally:
            while self._held:
                self._held.pop().close()

    @property
    def state(self) -> Path:
        """The folder for the state of the unfinished index."""
        return self.folder / STATE

    @property
    def done(self) -> bool:
        """True if the index was written and only the deletion is left: the mark says so, or the folder is empty."""
        if self._begun():
            return read_json(self.folder / MARK).get("done") is True
        return self.folder.is_dir() and not any(self.folder.iterdir())

    def check(
        self, *, resume: bool, overwrite: bool, is_built: Callable[[str], bool], texts: Callable[[], Iterable[str]]
    ) -> None:
        """Raise ValueError for a build that is neither resumed nor overwritten, and for files of something else.

        A build that is done is deleted, unless it is resumed and `is_built` is true of the sha256 of `texts`.
        """
        self._hold()
        if self.done:
            if resume and is_built(survey(texts())[1]):
                return
            self.drop()
        begun = self._begun()
        if begun or resume:
            UNFINISHED.check_replaceable(self.folder)
        if begun and not (resume or overwrite):
            raise ValueError(
                f"{self.folder}: holds an unfinished build; `resume` goes on with it, `overwrite` drops it"
            )

    def begin(self, fingerprint: str, batch_size: int | None, vectors: Path | None) -> None:
        """Start the build or continue the same one: of a model's vectors, or of those in a finished folder `vectors`.

        Raises ValueError if another build was begun here.
        """
        plan = {
            "fingerprint": fingerprint,
            "batch_size": batch_size,
            "vectors": vectors and file_digest(vectors / MANIFEST),
        }
        if not self._begun():
            write_folder(self.folder, lambda fresh: (fresh / MARK).write_text(json.dumps(plan)), UNFINISHED)
        self._hold()
        begun = read_json(self.folder / MARK)
        if odd := next((name for name in plan if begun.get(name) != plan[name]), None):
            raise ValueError(
                f"{self.folder}: was begun with {odd} {begun.get(odd)!r}, not {plan[odd]!r}; repeat its options, or "
                "drop it by `overwrite` without `resume`"
            )

    def keeping(self, encode: Encode) -> Encode:
        """`encode` for successive blocks; it saves each, and reads a saved one instead of encoding it again."""
        number = -1

        def kept(texts: list[str]) -> np.ndarray:
            nonlocal number
            number += 1
            return self._block(self.folder / f"block-{number:06}.npy", texts, encode)

        return kept

    def _block(self, path: Path, texts: list[str], encode: Encode) -> np.ndarray:
        sentences, written = survey(texts)[1], _read(path.with_suffix(".json"))
        if written.get("sentences", sentences) != sentences:
            raise ValueError(
                f"{path}: is of other sentences; give the corpus that the build was begun with, or drop it by "
                "`overwrite` without `resume`"
            )
        if path.is_file() and written == {**record(path), "sentences": sentences}:
            return np.load(path, allow_pickle=False)
        vectors = encode(texts)
        write_file(path, partial(_save, vectors))
        write_json(path.with_suffix(".json"), {**record(path), "sentences": sentences})
        return vectors

    def drop(self) -> None:
        """Mark the build as done and delete it, the mark last, so that an interrupted deletion is recognised.

        Files that are no part of a build stay, in a folder that is then no unfinished build.
        """
        if self.done or self._begun():
            self._mark_done()
            for path in self.folder.iterdir():
                if path.name != MARK and any(fnmatch(path.name, pattern) for pattern in UNFINISHED.files):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            (self.folder / MARK).unlink(missing_ok=True)
            with suppress(OSError):  # not empty
                self.folder.rmdir()

    def _mark_done(self) -> None:
        if not self.done:
            with suppress(OSError):  # full disk: deleting makes room, and after a kill the build can be resumed
                write_json(self.folder / MARK, {**read_json(self.folder / MARK), "done": True})

    def _hold(self) -> None:
        """Lock the build against other processes until this one or the `with` block ends."""
        if not self._held and self._begun():
            mark = (self.folder / MARK).open("rb")
            try:
                hold(mark)
            except ValueError:
                mark.close()
                raise
            self._held.append(mark)

    def _begun(self) -> bool:
        sweep(self.folder)
        return UNFINISHED.is_marked(self.folder)


def _save(vectors: np.ndarray, path: Path) -> None:
    np.save(path, vectors)


def _read(path: Path) -> dict[str, Any]:
    """The content of the file, empty if it is missing or damaged."""
    try:
        return read_json(path)
    except ArtefactError:
        return {}
