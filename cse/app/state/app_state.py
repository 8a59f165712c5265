"""The state that tabs and endpoints share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.app.models.admission import Admission
from cse.app.models.models import Failure, Models, error_line
from cse.app.models.recent import Recent
from cse.app.state.ballots import Ballots
from cse.app.state.corpora import Corpus, Demo, indexed_corpora
from cse.app.state.own_corpora import OwnCorpora
from cse.app.training.trainings import Trainings
from cse.models.names import BUNDLED

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from cse.analysis.duplicates import NearDuplicates
    from cse.evaluation.results import Scoreboard

RESULTS = BUNDLED / "results"

MOST_MAPS = 64  # of a model each
MOST_SPEEDS = 64
MOST_NEAR = 16  # 1.3 MB each for 50,000 texts
MOST_BYTES = 32 * 2**20  # of maps, of groups, and of near-duplicates
MOST_FRAMES, ROW_BYTES = 16, 300  # tables of maps, and bytes of a row, whose texts are those of the corpus


@dataclass(frozen=True)
class AppState:
    """The state of one app.

    `boards` are the shipped results by task, or why they cannot be read; `admission` says which models visitors may
    add; `speeds` are milliseconds per sentence by `Column.opened_by`; `maps`, `groups`, near-duplicates (`near`) and
    `references`, the cosines of random pairs of a corpus by a model, are cached; `own_corpora` and `ballots` are kept
    by the secret key of a visitor (`cse.app.forms.visitor_key`), as `trainings` are; `corpora` are indexes.
    """

    models: Models
    demo: Demo
    own_corpora: OwnCorpora
    corpora: dict[str, Corpus]
    boards: dict[str, Scoreboard] | Failure
    admission: Admission = field(default_factory=Admission)
    speeds: Recent[float] = field(default_factory=lambda: Recent(MOST_SPEEDS))
    maps: Recent[Any] = field(default_factory=lambda: Recent(MOST_MAPS, most_bytes=MOST_BYTES))
    groups: Recent[tuple[np.ndarray, np.ndarray]] = field(
        default_factory=lambda: Recent(MOST_MAPS, most_bytes=MOST_BYTES)
    )
    frames: Recent[tuple[pd.DataFrame, dict[str, str], tuple[str, ...]]] = field(
        default_factory=lambda: Recent(MOST_FRAMES, most_bytes=MOST_BYTES, size=lambda kept: ROW_BYTES * len(kept[0]))
    )
    near: Recent[NearDuplicates] = field(default_factory=lambda: Recent(MOST_NEAR, most_bytes=MOST_BYTES))
    references: Recent[np.ndarray] = field(default_factory=lambda: Recent(MOST_MAPS, most_bytes=MOST_BYTES))
    ballots: Ballots = field(default_factory=Ballots)
    trainings: Trainings = field(default_factory=Trainings)


def open_state(
    models: Sequence[str],
    indexes: Sequence[Path | str],
    family: str | None = None,
    pooling: str | None = None,
    admission: Admission | None = None,
) -> AppState:
    """Make the state of an app, without reading weights. Raises IndexFolderError for a bad index."""
    admitted = admission or Admission()
    opened, demo = Models(models, family, pooling, fetch=admitted.fetch), Demo()
    corpora = {corpus.key: corpus for corpus in indexed_corpora(indexes, opened)}
    return AppState(opened, demo, OwnCorpora(opened), corpora, open_boards(), admitted)


def open_boards(folder: Path = RESULTS) -> dict[str, Scoreboard] | Failure:
    """Return the scoreboards of the results files in a folder, or a Failure if one is damaged."""
    from cse.evaluation.results import read_scoreboards

    try:
        return read_scoreboards(folder)
    except ValueError as error:
        return Failure(error_line(error))
