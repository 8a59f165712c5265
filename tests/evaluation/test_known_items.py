"""Known items: short forms, ranks against a loop, ties that count against a model, and the interval of a mean gain."""

import numpy as np
import pytest

from cse.evaluation.metrics import mean_difference
from cse.evaluation.retrieval import every_second_word, known_item_values, ranks


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("one two three four", "one three"),
        ("a b c", "a c"),
        ("two words", ""),
        ("", ""),
        ("今天天气很好我们", "今天 很好"),
    ],
)
def test_a_short_form_has_every_second_word(text: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cse.corpus.words.segmenter", lambda language: None)
    assert every_second_word(text) == form


def test_ranks_are_those_of_a_loop_over_each_draw() -> None:
    rng = np.random.default_rng(4)
    texts = rng.normal(size=(600, 4)).astype(np.float32)
    own = rng.permutation(600)[:520]
    queries = (texts[own] + rng.normal(scale=0.3, size=(520, 4))).astype(np.float32)
    draws = [rng.permutation(600)[:100], np.arange(600)]
    expected = np.empty((2, 520))
    for number, draw in enumerate(draws):
        for row, text in enumerate(own):
            cosines = {
                other: queries[row] @ texts[other] / np.linalg.norm(queries[row]) / np.linalg.norm(texts[other])
                for other in {*draw.tolist(), text}
            }
            expected[number, row] = sum(value >= cosines[text] - 1e-6 for value in cosines.values())
    np.testing.assert_array_equal(ranks(queries, own, texts, draws), expected)
    values = known_item_values(queries, own, texts, draws)
    np.testing.assert_allclose(values["recall@1"], (expected == 1).mean(axis=0))
    np.testing.assert_allclose(values["mrr"], (1 / expected).mean(axis=0))


def test_vectors_that_are_all_alike_or_no_numbers_find_nothing() -> None:
    for vector in (1.0, np.nan):
        texts = np.full((10, 3), vector, np.float32)
        np.testing.assert_array_equal(ranks(texts[:2], np.arange(2), texts, [np.arange(10)]), [[10, 10]])


def test_the_interval_of_a_gain_is_that_of_its_mean() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.random(900) < 0.7, rng.random(900) < 0.6
    gain = mean_difference(first, second.astype(float))
    points = 100 * (first.astype(float) - second)
    assert gain.value == pytest.approx(points.mean(), abs=0.01)
    half = 1.96 * points.std(ddof=1) / 30
    assert (gain.low, gain.high) == pytest.approx((points.mean() - half, points.mean() + half), abs=0.6)
    assert mean_difference(first.astype(float), first).high == 0
