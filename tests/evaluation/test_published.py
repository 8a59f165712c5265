"""The published rows are self-consistent facts, each found by its table and by what it is a row of."""

from pathlib import Path

import pytest

from cse.evaluation.published import PAPERS, PUBLISHED_FILE, ROWS, SETS, read_rows
from cse.methods.catalogue import METHODS, SUPERVISED, UNTRAINED
from cse.models.names import PUBLISHED_IDS

RUNNABLE = [row for row in ROWS if not row.copied]


def test_published_averages_are_the_means_of_their_rounded_rows() -> None:
    whole = [row for row in ROWS if row.values]
    assert len(whole) > 15
    for row in whole:
        assert row.average is not None
        sets = SETS.get(row.task, SETS["sts"])
        mean = sum(row.values[name] for name in sets) / len(sets)
        # Means over seeds do not add up to the last digit, nor does SimCSE's transfer row that PromptBERT repeats.
        slack = 0.021 if row.seeds > 1 or row.task == "transfer" else 0.0051
        assert mean == pytest.approx(row.average, abs=slack), row.name


def test_every_row_that_is_not_copied_names_something_this_project_has() -> None:
    for row in RUNNABLE:
        reader = row.reading.split()[0]
        if row.checkpoint:
            assert row.reading == PUBLISHED_IDS[row.backbone].name
        elif row.method:
            assert row.method in (SUPERVISED if row.supervised else METHODS), row
            assert reader == row.method
        else:
            assert reader in (*UNTRAINED, "top-tokens", "top-tokens-denoised"), row
    assert {row.paper for row in ROWS} == set(PAPERS)
    assert all(row.source for row in ROWS if row.copied)


def test_a_damaged_table_is_refused_with_its_line(tmp_path: Path) -> None:
    header, first, *_ = PUBLISHED_FILE.read_text().splitlines()
    for line in (first.rpartition("\t")[0], first.replace(first.split("\t")[5], "many")):
        (tmp_path / "published.tsv").write_text(f"{header}\n{line}\n")
        with pytest.raises(ValueError, match=r"^published\.tsv, line 2: "):
            read_rows(tmp_path / "published.tsv")
