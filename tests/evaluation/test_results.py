"""Results files: read as they were written, gone on with under the same protocol, refused otherwise."""

import json
from pathlib import Path

import pytest

from cse.evaluation.results import ModelRecord, Protocol, Results, open_results, table, warnings
from cse.evaluation.tasks import find_task

RECORD = {"model": "m", "fingerprint": "f", "scores": {"STS12": {"spearman": 1.0}}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {"m": {"scores": {}}}}, "the record of m lacks model or fingerprint or scores"),
        ({"models": {"m": 1}}, "not a results file .* pass `overwrite`"),
        ({"models": {"m": {**RECORD, "colour": "red"}}}, "not a results file"),
        ({"protocol": {"details": False}}, "not a results file"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left(tmp_path: Path, change: dict, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"task": "sts", "protocol": {"data": "d"}, "models": {"m": RECORD}, **change}))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        open_results(path, Results("sts", Protocol("d"), "command"))
    assert path.read_bytes() == before


def test_what_an_older_file_leaves_out_has_its_default(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    record = {"model": "m", "fingerprint": "f", "scores": {"MR": {"accuracy": 50.0}}}
    path.write_text(json.dumps({"task": "transfer", "protocol": {"data": "d"}, "models": {"m": record}}))
    again = open_results(path, Results("transfer", Protocol("d"), "command"))
    assert again.models == {"m": ModelRecord("m", "f", scores={"MR": {"accuracy": 50.0}})}
    with pytest.raises(ValueError, match="'points': True"):
        open_results(path, Results("transfer", Protocol("d", points=True), "command"))


STS, TRANSFER = find_task("sts"), find_task("transfer")


def record(scores: dict, **more: object) -> ModelRecord:
    return ModelRecord("m", "f", scores=scores, **more)


def test_a_model_is_a_line_under_its_columns_and_what_is_missing_is_a_dash() -> None:
    models = {"one": record({"MR": {"accuracy": 50.0}}), "two": record({"MRPC": {"accuracy": 66.5, "f1": 0.25}})}
    assert [line.split() for line in table(TRANSFER, models)] == [
        ["MR", "MRPC", "MRPC", "f1", "average"], ["one", "50.00", "-", "-", "-"], ["two", "-", "66.50", "0.25", "-"],
    ]  # fmt: skip
    assert len({len(line) for line in table(TRANSFER, models)}) == 1
    assert warnings(TRANSFER, models) == ["no files for CR, SUBJ, MPQA, SST2, TREC: no average over the papers' sets"]
