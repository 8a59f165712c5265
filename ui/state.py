"""The state that tabs and endpoints share: models, demo corpus and what can be searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ui.corpora import Corpus, Demo, indexed_corpora
from ui.models import Models


@dataclass(frozen=True)
class AppState:
    """What one app works with."""

    models: Models
    demo: Demo
    corpora: dict[str, Corpus]


def open_state(
    models: Sequence[str], indexes: Sequence[Path], family: str | None = None, pooling: str | None = None
) -> AppState:
    """What one app works with; no weights are read yet. Raises IndexFolderError for a bad folder."""
    opened, demo = Models(models, family, pooling), Demo()
    corpora = [demo.corpus(opened.columns), *indexed_corpora(indexes, opened)]
    return AppState(opened, demo, {corpus.key: corpus for corpus in corpora})
