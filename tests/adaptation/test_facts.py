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
from cse.vectors import unit_rows

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


@pytest.mark.parametrize(
    ("text", "percent"), [("ж ш щ ю the", "80 % of their pieces are unknown"), ("xyz qvw", "100 % are single letters")]
)
def test_a_language_that_the_vocabulary_does_not_know_is_named(bert_folder, text, percent):
    counted = facts_of(bert_folder, [text, f"{text} {text}"])
    assert counted.warning is not None
    assert percent in counted.warning
    assert "choose a model of that language" in counted.known()["warning"]


def test_the_bundled_backbone_knows_english_but_not_russian_or_chinese():
    encoder, vectors = cse.load("bundled"), np.eye(4, dtype=np.float32)
    english = ["Where is my card?", "The cat sleeps on the sofa.", "How do I cancel my subscription?"]
    russian = ["Где моя карта?", "Кошка спит на диване.", "Как отменить мою подписку?"]
    chinese = ["我的卡在哪里?", "猫在沙发上睡觉。", "如何取消我的订阅?"]
    known, *others = (text_facts(encoder, texts, 3, vectors, 0) for texts in (english, russian, chinese))
    assert (known.warning, known.unknown) == (None, 0.0)
    assert known.letters < 10
    assert [other.warning is None for other in others] == [False, False]
    assert others[0].letters > 80
    assert others[1].unknown > 40


def test_words_of_scripts_without_spaces_are_counted(bert_folder, monkeypatch):
    monkeypatch.setattr("cse.corpus.words.segmenter", lambda language: None)
    assert facts_of(bert_folder, ["送餐太慢了。", "味道很好吃!"]).words == 3
    assert facts_of(bert_folder, ["मौसम ठंडा है ।"]).words == 4


def test_a_fifth_is_held_out_by_the_seed_and_not_fitted_on():
    held, fit = (part.texts for part in split(Corpus.of(TEXTS), 3))
    assert (len(held), len(fit)) == (12, 48)
    assert {*held, *fit} == set(TEXTS)
    assert not {*held} & {*fit}
    assert [part.texts for part in split(Corpus.of(TEXTS), 3)] == [held, fit]
    assert [part.texts for part in split(Corpus.of(TEXTS), 4)] != [held, fit]
    assert len(split(Corpus.of(TEXTS * 400), 3)[0]) == 2_000


NARROW = [f"the {a} {b} is {c}" for a in WORDS[:9] for b in WORDS[20:29] for c in WORDS[40:45]]


def test_the_measure_is_the_ratio_of_effective_ranks(bert_folder):
    encoder = cse.load(str(bert_folder))
    short = cse.load(str(bert_folder))
    short.max_seq_length = facts.NARROWNESS_TOKENS + 2  # [CLS] and [SEP]
    general = list(general_texts())
    ranks = []
    for texts in (NARROW[:250], general[:250]):
        unit = unit_rows(short.encode(texts).astype(np.float64))
        values = np.linalg.eigvalsh(np.cov(unit.T))
        shares = values[values > 0] / values.sum()
        ranks.append(np.exp(-sum(share * np.log(share) for share in shares)))
        assert facts._rank(encoder, texts) == pytest.approx(ranks[-1], rel=1e-3)
    assert is_narrow(encoder, NARROW) == bool(ranks[0] < facts.NARROW_RATIO * ranks[1]) is True
    assert not is_narrow(None, general)  # what all texts are compared with: nothing is encoded
    assert not is_narrow(encoder, NARROW[:249] * 9)  # too few to say


@pytest.mark.parametrize(
    ("options", "warned"),
    [((), True), (("--temperature", "0.2"), False), (("--learning-rate", "1e-5"), False), (("--dry-run",), False)],
)
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
