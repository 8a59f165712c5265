"""Bounds in bytes on what the server keeps for visitors, whatever they send."""

from pathlib import Path

import numpy as np
import pytest

from cse.analysis.duplicates import Forest, NearDuplicates
from cse.app.corpus.corpora import Demo, IndexedCorpus
from cse.app.corpus.own import OwnCorpora
from cse.app.corpus.reading import MOST_HEADER, preview
from cse.app.models.models import Models
from cse.app.models.recent import Recent
from cse.app.results.map import ModelMap
from cse.app.state import AppState

MB = 2**20


@pytest.fixture
def state() -> AppState:
    models = Models([])
    return AppState(models, Demo(), OwnCorpora(models), dict[str, IndexedCorpus](), {})


def near_duplicates() -> NearDuplicates:
    return NearDuplicates(Forest(0, np.zeros((MB // 8, 2), np.int64), np.zeros(MB // 4), 0.9), (), 5.0)


def many_groups() -> tuple[np.ndarray, ...]:
    return np.zeros(MB // 4), np.zeros(MB // 4)


def large_map() -> ModelMap:
    return ModelMap(np.zeros((MB // 4, 2)), np.zeros(0), np.zeros(0), None, None, None)


@pytest.mark.parametrize(("name", "make"), [("maps", large_map), ("groups", many_groups), ("near", near_duplicates)])
def test_maps_groups_and_near_duplicates_have_at_most_32_mb_each(state: AppState, name, make) -> None:
    kept: Recent = getattr(state, name)
    for number in range(12):
        kept.put(number, make())
    assert [number for number in range(12) if kept.get(number) is not None] == list(range(5, 12))
    assert 7 * 4 * MB < kept.size <= 32 * MB


def test_a_table_whose_header_is_too_long_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(",".join(f"column {number:06}" for number in range(1900)) + "\n" + "1," * 1899 + "a cat\n")
    assert len(preview(str(file)).columns) == 1900
    file.write_text(",".join(f"column {number:050}" for number in range(1900)) + "\n" + "1," * 1899 + "a cat\n")
    with pytest.raises(ValueError, match=f"columns have 108,300 characters; give at most {MOST_HEADER:,}"):
        preview(str(file))
