"""The state that tabs and endpoints share: models, demo corpus and what can be searched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from cse.model_names import BUNDLED
from ui.canvas import ModelMap
from ui.corpora import Corpus, Demo, indexed_corpora
from ui.models import Failure, Models

if TYPE_CHECKING:
    from cse.benchmark.scoreboard import Scoreboard

RESULTS = BUNDLED / "results"

T = TypeVar("T")
MOST_MAPS = 16
MOST_OWN = 8  # visitors' corpora in memory


class Recent(Generic[T]):
    """The results last put in or asked for, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most, self._results = most, OrderedDict[Hashable, T]()

    def get(self, key: Hashable) -> T | None:
        """The result of a key, None where it is not kept."""
        if key in self._results:
            self._results.move_to_end(key)
        return self._results.get(key)

    def put(self, key: Hashable, result: T) -> None:
        """Keep a result; the one that was not asked for the longest may go."""
        self._results[key] = result
        while len(self._results) > self._most:
            self._results.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Keep a result no longer."""
        self._results.pop(key, None)


@dataclass(frozen=True)
class AppState:
    """What one app works with.

    `boards` are the shipped results by task, or why they cannot be read; `maps` are kept by fingerprints, texts and
    seed, `own_corpora` by a secret of the visitor's.
    """

    models: Models
    demo: Demo
    corpora: dict[str, Corpus]
    boards: dict[str, Scoreboard] | Failure
    maps: Recent[dict[str, ModelMap]] = field(default_factory=lambda: Recent(MOST_MAPS))
    own_corpora: Recent[Corpus] = field(default_factory=lambda: Recent(MOST_OWN))


def open_state(
    models: Sequence[str], indexes: Sequence[Path], family: str | None = None, pooling: str | None = None
) -> AppState:
    """What one app works with; no weights are read yet. Raises IndexFolderError for a bad folder."""
    opened, demo = Models(models, family, pooling), Demo()
    corpora = [demo.corpus(opened.columns), *indexed_corpora(indexes, opened)]
    return AppState(opened, demo, {corpus.key: corpus for corpus in corpora}, open_boards())


def open_boards(folder: Path = RESULTS) -> dict[str, Scoreboard] | Failure:
    """The scoreboards of the results files in a folder; a damaged one leaves the rest of the app as it is."""
    from cse.benchmark.scoreboard import read_scoreboards

    try:
        return read_scoreboards(folder)
    except ValueError as error:
        return Failure(str(error))
