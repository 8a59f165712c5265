"""Index builds that a kill does not set back: `OUTPUT.partial` keeps the vectors until the index is written.

It is the folder of an unfinished run of `cse.encoding.shards`. A killed build encodes the parts that are missing or
damaged, and then indexes all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cse.encoding import shards
from cse.encoding.engine import Update
from cse.encoding.shards import PLAN, ShardPlan
from cse.storage.replace import sweep
from cse.storage.reservation import check_folder, reserved
from cse.storage.writing import FolderKind, partial_folder

if TYPE_CHECKING:
    import numpy as np

    from cse.encoding.encoder import Encoder


UNFINISHED = FolderKind(
    "an unfinished build", PLAN, ("fingerprint", "sha256"), ("part-*", ".part-*", PLAN, f".{PLAN}.*")
)
CURE = "drop it by `overwrite` without `resume`"


@dataclass(frozen=True)
class UnfinishedBuild:
    """The parts of a build of the index folder `output` that is in progress or was killed."""

    output: Path

    @property
    def folder(self) -> Path:
        """The folder of the parts."""
        return partial_folder(self.output)

    @property
    def begun(self) -> bool:
        """True if the folder holds parts of a build."""
        return UNFINISHED.is_marked(self.folder)

    @contextmanager
    def held(self, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Lock the output in the block, and delete the parts when it ends without an error.

        Raises ValueError if another process builds there, for a build that is neither resumed nor overwritten, and, to
        resume, for files of something else. Touches no file there if no build was begun and none is to be kept.
        """
        check_folder(self.output)
        with reserved(self.output):
            sweep(self.folder)
            with suppress(OSError):  # missing, or not empty as a killed deletion may leave it
                self.folder.rmdir()
            if not (resume or self.begun):
                yield
                return
            sweep(self.folder / PLAN)
            UNFINISHED.check_replaceable(self.folder)
            if self.begun and not (resume or overwrite):
                raise ValueError(
                    f"{self.folder}: holds an unfinished build; `resume` goes on with it, `overwrite` drops it"
                )
            yield
            UNFINISHED.delete(self.folder)

    def encoded(
        self,
        opened_by: tuple[str, str | None, str | None],
        encoder: Encoder,
        texts: Callable[[], Iterable[str]],
        batch_size: int | None,
        report: Update,
    ) -> Iterator[tuple[list[str], np.ndarray]]:
        """Encode the texts whose part is missing or damaged, then yield all with their vectors, a block at a time.

        `opened_by` are the name, pooling and family of the model. `report` gets the number of rows of each block and of
        each part that is there. Raises ValueError for parts of other texts, another model or another batch size.
        """
        count, sha256 = shards.count_texts(texts())
        plan = ShardPlan(
            *opened_by, encoder.fingerprint, encoder.dim, normalized=False,
            count=count, sha256=sha256, shards=-(-count // shards.BLOCK), batch_size=batch_size,
        )  # fmt: skip
        encode = partial(encoder.encode, batch_size=batch_size, show_progress_bar=False)
        shards.begin(self.folder, plan, resume=True, cure=CURE)
        shards.write_parts(self.folder, plan, texts(), encode, range(plan.shards), report)
        parts = (self.folder / plan.name(shard) for shard in range(plan.shards))
        blocks = chain.from_iterable(map(shards.part_blocks, parts))
        return shards.paired(self.folder, sha256, blocks, texts())
