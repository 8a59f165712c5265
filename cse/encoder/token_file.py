"""Texts as token ids in memory-mapped files, each tokenised once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.encoder.rows import runs

if TYPE_CHECKING:
    from typing_extensions import Self

PARTS = ("ids", "starts")  # suffixes of a file's two arrays


@dataclass(frozen=True)
class TokenFile:
    """Token ids (T,) of texts, and where each of these starts (s,) int64; the arrays of a file are memory-mapped."""

    ids: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, contents: Sequence[Sequence[int]], kind: type = np.int32) -> Self:
        """Return the ids of texts, in memory."""
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        return cls(np.fromiter(chain.from_iterable(contents), kind, lengths.sum()), np.cumsum(lengths) - lengths)

    @classmethod
    def open(cls, folder: Path, name: str, kind: type = np.uint16) -> Self:
        """Map `folder/name.ids`, numbers of this `kind`, and `folder/name.starts`."""
        paths = [folder / f"{name}.{part}" for part in PARTS]
        return cls(*(
            np.asarray(np.memmap(path, dtype, "r")) if path.stat().st_size else np.empty(0, dtype)
            for path, dtype in zip(paths, (kind, np.int64), strict=True)
        ))  # fmt: skip

    @classmethod
    def write(
        cls, folder: Path, names: Sequence[str], blocks: Iterable[tuple[str, Sequence[Sequence[int]]]], kind: type
    ) -> dict[str, int]:
        """Write files of these `names`, blocks of texts' ids after one another, and return the tokens of each file."""
        counts = dict.fromkeys(names, 0)
        with ExitStack() as stack:
            files = {
                name: [stack.enter_context((folder / f"{name}.{part}").open("wb")) for part in PARTS] for name in names
            }
            for name, contents in blocks:
                block = cls.of(contents, kind)
                for file, array in zip(files[name], (block.ids, block.starts + counts[name]), strict=True):
                    file.write(array.tobytes())
                counts[name] += len(block.ids)
        return counts

    def texts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids (n,) of texts of these numbers (B,), one after the other, and how many each has (B,)."""
        starts, ends = self.starts[numbers], self.starts.take(numbers + 1, mode="clip")
        ends[numbers + 1 == len(self.starts)] = len(self.ids)
        return self.ids[runs(starts, ends - starts)], ends - starts

    def rows(self, count: int, length: int, rng: np.random.Generator) -> np.ndarray:
        """Return (count, length) int64 ids, each row from a random text's start, over the following texts."""
        starts = np.minimum(self.starts[rng.integers(len(self.starts), size=count)], len(self.ids) - length)
        return self.ids[starts[:, None] + np.arange(length)].astype(np.int64)

    def counts(self, vocabulary: int) -> np.ndarray:
        """Return (V,) float32 counts of each of `vocabulary` tokens."""
        return np.bincount(self.ids, minlength=vocabulary).astype(np.float32)
