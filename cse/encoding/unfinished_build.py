"""Index builds that a kill does not set back: `OUTPUT.partial` keeps the vectors until the index is written.

It is a folder of encoded parts (`cse.encoding.shards`). A killed build encodes the parts that are missing, and then
indexes all of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cse.encoding import shards
from cse.encoding.shards import MANIFEST, PLAN, Report, ShardPlan
from cse.storage.replace import sweep
from cse.storage.reservation import reserved
from cse.storage.writing import FolderKind, partial_folder, read_json, write_json

if TYPE_CHECKING:
    import numpy as np

    from cse.encoding.encoder import Encoder
    from cse.models.names import ModelReference

Texts = Callable[[], Iterable[str]]

FILES = ("part-*", ".part-*", PLAN, f".{PLAN}.*", MANIFEST, f".{MANIFEST}.*")
ELSE = "or drop it by `overwrite` without `resume`"


@dataclass(frozen=True)
class UnfinishedBuild:
    """The parts in `folder` of a build that is in progress or was killed."""

    folder: Path

    @classmethod
    def of(cls, output: Path) -> UnfinishedBuild:
        """The unfinished build of the index folder `output`."""
        return cls(partial_folder(output))

    @property
    def begun(self) -> bool:
        """True if the folder holds parts of a build."""
        return self._kind.is_marked(self.folder)

    @contextmanager
    def held(self, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Lock the folder in the block, and delete the parts when it ends without an error.

        Raises ValueError if another process builds there, for a build that is neither resumed nor overwritten, and, to
        resume, for files of something else. Does nothing if no build was begun and none is to be kept.
        """
        sweep(self.folder)
        with suppress(OSError):  # missing, or not empty as a killed deletion may leave it
            self.folder.rmdir()
        if not (resume or self.begun):
            yield
            return
        with reserved(self.folder):
            sweep(self.folder / PLAN)
            self._kind.check_replaceable(self.folder)
            if self.begun and not (resume or overwrite):
                raise ValueError(
                    f"{self.folder}: holds an unfinished build; `resume` goes on with it, `overwrite` drops it"
                )
            yield
            self._drop()

    def encoded(
        self, reference: ModelReference, encoder: Encoder, texts: Texts, batch_size: int | None, report: Report
    ) -> Iterator[tuple[list[str], np.ndarray]]:
        """Encode the texts whose part is missing or damaged, then yield all with their vectors, a block at a time.

        `report` gets the number of rows of each block and of each part that is there. Raises ValueError for parts of
        other texts, another model or another batch size.
        """
        count, sha256 = shards.survey(texts())
        plan = ShardPlan(
            reference.name, reference.pooling, reference.family, encoder.fingerprint, encoder.dim, normalized=False,
            count=count, sha256=sha256, shards=-(-count // shards.BLOCK), batch_size=batch_size,
        )  # fmt: skip
        if self.begun:
            self._check_same(plan)
        if not self._complete(plan):
            encode = partial(encoder.encode, batch_size=batch_size, show_progress_bar=False)
            shards.begin(self.folder, plan, resume=True)
            shards.write_parts(self.folder, plan, texts(), encode, range(plan.shards), report)
            shards.finish(self.folder, plan)
        return shards.with_texts(self.folder, texts())

    @property
    def _kind(self) -> FolderKind:
        mark = MANIFEST if (self.folder / MANIFEST).exists() else PLAN
        keys = ("fingerprint", "sha256", "parts") if mark == MANIFEST else ("fingerprint", "sha256")
        return FolderKind("an unfinished build", mark, keys, FILES)

    def _check_same(self, plan: ShardPlan) -> None:
        begun, wanted = read_json(self.folder / self._kind.mark), asdict(plan)
        if begun["sha256"] != plan.sha256:
            raise ValueError(
                f"{self.folder}: was begun with other sentences; give the corpus it was begun with, {ELSE}"
            )
        if odd := next((name for name in wanted if begun.get(name) != wanted[name]), None):
            raise ValueError(
                f"{self.folder}: was begun with {odd} {begun.get(odd)!r}, not {wanted[odd]!r}; repeat its options, "
                + ELSE
            )

    def _complete(self, plan: ShardPlan) -> bool:
        """True if no part is missing or damaged; otherwise a folder of all parts becomes one of a run again."""
        if not (self.folder / MANIFEST).is_file():
            return False
        recorded = read_json(self.folder / MANIFEST)["parts"]
        paths = {self.folder / name: written for name, written in recorded.items()}
        whole = {path: written for path, written in paths.items() if path.is_file() and shards.record(path) == written}
        if len(whole) == plan.shards:
            return True
        for path, written in whole.items():
            write_json(path.with_suffix(".json"), written)
        write_json(self.folder / PLAN, asdict(plan))
        (self.folder / MANIFEST).unlink()
        return False

    def _drop(self) -> None:
        """Delete the parts, the mark last, so that an interrupted deletion is recognised; other files stay."""
        mark = self.folder / self._kind.mark
        for path in self.folder.glob("*"):
            if path != mark and any(fnmatch(path.name, pattern) for pattern in FILES):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        mark.unlink(missing_ok=True)
        with suppress(OSError):  # missing, or not empty
            self.folder.rmdir()
