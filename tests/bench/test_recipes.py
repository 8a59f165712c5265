"""The comparison with recipes of sentence-transformers: disjoint texts, resumed trials, gains by hand."""

import json
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import WORDS
from typer.testing import CliRunner

from tests.bench.__main__ import app
from tests.bench.recipes import END, PASS, WAYS, Trial, measure, rows_of


def labelled(path: Path) -> Path:
    """A file of different texts with four labels, which are their first words."""
    words = [word for word in WORDS if word.isalpha()]
    rows = [f"{first}\t{first} {second} {third}\n" for first in words[:4] for second in words for third in words[:4]]
    path.write_text("".join(rows))
    return path


def half_seconds(monkeypatch) -> None:
    """Half a second between two looks at the clock."""
    monkeypatch.setattr("tests.bench.recipes.time", SimpleNamespace(process_time=count(0, 0.5).__next__))


def test_every_recipe_starts_from_the_same_model_and_what_is_measured_is_not_repeated(
    tmp_path: Path, bert_folder: Path, monkeypatch
) -> None:
    half_seconds(monkeypatch)  # three batches of SimCSE in a pass, and the stop some later
    file, output, trial = (
        labelled(tmp_path / "set.tsv"),
        tmp_path / "trials.jsonl",
        Trial(str(bert_folder), "cls", 4, 0),
    )
    ways = {name: WAYS[name] for name in ("projection", "simcse", "tsdae")}
    row = measure(file, trial, ways, output, fit=330, scored=40)
    assert list(row["scores"]) == ["start", "projection", "simcse", "tsdae"]
    assert all(0 < found[END]["neighbours"] <= 100 for found in row["scores"].values())
    assert all(row["scores"][name]["seconds"] > 4 for name in ("simcse", "tsdae"))
    assert row["scores"]["simcse"][PASS] != row["scores"]["start"][END]
    more = measure(file, trial, {**ways, "smoothing": WAYS["smoothing"]}, output, fit=330, scored=40)
    assert more["scores"].pop("smoothing")[END]["neighbours"] > 0
    assert more == row
    assert len(output.read_text().splitlines()) == 5
    assert [list(each["scores"]) for each in rows_of(output)] == [[*row["scores"], "smoothing"]]
    with pytest.raises(ValueError, match="different texts, but 9000 to fit"):
        measure(file, Trial(str(bert_folder), "mean", 1, 0), ways, output, fit=9000, scored=40)


def test_adapt_decides_by_the_labels(tmp_path: Path, bert_folder: Path, monkeypatch) -> None:
    half_seconds(monkeypatch)
    trial = Trial(str(bert_folder), "mean", 2, 0)
    file, output = labelled(tmp_path / "set.tsv"), tmp_path / "trials.jsonl"
    row = measure(file, trial, {"adapt": WAYS["adapt"]}, output, fit=330, scored=40)["scores"]
    assert row["adapt"]["decision"].split()[0] in ("start", "reading", "projection", "training", "trained-projection")


def test_the_command_prints_the_gains_of_all_rows(tmp_path: Path) -> None:
    row = {"texts": "set", "seed": 0, "start": "made",
           "scores": {"start": {END: {"nmi": 1.0}}, "simcse": {PASS: {"nmi": 4.0}, END: {"nmi": 0.5}}}}  # fmt: skip
    (tmp_path / "set.tsv").write_text("a\tb\n")
    (tmp_path / "trials.jsonl").write_text(json.dumps(row) + "\n")
    words = ["recipes", tmp_path / "trials.jsonl", "--data", tmp_path / "set.tsv", "--model", "x/made", "--seeds", 1,
             "--way", "simcse"]  # fmt: skip
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["trials"] == 1
    assert {name: each["mean"] for name, each in found["nmi"].items()} == {"simcse, one pass": 3.0, "simcse, end": -0.5}
