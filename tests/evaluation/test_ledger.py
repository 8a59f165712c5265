"""A ledger keeps its rows on disk with the keys it always had, judges differences, and is gone on with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cse.evaluation.metrics import Figure, over_seeds
from cse.evaluation.reproduction import LedgerEntry, judged, markdown, write_ledger
from cse.evaluation.results import ROWS

ROW = next(row for row in ROWS if not row.copied)
HEAD = {
    "row": "same template", "published": 78.16, "published_deviation": 0.17, "published_seeds": 10,
    "published_on": "bert-base-uncased", "task": "sts", "source": "a table", "copied": False,
    "commands": ["python -m scripts.train", "python -m scripts.evaluate"],
}  # fmt: skip
RUN = {**HEAD, "backbone": "bundled", "seeds": [1, 2], "runs": [77.5, 78.0]}
ON_DISK = [
    {**HEAD, "copied": True, "commands": []},
    {**RUN, "mean": 77.75, "deviation": 0.35, "difference": -0.41, "verdict": "inside the noise"},
    {**RUN, "seeds": [], "runs": [77.5], "published": None, "mean": 77.5, "deviation": None},
    {**RUN, "runs": [77.5, None], "note": "no number to compare: sets are missing"},
]
MARKDOWN = [
    "| same template | 78.16 ± 0.17 | copied, not run |  |  | a table |",
    "| same template | 78.16 ± 0.17 | 77.75 ± 0.35 | -0.41 inside the noise | bundled, 1 2 "
    "| bert-base-uncased, a table |",
    "| same template |  | 77.5 |  | bundled, untrained | bert-base-uncased, a table |",
    "| same template | 78.16 ± 0.17 | no number to compare: sets are missing |  | bundled, 1 2 "
    "| bert-base-uncased, a table |",
]


def of_json(value: dict) -> LedgerEntry:
    return LedgerEntry(**{key: tuple(item) if isinstance(item, list) else item for key, item in value.items()})


def test_a_difference_is_judged_by_the_scatter_of_both_sides() -> None:
    row = replace(ROW, average=78.54, deviation=0.15, seeds=10)
    near, far = (judged(over_seeds(runs), row) for runs in ([78.0, 78.5, 77.5], [75.0, 75.5, 74.5]))
    assert near == {"mean": 78.0, "deviation": 0.5, "difference": -0.54, "verdict": "inside the noise"}
    assert far["verdict"] == "a difference"
    one = judged(Figure(74.60), replace(row, average=75.42, deviation=0.86, seeds=10))  # less than a deviation away
    assert one["verdict"] == "inside the noise"
    assert judged(Figure(78.0), replace(row, deviation=None, seeds=1))["verdict"] is None
    assert judged(Figure(78.0), replace(row, average=None)) == {"mean": 78.0, "deviation": None}
    assert judged(Figure(0.0312), replace(row, average=0.0235, deviation=None, seeds=1))["difference"] == 0.0077


@pytest.mark.parametrize(("value", "line"), list(zip(ON_DISK, MARKDOWN, strict=True)))
def test_a_row_on_disk_is_read_and_written_key_for_key(value: dict, line: str) -> None:
    entry = of_json(value)
    assert json.dumps(entry.to_json()) == json.dumps(value)
    assert markdown([entry])[2:] == [line]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [{}]}', json.dumps({"rows": [{**ON_DISK[0], "other": 1}]})])
def test_another_file_in_its_place_is_refused_and_left(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=r"t\.json: not a ledger .*; move it away or give another `output`"):
        write_ledger(tmp_path / "t", "promptbert", "8", [])
    assert (tmp_path / "t.json").read_text() == text
