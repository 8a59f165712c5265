"""Facts about texts are counts that a loop gives; held-out texts are not fitted on; an unknown language is named."""

from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES, WORDS

import cse
from cse.adaptation.facts import TextFacts, split, text_facts
from cse.text.labelled import LabelledText

TEXTS = [" ".join(words) for words in np.random.default_rng(2).choice(WORDS[:40], (60, 6))]


def facts(folder: Path, texts: list[str], rows: int = 0, repeated: int = 0) -> TextFacts:
    encoder = cse.load(str(folder))
    vectors = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    vectors[40 - repeated :] = vectors[:repeated]
    return text_facts(encoder, texts, rows, vectors, 0)


def test_lengths_truncation_unknown_pieces_and_near_duplicates_are_counted(bert_folder: Path) -> None:
    texts = [*SENTENCES, "ß ß the dog", "the " * 100]
    found = facts(bert_folder, texts, rows=20, repeated=4)
    tokenizer = cse.load(str(bert_folder), backend="torch").tokenizer
    pieces = [tokenizer.tokenize(text) for text in texts]
    assert (found.rows, found.distinct) == (20, len(texts))
    assert found.words == np.median([len(text.split()) for text in texts])
    assert found.tokens == np.median(list(map(len, pieces)))
    assert found.cut == round(100 / len(texts), 1)
    every = [piece for text in pieces for piece in text]
    assert every.count("[UNK]") == 2
    assert found.unknown == round(100 * 2 / len(every), 1)
    assert found.letters == round(100 * every.count("a") / len(every), 1) > 0
    assert found.near == 20.0  # 4 pairs among 40
    assert found.warning is None


@pytest.mark.parametrize(
    ("text", "percent"), [("ж ш щ ю the", "80 % of their pieces are unknown"), ("xyz qvw", "100 % are single letters")]
)
def test_a_language_that_the_vocabulary_does_not_know_is_named(bert_folder: Path, text: str, percent: str) -> None:
    found = facts(bert_folder, [text, f"{text} {text}"])
    assert found.warning is not None
    assert percent in found.warning
    assert "choose a model of that language" in found.known()["warning"]


def test_ideographs_are_no_single_letters(roberta_folder: Path) -> None:
    from cse.adaptation.facts import _is_letter

    assert [_is_letter(piece) for piece in ("##x", "Ġa", "▁b", "Ð", "漢", "##字", ".", "ab", "7", "")] == [
        True, True, True, True, False, False, False, False, False, False,
    ]  # fmt: skip


def test_a_fifth_is_held_out_by_the_seed_and_not_fitted_on() -> None:
    rows = [LabelledText(text, str(number), ()) for number, text in enumerate(TEXTS)]
    held, fit = split(rows, 3)
    assert (len(held), len(fit)) == (12, 48)
    assert {row.text for row in held} | set(fit) == set(TEXTS)
    assert not {row.text for row in held} & set(fit)
    assert split(rows, 3) == (held, fit)
    assert split(rows, 4) != (held, fit)
    assert len(split(rows * 400, 3)[0]) == 2_000
