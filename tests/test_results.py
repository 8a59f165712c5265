"""Results survive an interruption unit by unit, and texts are encoded once however many units share them."""

import json
from pathlib import Path

import numpy as np
import pytest

from cse.evaluation.results import new_results, open_results, remembered, run_units, save_results


def test_each_text_is_encoded_once_in_the_order_asked() -> None:
    asked: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return np.array([[float(len(text)), 1.0] for text in texts])

    once = remembered(encode)
    np.testing.assert_array_equal(once(["aa", "b", "aa"]), [[2, 1], [1, 1], [2, 1]])
    np.testing.assert_array_equal(once(["b", "ccc"]), [[1, 1], [3, 1]])
    assert asked == ["aa", "b", "ccc"]


def test_what_is_done_is_not_done_again_and_each_unit_is_saved() -> None:
    saved: list[str] = []
    done = {"b": {"score": 1}}
    units = {name: (lambda encode, name=name: {"score": name}) for name in ("a", "b", "c")}
    found = run_units(lambda texts: np.zeros((0, 1)), units, done, saved.append)
    assert found == {"a": {"score": "a"}, "b": {"score": 1}, "c": {"score": "c"}}
    assert list(found) == ["a", "b", "c"]
    assert saved == ["a", "c"]


def test_a_results_file_is_gone_on_with_and_another_protocol_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.json"
    fresh = new_results("sts", {"details": False}, "command")
    fresh["models"]["m"] = {"scores": {"STS12": {"spearman": 1.0}}}
    save_results(path, fresh)
    assert [file.name for file in path.parent.iterdir()] == ["r.json"]
    again = open_results(path, new_results("sts", {"details": False}, "later"))
    assert again["models"] == fresh["models"]
    assert again["command"] == "later"
    with pytest.raises(ValueError, match="holds sts under"):
        open_results(path, new_results("sts", {"details": True}, "command"))
    for text in ("[]", "{", json.dumps({"task": "sts"})):
        path.write_text(text)
        with pytest.raises(ValueError, match="not a results file"):
            open_results(path, new_results("sts", {}, "command"))
        assert path.read_text() == text


def test_a_write_that_fails_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    save_results(path, {"a": 1})
    with pytest.raises(TypeError):
        save_results(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]
