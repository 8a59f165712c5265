"""The benchmark of simulated votes counts pairs, sessions and outcomes, and names the better of synthetic models."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.bench import judge
from tests.bench.__main__ import app


def test_of_three_models_the_pairs_that_differ_are_judged() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(4, size=300)
    texts = rng.normal(size=(4, 12))[gold] + rng.normal(scale=0.8, size=(300, 12))
    poor = texts + rng.normal(scale=2.0, size=texts.shape)
    found = judge.simulate({"good": texts, "same": 2 * texts, "poor": poor}, gold.astype(str).tolist(), 30, 3.0, 2)
    assert (found.pairs, found.differ, found.sessions) == (3, 2, 4)  # good against same differs by nothing
    assert (found.right, found.wrong, found.named, found.misnamed) == (4, 0, 4, 0)
    assert judge.simulate({"poor": poor, "good": texts}, gold.astype(str).tolist(), 30, 90.0, 2).differ == 0


def test_the_command_prints_a_row_per_set_and_their_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bert_folder: Path
) -> None:
    monkeypatch.setattr(judge, "MODELS", {name: (str(bert_folder), name) for name in ("mean", "cls")})
    for name in ("one", "two"):
        lines = (f"{number % 3}\tthe {'dog cat sun'.split()[number % 3]} is {number}\n" for number in range(30))
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    words = ["judge", "--data", str(tmp_path / "one.tsv"), "--data", str(tmp_path / "two.tsv"), "--points", "0"]
    done = CliRunner().invoke(app, [*words, "--seeds", "2", "--json"])
    assert done.exit_code == 0, done.output
    sets = json.loads(done.stdout)["sets"]
    assert {name: found["sessions"] for name, found in sets.items()} == {"one": 2, "two": 2, "all": 4}
