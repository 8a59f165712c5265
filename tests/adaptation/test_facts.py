"""Facts about texts: counts by a loop, what is held out, unknown languages, and narrow domains."""

from pathlib import Path

import numpy as np
import pytest
from command_line import ran
from conftest import SENTENCES, WORDS

import cse
from cse.adaptation import facts
from cse.adaptation.facts import TextFacts, general_texts, is_narrow, split, text_facts
from cse.corpus import Corpus

TEXTS = [" ".join(words) for words in np.random.default_rng(2).choice(WORDS[:40], (60, 6))]


def facts_of(folder: Path, texts: list[str], rows: int = 0, repeated: int = 0) -> TextFacts:
    encoder = cse.load(str(folder))
    vectors = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
    vectors[40 - repeated :] = vectors[:repeated]
    return text_facts(encoder, texts, rows, vectors, 0)


def test_lengths_truncation_unknown_pieces_and_near_duplicates_are_counted(bert_folder):
    texts = [*SENTENCES, "ß ß the dog", "the " * 100]
    counted = facts_of(bert_folder, texts, rows=20, repeated=4)
    tokenizer = cse.load(str(bert_folder), backend="torch").tokenizer
    pieces = [tokenizer.tokenize(text) for text in texts]
    assert (counted.rows, counted.distinct) == (20, len(texts))
    assert counted.words == np.median([len(text.split()) for text in texts])
    assert counted.tokens == np.median(list(map(len, pieces)))
    assert counted.cut == round(100 / len(texts), 1)
    assert sum(text.count("[UNK]") for text in pieces) == 2
    assert counted.unknown == round(100 * np.mean([text.count("[UNK]") / len(text) for text in pieces]), 1)
    assert counted.letters == round(100 * np.mean([text.count("a") / len(text) for text in pieces]), 1) > 0
    assert counted.near == 20.0  # 4 pairs among 40
    assert counted.warning is None


@pytest.mark.parametrize(("text", "percent"), [("ж ш щ ю the", "80 % of their"), ("xyz qvw", "100 % are single")])
def test_a_language_that_the_vocabulary_does_not_know_is_named(bert_folder, text, percent):
    counted = facts_of(bert_folder, [text, f"{text} {text}"])
    assert counted.warning is not None
    assert percent in counted.warning


def test_a_fifth_is_held_out_by_the_seed_and_not_fitted_on():
    held, fit = (part.texts for part in split(Corpus.of(TEXTS), 3))
    assert (len(held), len(fit)) == (12, 48)
    assert {*held, *fit} == set(TEXTS)
    assert not {*held} & {*fit}
    assert [part.texts for part in split(Corpus.of(TEXTS), 3)] == [held, fit]
    assert [part.texts for part in split(Corpus.of(TEXTS), 4)] != [held, fit]
    assert len(split(Corpus.of(TEXTS * 400), 3)[0]) == 2_000


NARROW = [f"the {a} {b} is {c}" for a in WORDS[:9] for b in WORDS[20:29] for c in WORDS[40:45]]


def test_texts_of_one_pattern_are_narrow_and_few_or_general_ones_are_not(bert_folder):
    encoder = cse.load(str(bert_folder))
    assert is_narrow(encoder, NARROW)
    assert not is_narrow(encoder, list(general_texts()))
    assert not is_narrow(encoder, NARROW[:249] * 9)


@pytest.mark.parametrize(("options", "warned"), [((), True), (("--temperature", "0.2"), False)])
def test_train_warns_of_its_preset_on_narrow_texts_and_not_of_own_settings(
    bert_folder, tmp_path, options, warned, monkeypatch
):
    monkeypatch.setattr(facts, "is_narrow", lambda encoder, texts: set(texts) == set(NARROW))
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(NARROW))
    words = ("--data", file, "--backbone", bert_folder, "--output", tmp_path / "out", "--precision", "no")
    done = ran("train", "dcpcse", *words, "--max-steps", 1, "--batch-size", 4, "--max-length", 8, *options)
    assert ("narrow domain" in done.stderr) == ("scripts.adapt" in done.stderr) == warned
    assert "narrow" not in done.stdout
