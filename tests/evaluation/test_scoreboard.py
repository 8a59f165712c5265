"""Scoreboards: means over the seeds of further files, the best of a column, and what lies inside the noise of it."""

import pytest

from cse.evaluation import sts
from cse.evaluation.metrics import Figure
from cse.evaluation.results import ModelRecord, Protocol, Results, scoreboard


def of_sts(value: float, **more: object) -> ModelRecord:
    scores = {name: {"spearman": value, "pairs": pairs} for name, pairs in sts.PAIRS.items()}
    return ModelRecord("m", "f", scores=scores, **more)


def results(task: str, **models: ModelRecord) -> Results:
    return Results(task, Protocol("d"), "command", models)


def geometry(**scores: float) -> ModelRecord:
    return ModelRecord("m", "f", scores={"anisotropy": scores})


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
