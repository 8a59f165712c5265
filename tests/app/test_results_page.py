"""docs/results.md: what stands in its tables is what the shipped results files hold."""

import pytest
from conftest import ROOT
from results_page import TABLES, rows, training

from cse.models.names import BUNDLED_NAMES

PAGE = (ROOT / "docs" / "results.md").read_text()


@pytest.mark.parametrize("task", sorted(TABLES))
def test_a_table_has_the_numbers_of_its_results_file(task: str) -> None:
    assert rows(task, TABLES[task]) in PAGE


@pytest.mark.parametrize("name", BUNDLED_NAMES)
def test_the_first_table_has_the_averages_of_all_seeds(name: str) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |") and training(name) in line)
    assert row.count("|") == 9
