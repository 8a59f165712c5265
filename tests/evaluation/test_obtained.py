"""The number of a run is read from the record of the model that was run, whatever else its results file holds."""

import json
from pathlib import Path

import pytest

import cse
from cse.evaluation.published import rows
from cse.evaluation.reproduction import Plan, obtained
from cse.evaluation.sts import SETS

ROW = next(row for row in rows("promptbert", "5") if row.key.endswith(" mean"))


@pytest.fixture
def plan(bert_folder: Path, tmp_path: Path) -> Plan:
    return Plan(tmp_path, tmp_path / "out", None, None, str(bert_folder), (42,), "")


def write_results(path: Path, *records: tuple[str, str, float]) -> None:
    """A results file with records of (model, fingerprint, the score of every task), in this order."""
    models = {
        f"{model} {fingerprint}": {
            "model": model, "fingerprint": fingerprint, "scores": {name: {"spearman": score} for name in SETS},
        }
        for model, fingerprint, score in records
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"task": "sts", "protocol": {"data": "0"}, "command": "", "models": models}))


def test_records_of_one_name_are_told_apart_by_fingerprint(plan: Plan) -> None:
    known = cse.load(str(plan.backbone), "mean").fingerprint
    records = [(str(plan.backbone), known, 60.0), (str(plan.backbone), "1" * 12, 50.0)]
    for order in (records, records[::-1]):
        write_results(plan.results(ROW, None), *order)
        assert obtained(ROW, plan, None) == 60.0
    renamed = [("relative/bert", known, 60.0), ("earlier/bert", "1" * 12, 50.0)]  # the same folder by another path
    write_results(plan.results(ROW, None), *renamed)
    assert obtained(ROW, plan, None) == 60.0


def test_a_file_without_the_models_record_is_refused(plan: Plan) -> None:
    path = plan.results(ROW, None)
    write_results(path, ("earlier/bert", "1" * 12, 50.0))
    with pytest.raises(ValueError, match=r"\.json: no record of .*bert \(mean, [0-9a-f]{12}\); delete it and run"):
        obtained(ROW, plan, None)
