"""Tasks are values: found by name, with the papers' sets, options that match what they can do, and figures."""

from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

from cse.evaluation import geometry
from cse.evaluation.geometry import StaticEmbeddings
from cse.evaluation.tasks import TASKS, TaskData, TokenAccess, find_task


def test_an_unknown_task_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match="unknown task 'chess'; choose from sts, transfer, few-shot"):
        find_task("chess")


def test_the_documentation_names_every_task_with_its_files() -> None:
    text = (ROOT / "docs" / "evaluation.md").read_text()
    for name in TASKS:
        assert f"| `{name}` |" in text


def test_the_average_is_over_the_papers_sets_alone() -> None:
    task = find_task("transfer")
    scores = {name: {"accuracy": 10.0 * number} for number, name in enumerate(task.sets)}
    assert task.average({**scores, "other": {"accuracy": 99.0}}) == pytest.approx(30.0)
    assert task.average({name: scores[name] for name in list(scores)[1:]}) is None
    assert find_task("geometry").average({"anisotropy": {"anisotropy": 0.5}}) is None


def test_units_of_tokens_need_tokens_and_all_seven_sets(sts: Path, tmp_path: Path) -> None:
    def encode_ids(contents: list[list[int]]) -> np.ndarray:
        return np.array([[len(content), 1.0] for content in contents])

    def tokenise(texts: list[str]) -> list[list[int]]:
        return [[len(word) for word in text.split()] for text in texts]

    static = StaticEmbeddings(np.eye(3), ["a", "b", "c"], tokenise, ())
    tokens = TokenAccess(tokenise, encode_ids, static)
    assert [*geometry.TASK.units(TaskData(sts, tokens=tokens))][-2:] == [*geometry.TASK.token_units]
    assert not {*geometry.TASK.units(TaskData(sts))} & {*geometry.TASK.token_units}
    (tmp_path / "STSB").mkdir()
    (tmp_path / "STSB" / "test.tsv").write_bytes((sts / "STSB" / "test.tsv").read_bytes())
    assert not {*geometry.TASK.units(TaskData(tmp_path, tokens=tokens))} & {*geometry.TASK.token_units}
    removal = geometry.TASK.units(TaskData(sts, tokens=tokens))["removal"](lambda texts: np.zeros((0, 2)))
    assert removal["curve"]["removed"] == [*range(0, 101, 10)]
