"""The shipped ledger: every number on it is that of a results file or of a published row."""

import json

import numpy as np
import pytest

from cse.app.state.app_state import RESULTS
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
