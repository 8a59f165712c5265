"""The comparison with recipes of sentence-transformers: disjoint texts, resumed trials, gains by hand."""

import json
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.bench.__main__ import app
from tests.bench.anchors import removal
from tests.bench.recipes import END, PASS, Trial, damaged, measure, summary
from tests.conftest import WORDS


def test_every_recipe_starts_from_the_same_model_and_a_finished_trial_is_not_repeated(
    tmp_path: Path, bert_folder: Path, monkeypatch
) -> None:
    # Half a second between two looks at the clock, for three batches of SimCSE in a pass and the stop some later.
    monkeypatch.setattr("tests.bench.recipes.time", SimpleNamespace(process_time=count(0, 0.5).__next__))
    words = [word for word in WORDS if word.isalpha()]
    rows = [f"{first}\t{first} {second} {third}\n" for first in words[:4] for second in words for third in words[:4]]
    (tmp_path / "set.tsv").write_text("".join(rows))
    trial, output = Trial(str(bert_folder), "cls", 4, 0), tmp_path / "trials.jsonl"
    row = measure(tmp_path / "set.tsv", trial, output, fit=330, scored=40)
    assert list(row["scores"]) == ["start", "projection", "simcse", "tsdae"]
    assert all(0 < found[END]["neighbours"] <= 100 for found in row["scores"].values())
    assert all(row["scores"][name]["seconds"] > 4 for name in ("simcse", "tsdae"))
    assert row["scores"]["simcse"][PASS] != row["scores"]["start"][END]
    again = measure(tmp_path / "set.tsv", trial, output, fit=330, scored=40)
    assert again == row
    assert len(output.read_text().splitlines()) == 1
    with pytest.raises(ValueError, match="different texts, but 9000 to fit"):
        measure(tmp_path / "set.tsv", Trial(str(bert_folder), "mean", 1, 0), output, fit=9000, scored=40)


def test_gains_are_those_over_the_start_of_the_same_row() -> None:
    rows = [
        {"scores": {"start": {END: {"nmi": 50.0}}, "projection": {END: {"nmi": 53.0}, "seconds": 2.0}}},
        {"scores": {"start": {END: {"nmi": 10.0}}, "projection": {END: {"nmi": 9.0}, "seconds": 2.0}}},
    ]
    expected = {"projection, end": {"mean": 1.0, "smallest": -1.0, "largest": 3.0, "ahead": 1, "rows": 2}}
    assert summary(rows, "nmi") == expected


def test_four_of_ten_words_of_a_damaged_text_stay_and_one_at_least() -> None:
    rng = np.random.default_rng(0)
    text = " ".join(map(str, range(10_000)))
    kept = damaged(text, rng).split()
    assert len(kept) == pytest.approx(4000, abs=150)
    assert kept == sorted(kept, key=int)
    assert all(damaged("one two", rng) for _ in range(50))


def test_a_row_is_dropped_rightly_if_another_of_its_group_stays() -> None:
    gold = np.array([0, 0, 0, 1, 1, 2])
    assert removal(gold, [1, 4]) == pytest.approx({"dropped": 2, "precision": 100.0, "recall": 200 / 3})
    assert removal(gold, [3, 4, 5]) == pytest.approx({"dropped": 3, "precision": 100 / 3, "recall": 100 / 3})


def test_the_command_prints_the_gains_of_all_rows(tmp_path: Path) -> None:
    row = {"texts": "set", "seed": 0, "start": "made",
           "scores": {"start": {END: {"nmi": 1.0}}, "simcse": {PASS: {"nmi": 4.0}, END: {"nmi": 0.5}}}}  # fmt: skip
    (tmp_path / "set.tsv").write_text("a\tb\n")
    (tmp_path / "trials.jsonl").write_text(json.dumps(row) + "\n")
    words = ["recipes", tmp_path / "trials.jsonl", "--data", tmp_path / "set.tsv", "--model", "x/made", "--seeds", 1]
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["trials"] == 1
    assert {name: each["mean"] for name, each in found["nmi"].items()} == {"simcse, one pass": 3.0, "simcse, end": -0.5}
