"""The shipped ledger: every number on it is that of a results file or of a published row."""

import json

import numpy as np
import pytest

from cse.app.models.models import Failure
from cse.app.scoreboard.ledger import ledger_html
from cse.app.state.app_state import RESULTS, open_boards, open_state
from cse.evaluation.ledger import shipped_ledger
from cse.evaluation.published import ROWS
from cse.evaluation.scoreboard import read_scoreboards
from cse.evaluation.tasks import find_task
from cse.models.names import BUNDLED

STORED = [json.loads((RESULTS / f"{name}.json").read_text()) for name in ("sts", "seeds")]


def test_a_ledger_says_what_was_published_and_the_mean_over_the_shipped_seeds() -> None:
    boards = read_scoreboards(BUNDLED / "results")
    entries = {entry.row: entry for entry in shipped_ledger(boards["sts"])}
    average = find_task("sts").average
    for method, name in (
        ("promptbert", "PromptBERT (promptbert, table 6)"),
        ("dcpcse", "DCPCSE, bert-base-uncased (dcpcse, table 1)"),
        ("conpvp", "ConPVP, bert-base-uncased (conpvp, table 3)"),
    ):
        runs = {
            record["seed"]: average(record["scores"])
            for stored in STORED
            for record in stored["models"].values()
            if record["key"] == f"bundled {method}"
        }
        entry = entries[name]
        row = next(row for row in ROWS if f"{row.name} ({row.paper}, table {row.table})" == name)
        assert (entry.published, entry.published_deviation) == (row.average, row.deviation)
        assert entry.seeds == tuple(sorted(runs)) == (42, 43, 44)
        assert entry.comparison.mean == pytest.approx(np.mean(list(runs.values())), abs=0.006)
        assert entry.comparison.deviation == pytest.approx(np.std(list(runs.values()), ddof=1), abs=0.006)
        assert entry.comparison.difference == pytest.approx(np.mean(list(runs.values())) - row.average, abs=0.006)
        assert entry.comparison.verdict == "a difference"
    assert "full stop" in entries["PromptBERT (promptbert, table 6)"].source
    assert entries["last layer average (promptbert, table 5)"].seeds == ()
    assert len({(entry.published, entry.comparison) for entry in entries.values()}) == len(entries)
    assert not shipped_ledger(boards["retrieval"])


def test_the_ledger_is_on_the_page_and_goes_where_results_are_damaged(tmp_path) -> None:
    state = open_state(["simcse"], ())
    entries = shipped_ledger(state.boards["sts"])
    page = ledger_html(state)
    assert page.count("<tr>") == 1 + sum(len(shipped_ledger(board)) for board in state.boards.values())
    for entry in entries:
        assert f"{entry.published:.2f}" in page
        assert f"{entry.comparison.mean:.2f}" in page
    (tmp_path / "sts.json").write_text("{}")
    damaged = open_boards(tmp_path)
    assert isinstance(damaged, Failure)
    object.__setattr__(state, "boards", damaged)
    assert ledger_html(state) == ""
