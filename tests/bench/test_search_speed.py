"""The search benchmark times works that find the same, on an index it makes or on one that is there."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.bench.__main__ import app
from tests.bench.search import FAISS, HITS, SEARCH, directions, random_index, searches


@pytest.mark.parametrize("factory", ["Flat", "HNSW32,Flat"])
def test_all_works_find_the_same_sentences(tmp_path: Path, factory: str) -> None:
    index = random_index(300, 8, factory, tmp_path / "index")
    queries = directions(np.random.default_rng(1), 5, 8)
    works = searches(index, tmp_path / "index", queries, 4)
    found = {name: work() for name, work in works.items()}
    raw = [rows[0].tolist() for _, rows in found[FAISS]]
    assert [rows[0].tolist() for _, rows in found[SEARCH]] == raw
    assert [[hit.position for hit in hits] for hits in found[HITS]] == raw


def test_the_command_measures_a_folder_and_names_what_it_holds(tmp_path: Path) -> None:
    random_index(300, 8, "HNSW32,Flat", tmp_path / "index")
    command = ["search", "--index", str(tmp_path / "index"), "--queries", "3", "--rounds", "2", "--json"]
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert (told["factory"], told["sentences"], list(told["works"])) == ("HNSW32,Flat", 300, [FAISS, SEARCH, HITS])
    assert told["works"][FAISS]["times"] == [1, 1, 1]
    assert CliRunner().invoke(app, ["search", "--rows", "20", "--dimension", "4", "--rounds", "1"]).exit_code == 0
