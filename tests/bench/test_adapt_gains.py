"""The benchmark of projections: gains on texts that the projection was not fitted on."""

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from tests.bench.__main__ import app
from tests.bench.adapt import measure


def test_noise_outside_the_components_is_removed_and_fitted_texts_are_not_scored(tmp_path: Path) -> None:
    (tmp_path / "set.tsv").write_text("".join(f"{number % 4}\ttext {number}\n" for number in range(400)))
    asked: list[set[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.append(set(texts))
        rng = np.random.default_rng(len(texts))
        topics = 8 * np.eye(4)[[int(text.split()[1]) % 4 for text in texts]]
        return np.hstack([topics, rng.normal(scale=2, size=(len(texts), 60))]).astype(np.float32)

    (row,) = measure(tmp_path / "set.tsv", {"made": encode}, [3, 60], fit=300, scored=100, seed=0)
    assert not asked[0] & asked[1]
    assert [len(each) for each in asked] == [300, 100]
    assert row.start + row.gains[3] > 99
    assert row.gains[3] > row.gains[60] + 2


def test_the_command_prints_a_row_per_set_and_model(tmp_path: Path, bert_folder: Path) -> None:
    (tmp_path / "set.tsv").write_text("".join(f"{number % 2}\tthe dog {number} runs\n" for number in range(90)))
    words = ["adapt", "--data", tmp_path / "set.tsv", "--model", f"{bert_folder}:cls", "--model", bert_folder]
    words += ["--components", 2, "--components", 4, "--fit", 50, "--scored", 40, "--json"]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert [list(row["gains"]) for row in rows] == [["2", "4"]] * 2
    assert rows[0]["model"].endswith(":cls")
