"""Few-shot transfer against a slow loop: which rows are drawn, which are scored, what is refused."""

import statistics
from pathlib import Path

import numpy as np
import pytest
from transfer_rows import Rows, arrays, noisy, numbers, separable, slow, write

from cse.evaluation import few_shot
from cse.evaluation.tasks import TaskData


def test_few_shot_runs_are_the_slow_loop_and_drawn_rows_are_not_scored(tmp_path: Path) -> None:
    rows = noisy(41, 44)
    x, y = arrays(rows)
    runs = []
    for seed in range(10):
        draw = few_shot.drawn(y, seed)
        rest = [n for n in range(len(rows)) if n not in set(draw)]
        runs.append(100 * slow((x[draw], y[draw]), (x[rest], y[rest]), 1.0))
    scores = few_shot.units(TaskData(write(tmp_path, "CR", all=rows)))["CR"](numbers)
    assert scores["runs"] == [round(run, 2) for run in runs]
    assert scores["accuracy"] == round(statistics.mean(runs), 2)
    assert scores["deviation"] == round(statistics.stdev(runs), 2)


def test_few_shot_scores_the_test_part_and_encodes_only_what_is_drawn_or_scored(tmp_path: Path) -> None:
    train, test = noisy(51, 900), noisy(52, 30)
    (x, y), calls = arrays(train), []

    def encode(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return numbers(texts)

    folder = write(tmp_path, "SST2", train=train, dev=noisy(53, 20), test=test)
    scores = few_shot.units(TaskData(folder))["SST2"](encode)
    draws = [few_shot.drawn(y, seed) for seed in range(10)]
    assert scores["runs"] == [round(100 * slow((x[draw], y[draw]), arrays(test), 1.0), 2) for draw in draws]
    assert [set(texts) for texts in calls] == [{train[n][1] for n in np.concatenate(draws)} | {row[1] for row in test}]
    assert len(calls[0]) == len(set(calls[0]))


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("MR", {"all": separable(33)}, r"all.tsv: label 'b' has 16 of 17 required rows"),
        ("TREC", {"train": separable(31), "test": separable(4)}, r"train.tsv: label 'b' has 15 of 16 required rows"),
    ],
)
def test_few_shot_refuses_a_label_with_too_few_rows(
    tmp_path: Path, name: str, files: dict[str, Rows], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        few_shot.units(TaskData(write(tmp_path, name, **files)))[name](numbers)
