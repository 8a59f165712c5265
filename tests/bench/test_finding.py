"""The benchmark of known items: the scores of a candidate are those of its model, and orders are counted by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import WORDS

import cse
from cse.adaptation.candidates import Trial, left_out
from cse.evaluation import retrieval
from tests.bench.finding import NDCG, measure, search


def test_a_row_has_the_ndcg_of_each_candidate_on_the_whole_set_and_is_measured_once(
    tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rng = tmp_path / "set", np.random.default_rng(0)
    folder.mkdir()
    texts = {" ".join(rng.choice(WORDS[4:40], 6)): number for number in range(380)}
    (folder / "corpus.tsv").write_text("".join(f"d{number}\t{text}\n" for text, number in texts.items()))
    asked = list(texts.items())[:30]
    (folder / "queries.tsv").write_text("".join(f"q{number}\t{text[2:-2]}\n" for text, number in asked))
    (folder / "qrels.tsv").write_text("".join(f"q{number}\td{number}\t1\n" for _, number in asked))
    monkeypatch.setattr(Trial, "training", lambda self: left_out("not tried"))
    row = measure(folder, f"{bert_folder}:mean", 3, tmp_path / "rows.jsonl", lambda line: None)
    for name, pooling in (("start", "mean"), ("reading", "cls")):
        encode = cse.load(str(bert_folder), pooling).encode
        assert row["scores"][name][NDCG] == pytest.approx(retrieval.score(encode, folder, search)[NDCG], abs=0.01)
    assert {"projection 0", "projection 0.5", "projection half"} <= row["scores"].keys()
    assert all(0 < scores[measured] <= 100 for scores in row["scores"].values() for measured in (NDCG, "recall@1"))
    monkeypatch.setattr("tests.bench.finding.tried", None)
    assert measure(folder, f"{bert_folder}:mean", 3, tmp_path / "rows.jsonl", print) == row
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 1
    assert json.loads((tmp_path / "rows.jsonl").read_text()) == row
