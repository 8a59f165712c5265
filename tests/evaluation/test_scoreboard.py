"""Scoreboards: means over the seeds of further files, the best of a column, and what lies inside the noise of it."""

import json
import statistics
from dataclasses import replace

import pytest

from cse.evaluation import sts
from cse.evaluation.metrics import Figure
from cse.evaluation.results import ModelRecord, Protocol, Results, read_scoreboards, save_results, scoreboard
from cse.evaluation.tasks import TASKS
from cse.models.names import BUNDLED

SHIPPED = BUNDLED / "results"


def of_sts(value: float, **more: object) -> ModelRecord:
    scores = {name: {"spearman": value, "pairs": pairs} for name, pairs in sts.PAIRS.items()}
    return ModelRecord("m", "f", scores=scores, **more)


def results(task: str, **models: ModelRecord) -> Results:
    return Results(task, Protocol("d"), "command", models)


def geometry(**scores: float) -> ModelRecord:
    return ModelRecord("m", "f", scores={"anisotropy": scores})


def test_a_row_is_the_mean_of_the_seeds_that_further_files_of_the_same_protocol_hold() -> None:
    table = results("sts", a=of_sts(60.0, group="g", seed=1), b=of_sts(61.0))
    seeds = results("sts", a2=of_sts(62.0, group="g", seed=2), a3=of_sts(67.0, group="g", seed=3))
    again = results("sts", a1=of_sts(60.0, group="g", seed=1), c2=of_sts(1.0, group="other", seed=2))
    elsewhere = replace(results("sts", a4=of_sts(0.0, group="g", seed=4)), protocol=Protocol("other data"))
    row = scoreboard(table, [table, seeds, again, elsewhere]).rows["a"]
    assert row.seeds == (1, 2, 3)
    for figure in row.figures:
        assert figure.value == pytest.approx(statistics.mean([60, 62, 67]))
        assert figure.deviation == pytest.approx(statistics.stdev([60, 62, 67]))
        assert figure.count == 3
    assert row.average == 60.0  # of the record itself
    assert scoreboard(table).rows["a"].figures[0] == Figure(60.0)
    assert scoreboard(table, [seeds]).rows["b"].figures[0] == Figure(61.0)


def test_a_start_stands_in_its_models_row_and_only_there() -> None:
    table = results(
        "sts", a=of_sts(70.0, group="g", seed=1), a_start=of_sts(50.0, group="g", seed=1, start=True), b=of_sts(80.0),
    )  # fmt: skip
    seeds = results("sts", other=of_sts(53.0, group="g", seed=2, start=True))
    rows = scoreboard(table, [table, seeds]).rows
    assert (list(rows), rows["a"].seeds, rows["b"].start) == (["a", "b"], (1,), ())
    assert rows["a"].figures[0] == Figure(70.0)
    assert rows["a"].start[0] == Figure(51.5, pytest.approx(statistics.stdev([50, 53])), 2)


def test_alike_is_what_welchs_test_does_not_tell_from_the_best() -> None:
    from scipy.stats import ttest_ind

    runs = {"a": [70.0, 71.0, 72.5], "b": [69.0, 70.5, 71.5], "c": [66.0, 66.1, 66.2], "d": [69.2, 69.3, 69.4]}
    models = {
        f"{name}{seed}": of_sts(run, group=name, seed=seed) for name in runs for seed, run in enumerate(runs[name])
    }
    verdict = scoreboard(results("sts", **models)).verdicts[0]
    expected = {name: ttest_ind(runs["a"], runs[name], equal_var=False).pvalue >= 0.05 for name in "bcd"}
    assert set(expected.values()) == {True, False}
    assert verdict.best == ("a0",)
    assert verdict.alike == tuple(f"{name}0" for name, same in expected.items() if same)
    assert verdict.apart == tuple(f"{name}0" for name, same in expected.items() if not same)


def test_less_is_better_where_the_task_says_so() -> None:
    low, high = geometry(anisotropy=0.2, separation=0.1), geometry(anisotropy=0.6, separation=0.4)
    board = scoreboard(results("geometry", low=low, high=high))
    assert {c.score: v.best for c, v in zip(board.columns, board.verdicts, strict=True)} == {
        "anisotropy": ("low",), "separation": ("high",),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("task", "scores", "expected"),
    [
        ("few-shot", {"accuracy": 55.0, "deviation": 2.5, "runs": [52.5, 57.5]}, {"accuracy": 2.5}),
        (
            "clustering",
            {"accuracy": 60.0, "accuracy_deviation": 2.0, "nmi": 50.0, "nmi_deviation": 1.0},
            {"accuracy": 2.0, "nmi": 1.0},
        ),
    ],
)
def test_a_deviation_within_one_evaluation_belongs_to_its_score_and_is_no_column(task, scores, expected) -> None:
    board = scoreboard(results(task, a=ModelRecord("m", "f", scores={"set": scores})))
    figures = dict(zip([column.score for column in board.columns], board.rows["a"].figures, strict=True))
    assert figures == {score: Figure(scores[score], deviation, 10) for score, deviation in expected.items()}


def test_the_shipped_boards_hold_what_the_files_say() -> None:
    boards = read_scoreboards(SHIPPED)
    assert list(boards) == [task for task in TASKS if (SHIPPED / f"{task}.json").exists()] == list(TASKS)
    files = {path.stem: json.loads(path.read_text()) for path in SHIPPED.glob("*.json")}
    for name, board in boards.items():
        starts = {record["model"]: record for record in files[name]["models"].values() if record.get("start")}
        trained = [label for label, record in files[name]["models"].items() if not record.get("start")]
        assert list(board.rows) == trained
        for label, row in board.rows.items():
            own = files[name]["models"][label]
            assert bool(row.pooling) == (own["group"] is None)
            for column, figure in zip(board.columns, row.figures, strict=True):
                runs = [
                    record["scores"][column.unit][column.score]
                    for record in {
                        **files[name]["models"],
                        **(files["seeds"]["models"] if name == "sts" else {}),
                    }.values()
                    if record["fingerprint"] != own["fingerprint"] and own["group"] and record["group"] == own["group"]
                    if not record.get("start")
                    if column.unit != "average"
                ]
                if column.unit != "average":
                    expected = statistics.mean([*runs, own["scores"][column.unit][column.score]])
                    assert figure.value == pytest.approx(expected)
            for column, figure in zip(board.columns, row.start, strict=bool(row.start)):
                if figure and column.unit != "average":
                    assert figure.value == starts[label]["scores"][column.unit][column.score]
            assert bool(row.start) == (label in starts)


def test_a_damaged_file_is_named(tmp_path) -> None:
    save_results(tmp_path / "sts.json", results("sts", a=of_sts(1.0)))
    assert list(read_scoreboards(tmp_path)) == ["sts"]
    (tmp_path / "sts.json").write_text("{")
    with pytest.raises(ValueError, match=r"sts\.json: not a results file"):
        read_scoreboards(tmp_path)
