"""The state that tabs and endpoints share: models, demo corpus and what can be searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cse.model_names import BUNDLED
from ui.corpora import Corpus, Demo, indexed_corpora
from ui.models import Failure, Models

if TYPE_CHECKING:
    from cse.benchmark.scoreboard import Scoreboard

RESULTS = BUNDLED / "results"


@dataclass(frozen=True)
class AppState:
    """What one app works with; `boards` are the shipped results by task, or why they cannot be read."""

    models: Models
    demo: Demo
    corpora: dict[str, Corpus]
    boards: dict[str, Scoreboard] | Failure


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
