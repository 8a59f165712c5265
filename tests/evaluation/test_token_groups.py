"""Tokens in groups: thirds by frequency, pieces, case; their cosines and their picture."""

import json

import numpy as np
import pytest
from test_token_bias import WORDPIECES, static_of

from cse.evaluation import token_bias
from cse.evaluation.token_bias import (
    group_cosines,
    picture,
    token_groups,
)

COUNTED = ["the cats", "the dogs", "the sun . a1", "Dog the cats", "[MASK]"]  # the 4, ##s 3, cat 2, Dog dog . sun a1 1


def test_tokens_are_grouped_by_thirds_of_the_counted_by_piece_and_by_case() -> None:
    groups = token_groups(static_of(WORDPIECES), COUNTED)
    named = {kind: dict(zip(WORDPIECES, names, strict=True)) for kind, names in groups.items()}
    rest = dict.fromkeys(("[CLS]", "[SEP]", "[MASK]"), "")
    assert named["frequency"] == {
        **rest, "the": "frequent", "##s": "frequent", "cat": "frequent", "Dog": "middle", "dog": "middle",
        ".": "middle", "sun": "rare", "a1": "rare", "Sun": "", "##ny": "",
    }  # fmt: skip
    assert {token for token, name in named["piece"].items() if name == "subword"} == {"##s", "##ny"}
    assert {token for token, name in named["piece"].items() if not name} == {*rest}
    assert {token for token, name in named["case"].items() if name == "upper"} == {"Dog", "Sun"}
    assert {token for token, name in named["case"].items() if not name} == {*rest, "."}
    with pytest.raises(ValueError, match="2 tokens occur in 1 sentences"):
        token_groups(static_of(WORDPIECES), ["the cat"])


def test_group_cosines_are_the_double_loop_inside_each_group() -> None:
    static = static_of(WORDPIECES)
    groups = token_groups(static, COUNTED)
    rows = group_cosines(static, groups)
    assert list(rows) == ["all", "frequent", "middle", "rare", "subword", "whole word", "lower", "upper"]
    for kind, names in groups.items():
        for group in {*names} - {""}:
            inside = [static.embeddings[i] for i, name in enumerate(names) if name == group]
            assert rows[group]["tokens"] == len(inside), kind
            assert rows[group]["cosine"] == pytest.approx(loop(inside), abs=1e-4)
            assert rows[group]["excess"] == pytest.approx(loop(inside) - loop([*static.embeddings]), abs=2e-4)
    assert rows["all"] == {"tokens": 13, "cosine": pytest.approx(loop([*static.embeddings]), abs=1e-4), "excess": 0.0}
    assert set(group_cosines(static, {"case": ["upper", *[""] * 12]})) == {"all"}
    json.dumps(rows)


def loop(rows: list[np.ndarray]) -> float:
    pairs = [(a, b) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
    return abs(float(np.mean([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs])))


def test_the_picture_is_scikit_learn_s_pca_of_all_embeddings_up_to_signs() -> None:
    from sklearn.decomposition import PCA

    static = static_of(WORDPIECES)
    groups = token_groups(static, COUNTED)
    drawn = picture(static, groups)
    pca = PCA(2, svd_solver="full").fit(static.embeddings)
    points = pca.transform(static.embeddings)[3:]  # the specials belong to no group
    for axis, values in enumerate((drawn["x"], drawn["y"])):
        sign = np.sign(points[0, axis]) * np.sign(values[0])
        np.testing.assert_allclose(values, sign * points[:, axis], atol=1e-4)
    assert drawn["explained"] == pytest.approx(100 * pca.explained_variance_ratio_, abs=0.01)
    assert drawn["tokens"] == WORDPIECES[3:]
    assert {kind: drawn[kind] for kind in groups} == {kind: names[3:] for kind, names in groups.items()}
    json.dumps(drawn)


def test_the_sample_of_the_picture_depends_on_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    static = static_of(WORDPIECES)
    groups = token_groups(static, COUNTED)
    every = picture(static, groups)
    assert token_bias.MOST_POINTS == 2000
    monkeypatch.setattr(token_bias, "MOST_POINTS", 6)
    some = picture(static, groups, seed=1)
    assert some == picture(static, groups, seed=1)
    assert len({*some["tokens"]}) == 6
    assert some["tokens"] != picture(static, groups, seed=2)["tokens"]
    for token, x, y, band in zip(some["tokens"], some["x"], some["y"], some["frequency"], strict=True):
        place = every["tokens"].index(token)
        assert (x, y, band) == (every["x"][place], every["y"][place], every["frequency"][place])
