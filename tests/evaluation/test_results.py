"""Results files, published rows, scoreboards, ledgers and figures."""

import json
from dataclasses import replace

import pytest
from scipy.stats import ttest_ind

from cse.evaluation import sts
from cse.evaluation.metrics import Figure, over_seeds
from cse.evaluation.reproduction import judged, write_ledger
from cse.evaluation.results import (
    ROWS,
    ModelRecord,
    Protocol,
    Results,
    open_results,
    scoreboard,
)
from cse.evaluation.tasks import find_task

RECORD = {"model": "m", "fingerprint": "f", "scores": {"STS12": {"spearman": 1.0}}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {"m": {"scores": {}}}}, "the record of m lacks model or fingerprint or scores"),
        ({"models": {"m": {**RECORD, "colour": "red"}}}, "not a results file"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left(tmp_path, change, message):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"task": "sts", "protocol": {"data": "d"}, "models": {"m": RECORD}, **change}))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        open_results(path, Results("sts", Protocol("d"), "command"))
    assert path.read_bytes() == before


def test_what_an_older_file_leaves_out_has_its_default(tmp_path):
    path = tmp_path / "r.json"
    record = {"model": "m", "fingerprint": "f", "scores": {"MR": {"accuracy": 50.0}}}
    path.write_text(json.dumps({"task": "transfer", "protocol": {"data": "d"}, "models": {"m": record}}))
    again = open_results(path, Results("transfer", Protocol("d"), "command"))
    assert again.models == {"m": ModelRecord("m", "f", scores={"MR": {"accuracy": 50.0}})}
    with pytest.raises(ValueError, match="'points': True"):
        open_results(path, Results("transfer", Protocol("d", points=True), "command"))


def of_sts(value: float, **more: object) -> ModelRecord:
    scores = {name: {"spearman": value, "pairs": pairs} for name, pairs in sts.PAIRS.items()}
    return ModelRecord("m", "f", scores=scores, **more)


def results(task: str, **models: ModelRecord) -> Results:
    return Results(task, Protocol("d"), "command", models)


def geometry(**scores: float) -> ModelRecord:
    return ModelRecord("m", "f", scores={"anisotropy": scores})


def test_alike_is_what_welchs_test_does_not_tell_from_the_best():
    runs = {"a": [70.0, 71.0, 72.5], "b": [69.0, 70.5, 71.5], "c": [66.0, 66.1, 66.2], "d": [69.2, 69.3, 69.4]}
    models = {
        f"{name}{seed}": of_sts(run, group=name, seed=seed) for name in runs for seed, run in enumerate(runs[name])
    }
    verdict = scoreboard(results("sts", **models)).verdict(0)
    expected = {name: ttest_ind(runs["a"], runs[name], equal_var=False).pvalue >= 0.05 for name in "bcd"}
    assert set(expected.values()) == {True, False}
    assert verdict.best == ("a0",)
    assert verdict.alike == tuple(f"{name}0" for name, same in expected.items() if same)
    assert verdict.apart == tuple(f"{name}0" for name, same in expected.items() if not same)


def test_less_is_better_where_the_task_says_so():
    low, high = geometry(anisotropy=0.2, separation=0.1), geometry(anisotropy=0.6, separation=0.4)
    board = scoreboard(results("geometry", low=low, high=high))
    assert {column.score: board.verdict(number).best for number, column in enumerate(board.columns)} == {
        "anisotropy": ("low",), "separation": ("high",),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("task", "scores", "expected"),
    [
        ("few-shot", {"accuracy": 55.0, "deviation": 2.5, "runs": [52.5, 57.5]}, {"accuracy": 2.5}),
        ("clustering", {"accuracy": 60.0, "accuracy_deviation": 2.0, "nmi": 50.0, "nmi_deviation": 1.0},
         {"accuracy": 2.0, "nmi": 1.0}),
    ],
)  # fmt: skip
def test_a_deviation_within_one_evaluation_belongs_to_its_score_and_is_no_column(task, scores, expected):
    board = scoreboard(results(task, a=ModelRecord("m", "f", scores={"set": scores})))
    figures = dict(zip([column.score for column in board.columns], board.rows["a"].figures, strict=True))
    assert figures == {score: Figure(scores[score], deviation, 10) for score, deviation in expected.items()}


def test_published_averages_are_the_means_of_their_rounded_rows():
    whole = [row for row in ROWS if row.values]
    assert len(whole) > 15
    for row in whole:
        assert row.average is not None
        sets = find_task("sts" if row.task == "geometry" else row.task).sets
        mean = sum(row.values[name] for name in sets) / len(sets)
        # Means over seeds do not add up to the last digit, nor does SimCSE's transfer row that PromptBERT repeats.
        slack = 0.021 if row.seeds > 1 or row.task == "transfer" else 0.0051
        assert mean == pytest.approx(row.average, abs=slack), row.name


ROW = next(row for row in ROWS if not row.copied)


def test_a_difference_is_judged_by_the_scatter_of_both_sides():
    row = replace(ROW, average=78.54, deviation=0.15, seeds=10)
    near, far = (judged(over_seeds(runs), row) for runs in ([78.0, 78.5, 77.5], [75.0, 75.5, 74.5]))
    assert near == {"mean": 78.0, "deviation": 0.5, "difference": -0.54, "verdict": "inside the noise"}
    assert far["verdict"] == "a difference"
    alone = replace(row, deviation=None, seeds=1)
    assert judged(Figure(78.0), replace(alone, method="simcse"))["verdict"] is None
    untrained = [judged(Figure(value), replace(alone, method=None))["verdict"] for value in (78.0, 78.544)]
    assert untrained == ["a difference", "inside the noise"]  # of rounding: no seed moves either
    assert judged(Figure(78.0), replace(row, average=None)) == {"mean": 78.0, "deviation": None}


@pytest.mark.parametrize("text", ["", '{"rows": [{}]}'])
def test_another_file_in_its_place_is_refused_and_left(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=r"t\.json: not a ledger .*; move it away or give another `output`"):
        write_ledger(tmp_path / "t", "promptbert", "8", [])
    assert (tmp_path / "t.json").read_text() == text
