"""The guard's benchmark: its scores against slow loops, and a run from file to table."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.bench.__main__ import app
from tests.bench.guard import SCORES, Course, halves, shared, summary

WORDS = "one two three four five six seven eight nine ten".split()


def test_halves_are_ranked_among_those_of_all_texts() -> None:
    vectors = {"a c": [1.0, 0.0], "b d": [0.6, 0.8], "e g": [0.0, 1.0], "f h": [0.8, 0.6]}

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([vectors[text] for text in texts])

    assert halves(encode, ["a b c d", "e f g h"]) == pytest.approx(100 * (1 / 2 + 1 / 2) / 2)


def test_shared_neighbours_are_counted_whatever_their_order() -> None:
    assert shared(np.array([[1, 2], [3, 4]]), np.array([[2, 1], [4, 5]])) == 75


def test_a_score_keeps_the_step_where_it_is_highest() -> None:
    course = Course("run", [50.0, 60.0, 55.0], {name: [1.0, 2.0, 3.0] for name in SCORES})
    course.scores["found"] = [1.0, 3.0, 2.0]
    assert (course.kept("found"), course.kept("loss")) == (60, 55)
    assert [course.correlation(name) for name in ("found", "loss")] == pytest.approx([1, -1])
    found = summary([course])["found"]
    assert (found["correlation"], found["gained"], found["lost"]) == (pytest.approx(1), 10, 0)


def test_a_run_is_scored_at_the_start_and_at_each_evaluation(bert_folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = [f"{number % 2}\t{' '.join(rng.permutation(WORDS)[:6])} {number}" for number in range(120)]
    (tmp_path / "set.tsv").write_text("\n".join(lines))
    words = ["guard", "--data", tmp_path / "set.tsv", "--backbone", bert_folder, "--steps", 15, "--texts", 40, "--json"]
    done = CliRunner().invoke(app, [*map(str, words), "--evaluations", "3"])
    assert done.exit_code == 0, done.output
    runs = json.loads(done.stdout)["runs"]
    assert [run["name"].split()[1] for run in runs] == ["simcse", "simcse", "promptbert"]
    assert all(len(values) == 4 for run in runs for values in [run["neighbours"], *run["scores"].values()])
