"""The benchmark of the cheap candidates: known gains, on texts that nothing was fitted on."""

from pathlib import Path

import numpy as np
import pytest
from conftest import WORDS

import cse
from cse.evaluation.clustering import neighbour_values
from tests.bench import adapt
from tests.bench.adapt import chosen, labelled_texts, measure, summary


def test_layers_are_fitted_on_other_texts_than_they_are_scored_on(
    tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{number % 4}\t{' '.join(rng.choice(WORDS[4:40], 6))}\n" for number in range(400)]
    (tmp_path / "set.tsv").write_text("".join(rows))
    encoder = cse.load(str(bert_folder), "cls")
    asked: list[list[str]] = []
    read = adapt.raw_vectors
    monkeypatch.setattr(adapt, "raw_vectors", lambda model, texts: asked.append(list(texts)) or read(model, texts))
    scores = measure(tmp_path / "set.tsv", encoder, fit=300, scored=60, seed=3)
    held, forms, fit = asked
    assert (len(held), len(fit), set(held) & set(fit)) == (60, 300, set())
    assert forms == [" ".join(text.split()[::2]) for text in held]
    corpus = labelled_texts(tmp_path / "set.tsv", 360, 3)
    label = dict(zip(corpus.sentences, corpus.labels, strict=True))
    gold = np.array([label[text] for text in held])
    expected = 100 * neighbour_values(encoder.encode(held), gold).mean()
    assert scores["start"]["neighbours"] == pytest.approx(expected, abs=0.01)
    gains = summary([{"scores": scores, "seed": 3, "texts": "set", "model": "cls"}])
    assert gains["start"] == {"neighbours": [0, 0, 0], "recall@1": [0, 0, 0], "mrr": [0, 0, 0]}
    assert gains["chosen"] == {}
    with pytest.raises(ValueError, match="but 9000 to fit"):
        measure(tmp_path / "set.tsv", encoder, fit=9000, scored=60, seed=0)


def test_a_choice_by_one_seed_is_scored_on_another() -> None:
    start = {"neighbours": 50.0, "recall@1": 90.0, "taken": False}
    near = {"neighbours": 60.0, "recall@1": 80.0, "taken": False}
    good, fair = ({"neighbours": near, "recall@1": 89.5, "taken": True} for near in (56.0, 53.0))
    first, second = (
        {"start": start, "near": near, "a": one, "b": other} for one, other in ((good, fair), (fair, good))
    )
    assert (chosen(first), chosen(second), chosen({"start": start, "near": near})) == ("a", "b", "start")
    trials = [{"seed": seed, "texts": "set", "model": "m", "scores": rows} for seed, rows in enumerate((first, second))]
    assert summary(trials)["chosen"] == {"neighbours": [3, 3, 3], "recall@1": [-0.5, -0.5, -0.5]}
