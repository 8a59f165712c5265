"""The guard without labels: its score by a slow loop, held-out texts that are not trained on, runs that it ends."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES

import cse
from cse.corpus.supervised import Examples
from cse.models.checkpoint import read_checkpoint_config
from cse.models.config import model_card
from cse.training.held_out import HeldOutScore, held_out_score, hold_out
from cse.training.loop import train
from cse.training.run import TrainRequest, prepare

TEXTS = [f"{one} and {two}" for one in SENTENCES for two in SENTENCES] + [
    f"the {noun} of {other} was in the {scene}"
    for noun in ("dog", "cat", "man", "woman", "guitar", "sun", "rain")
    for other in ("sun", "rain", "dog", "cat", "park")
    for scene in ("park", "kitchen", "rain")
]
SETTINGS = {"batch_size": 8, "eval_every": 2, "max_steps": 6, "learning_rate": 1e-3}


def by_hand(encode: object, texts: list[str]) -> tuple[float, float, float]:
    """The score, one text, pair and direction at a time."""
    short = []
    for number, text in enumerate(texts):
        words = text.split()
        order = np.random.default_rng(number).permutation(len(words))
        kept = set(order[: round(0.6 * len(words))].tolist())
        short.append(" ".join(word for position, word in enumerate(words) if position in kept))
    units, recovered, cosines = [vector / np.linalg.norm(vector) for vector in encode(texts).astype(float)], 0, []
    for number, text in enumerate(short):
        (vector,) = encode([text]).astype(float)
        near = [float(vector @ other) / np.linalg.norm(vector) for other in units]
        own = near.pop(number)
        recovered += own > max(near) + 1e-6
        cosines += near
    centre = sum(units) / len(units)
    scatter = sum(np.outer(unit - centre, unit - centre) for unit in units)
    shares = [value for value in np.linalg.eigvalsh(scatter) / np.trace(scatter) if value > 1e-12]
    rank = np.exp(-sum(share * np.log(share) for share in shares))
    size = min(len(units) - 1, len(centre))
    return 100 * (1 - rank / size), 100 * recovered / len(texts), float(np.mean(cosines))


def test_the_score_is_that_of_a_slow_loop(bert_folder):
    encoder = cse.load(str(bert_folder), "mean")
    for texts in (TEXTS[::5], TEXTS[:20]):  # more and fewer than dimensions
        score = held_out_score(encoder.encode, texts)
        expected = by_hand(encoder.encode, texts)
        assert (score.concentration, score.found, score.cosine) == pytest.approx(expected, abs=1e-3)
        assert 0 < score.concentration < 100


@pytest.mark.parametrize("vector", [[1.0, 2.0], [np.nan, 1.0]])
def test_texts_with_one_vector_have_collapsed(vector):
    score = held_out_score(lambda texts: np.tile(np.float32(vector), (len(texts), 1)), TEXTS[:30])
    assert score == HeldOutScore(0, 0, 1)
    assert score.has_collapsed(HeldOutScore(50, 60, 0.5))


def test_held_out_texts_are_drawn_by_the_seed_and_not_trained_on():
    repeated = [*TEXTS, *TEXTS[:40], "too short"]
    kept, held = hold_out(Examples.of(repeated), 5)
    long = {text for text in repeated if len(text.split()) >= 6}
    assert len(held) == len(set(held)) == len(long) // 5
    assert set(held) <= long
    assert kept[:]["0"] == [text for text in repeated if text not in held]
    assert hold_out(Examples.of(repeated), 5)[1] == held
    assert hold_out(Examples.of(repeated), 6)[1] != held
    many = [f"one two three four five {number}" for number in range(3000)]
    assert len(hold_out(Examples.of(many), 5)[1]) == 500


def test_too_few_texts_are_refused(bert_folder, tmp_path):
    few = [f"one two three four five {number}" for number in range(99)] + ["short"] * 500
    with pytest.raises(
        ValueError, match=r"^`dev` auto needs 100 different texts of 6 words or more, .* found 99; give"
    ):
        cse.train("simcse", few, output=tmp_path / "out", backbone=bert_folder, dev="auto", progress=False)
    assert not (tmp_path / "out").exists()


def test_the_best_evaluation_is_kept_and_recorded_as_no_correlation(bert_folder, tmp_path):
    settings = {**SETTINGS, "learning_rate": 1e-2}
    result = cse.train(
        "simcse", TEXTS, output=tmp_path / "a", backbone=bert_folder, dev="auto", progress=False, **settings
    )
    log = [json.loads(line) for line in (tmp_path / "a" / "train_log.jsonl").read_text().splitlines()]
    scores = {entry["step"]: entry["dev"] for entry in log if "dev" in entry}
    assert list(scores) == [2, 4, 6]
    assert (result.best, result.last) == (max(scores.values()), scores[6])
    assert scores[result.best_step] == result.best
    encoder, run = prepare(TrainRequest("simcse", TEXTS, str(bert_folder), dev="auto", settings=settings))
    encoder.eval()
    assert held_out_score(encoder.encode, run.held_out).concentration == pytest.approx(result.start, abs=1e-3)
    assert held_out_score(result.load().encode, run.held_out).concentration == pytest.approx(result.best, abs=1e-3)
    assert not set(run.held_out) & set(run.examples[:]["0"])
    config = read_checkpoint_config(tmp_path / "a")
    assert config.training["selection"] == result.selection
    assert "spearman" not in model_card(config).lower()


def test_runs_of_several_seeds_are_known_by_the_same_texts(bert_folder):
    recipes = []
    for seed, texts in ((1, TEXTS), (2, TEXTS), (1, [*TEXTS[1:], "the dog of the park was in the rain"])):
        settings = {**SETTINGS, "seed": seed}
        encoder, run = prepare(TrainRequest("simcse", texts, str(bert_folder), dev="auto", settings=settings))
        recipes.append({name: value for name, value in run.recipe(encoder).items() if name != "seed"})
    assert recipes[0] == recipes[1] != recipes[2]


def guarded(bert_folder: Path) -> tuple:
    return prepare(TrainRequest("simcse", TEXTS, str(bert_folder), dev="auto", settings=SETTINGS))


def test_a_run_that_collapses_ends_and_keeps_the_evaluation_before(bert_folder, tmp_path):
    encoder, run = guarded(bert_folder)

    def collapse(entry: dict) -> None:
        if entry["step"] == 3:
            with torch.no_grad():
                for tensor in encoder.parameters():
                    tensor.zero_()

    summary = train(encoder, run, tmp_path / "out", report=collapse)
    assert (summary.steps, summary.best_step, summary.last) == (4, 2, 0)
    assert summary.stopped.startswith("collapsed at step 4")
    assert held_out_score(cse.load(str(tmp_path / "out")).encode, run.held_out).concentration == pytest.approx(
        summary.best, abs=1e-3
    )


def test_a_loss_that_is_no_number_ends_a_run_that_has_something_to_keep(bert_folder, tmp_path):
    encoder, run = guarded(bert_folder)

    def spoil(entry: dict) -> None:
        if entry["step"] == 3:
            with torch.no_grad():
                next(iter(encoder.learned().values())).fill_(float("nan"))

    summary = train(encoder, run, tmp_path / "out", report=spoil)
    assert (summary.steps, summary.best_step) == (3, 2)
    assert summary.stopped == "the loss became nan at step 4; lower `learning_rate`"
    assert np.isfinite(cse.load(str(tmp_path / "out")).encode(SENTENCES)).all()
