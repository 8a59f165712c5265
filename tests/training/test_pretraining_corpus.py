"""The tokenised corpus: held-out documents, rows that begin with sentences, and the vocabulary."""

from pathlib import Path

import numpy as np
import pytest
from pretraining_runs import write_corpus

from cse.training.pretraining_data import TokenFile, tokenise, train_tokenizer


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_every_hundredth_document_is_held_out_and_rows_begin_with_sentences(corpus: Path, tmp_path: Path) -> None:
    tokenizer = train_tokenizer([corpus], 90)
    tokenise([corpus], tokenizer, tmp_path / "tokens")
    train, valid = (TokenFile.open(tmp_path / "tokens", split) for split in ("train", "valid"))
    assert tokenizer.decode(valid.ids).count("rain rain rain") == 2
    assert "rain rain rain" not in tokenizer.decode(train.ids)
    assert (len(train.starts), len(valid.starts)) == (496, 4)
    starts = {tuple(train.ids[start : start + 3]) for start in train.starts}
    for row in train.rows(50, 6, np.random.default_rng(0)):
        assert tuple(row[:3]) in starts


def test_a_word_of_a_megabyte_does_not_hold_up_the_vocabulary(corpus: Path) -> None:
    corpus.write_text(corpus.read_text() + "\n" + "a" * 1_000_000 + "\n")
    assert len(train_tokenizer([corpus], 90)) == 90


@pytest.mark.parametrize("vocabulary", [60, 90])
def test_the_same_text_gives_the_same_vocabulary(corpus: Path, vocabulary: int) -> None:
    learned = [train_tokenizer([corpus], vocabulary).get_vocab() for _ in range(4)]
    assert all(pieces == learned[0] for pieces in learned)
    assert len(learned[0]) == vocabulary
