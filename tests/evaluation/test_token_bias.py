"""Biases of static embeddings: removal by hand for both kinds of vocabulary, loops, scipy and scikit-learn."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from cse.evaluation.geometry import (
    BYTE_FREQUENT,
    WORDPIECE_FREQUENT,
    StaticEmbeddings,
    cumulative_removal,
    frequent_tokens,
    group_cosines,
    picture,
    token_groups,
)  # fmt: skip

WORDPIECES = ["[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "Dog", "dog", ".", "sun", "Sun", "##ny", "a1"]
BYTES = ["<s>", "</s>", "<mask>", "Ġthe", "Ġcat", "s", "ĠDog", "Ġdog", ".", "Ġsun", "Ġ.", "Ġ", "cat"]
CUTS = {"cats": "cat ##s", "Sunny": "Sun ##ny", "sunny": "sun ##ny", "dogs": "dog ##s"}


def wordpieces(texts: list[str]) -> list[list[int]]:
    assert texts, "real tokenizers refuse an empty list"
    pieces = [" ".join(CUTS.get(word, word) for word in text.split()).split() for text in texts]
    return [[WORDPIECES.index(piece) for piece in line] for line in pieces]


def byte_pieces(texts: list[str]) -> list[list[int]]:
    """A word after a space begins with Ġ; the longest known piece first."""
    ids_of_words = []
    for text in texts:
        rest, ids = text.replace(" ", "Ġ"), []
        while rest:
            piece = max((piece for piece in BYTES if rest.startswith(piece)), key=len)
            ids.append(BYTES.index(piece))
            rest = rest[len(piece) :]
        ids_of_words.append(ids)
    return ids_of_words


def static_of(tokens: list[str]) -> StaticEmbeddings:
    embeddings = np.random.default_rng(3).normal(size=(len(tokens), 6)) + 0.3
    return StaticEmbeddings(embeddings, tokens, wordpieces if tokens is WORDPIECES else byte_pieces, (0, 1))


def expected(static: StaticEmbeddings, cut: dict[str, str], pairs: list[tuple[float, str, str]]) -> float:
    """Spearman x 100 of the averages of the pieces listed for each sentence."""

    def average(text: str) -> np.ndarray:
        ids = [list(static.tokens).index(piece) for piece in cut[text].split()]
        return sum(static.embeddings[i] for i in ids) / len(ids)

    cosines = []
    for _, first, second in pairs:
        a, b = average(first), average(second)
        cosines.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    return round(100 * float(spearmanr(cosines, [grade for grade, _, _ in pairs]).statistic), 2)


GRADES = (3.0, 0.0, 4.5, 1.0, 5.0, 2.0, 0.5, 4.0, 1.5, 2.5)


def all_pairs(texts: tuple[str, ...]) -> list[tuple[float, str, str]]:
    return [(grade, *pair) for grade, pair in zip(GRADES, combinations(texts, 2), strict=True)]


def test_cumulative_removal_on_word_pieces_is_the_average_of_hand_cut_sentences() -> None:
    texts = ("the cats .", "Dog Sunny", "a1 dogs", "the sun .", "Sun the a1 cat")
    rows = {
        "static": [f"[CLS] {cut} [SEP]" for cut in (
            "the cat ##s .", "Dog Sun ##ny", "a1 dog ##s", "the sun .", "Sun the a1 cat")],
        "-Freq": ("cat ##s .", "Dog Sun ##ny", "a1 dog ##s", "sun .", "Sun a1 cat"),
        "-Freq&Sub": ("cat .", "Dog Sun", "a1 dog", "sun .", "Sun a1 cat"),
        "-Freq&Sub&Case": ("cat .", "dog sun", "a1 dog", "sun .", "sun a1 cat"),
        "-Freq&Sub&Case&Pun": ("cat", "dog sun", "a1 dog", "sun", "sun a1 cat"),
    }  # fmt: skip
    static = static_of(WORDPIECES)
    removal = cumulative_removal(static, {"set": all_pairs(texts)}, ("the",))
    assert list(removal) == list(rows)
    for name, cuts in rows.items():
        score = expected(static, dict(zip(texts, cuts, strict=True)), all_pairs(texts))
        assert removal[name] == {"set": score, "average": score}, name
    assert len({row["average"] for row in removal.values()}) == len(rows)


def test_cumulative_removal_on_byte_level_pieces_keeps_what_begins_a_word() -> None:
    texts = ("Dog cats.", "the sun", "dog .", "sun Dog .", "cat sun")
    rows = {
        "-Freq": ("ĠDog Ġcat s .", "Ġsun", "Ġdog Ġ.", "Ġsun ĠDog Ġ.", "Ġcat Ġsun"),
        "-Freq&Sub": ("ĠDog Ġcat", "Ġsun", "Ġdog Ġ.", "Ġsun ĠDog Ġ.", "Ġcat Ġsun"),
        "-Freq&Sub&Case": ("Ġdog Ġcat", "Ġsun", "Ġdog Ġ.", "Ġsun Ġdog Ġ.", "Ġcat Ġsun"),
        "-Freq&Sub&Case&Pun": ("Ġdog Ġcat Ġ", "Ġsun Ġ", "Ġdog Ġ", "Ġsun Ġdog Ġ", "Ġcat Ġsun Ġ"),
    }  # the last row ends in a blank
    static = StaticEmbeddings(static_of(BYTES).embeddings, BYTES, first_without_space, (0, 1))
    removal = cumulative_removal(static, {"set": all_pairs(texts)}, ("Ġthe",))
    for name, cuts in rows.items():
        score = expected(static, dict(zip(texts, cuts, strict=True)), all_pairs(texts))
        assert removal[name]["set"] == score, name
    assert len({row["set"] for row in list(removal.values())[1:]}) == 4


def first_without_space(texts: list[str]) -> list[list[int]]:
    """As `byte_pieces`; a first word without a space before it, which only `static` may ask for, becomes <mask>."""
    return [byte_pieces([text])[0] if text.startswith(" ") else [2] for text in texts]


def test_static_averages_are_the_encoder_s_static_pooling(bert_folder: Path) -> None:
    import cse

    encoder = cse.load(str(bert_folder), pooling="static", backend="torch")
    tokenizer, count = encoder.tokenizer, len(encoder.tokenizer)
    static = StaticEmbeddings(
        encoder.model.get_input_embeddings().weight.detach().numpy(),
        tokenizer.convert_ids_to_tokens(range(count)),
        lambda texts: tokenizer(texts, add_special_tokens=False)["input_ids"],
        (tokenizer.cls_token_id, tokenizer.sep_token_id),
    )
    pairs = [(float(i * 7 % 5), SENTENCES[i], SENTENCES[(i + 2) % 7]) for i in range(7)]
    vectors = dict(zip(SENTENCES, encoder.encode(SENTENCES), strict=True))
    cosines = [vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]) for _, a, b in pairs]
    score = round(100 * float(spearmanr(cosines, [grade for grade, _, _ in pairs]).statistic), 2)
    assert cumulative_removal(static, {"set": pairs}, ())["static"]["set"] == score


# -- frequent tokens ----------------------------------------------------------------------------------------------


def test_the_released_lists_hold_36_tokens_and_belong_to_their_vocabularies() -> None:
    for size, listed in ((30522, WORDPIECE_FREQUENT), (28996, WORDPIECE_FREQUENT), (50265, BYTE_FREQUENT)):
        assert len(set(listed)) == 36
        tokens = [*listed, *(f"##{number}" for number in range(size - 36))]
        static = StaticEmbeddings(np.zeros((1, 1)), tokens, lambda texts: [[40]], ())
        assert frequent_tokens(static, ["x"]) == listed
        shorter = StaticEmbeddings(np.zeros((1, 1)), tokens[:-1], lambda texts: [[40]], ())
        assert frequent_tokens(shorter, ["x"]) == (tokens[40],)
        foreign = StaticEmbeddings(np.zeros((1, 1)), ["x", *tokens[1:]], lambda texts: [[40]], ())
        assert frequent_tokens(foreign, ["x"]) == (tokens[40],)
    assert [token for token in BYTE_FREQUENT if not token.startswith("Ġ")] == ["a", "s", ".", "the", "-", "i"]


# -- groups -------------------------------------------------------------------------------------------------------


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
