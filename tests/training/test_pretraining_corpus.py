"""The tokenised corpus: held-out documents, rows that begin with sentences, and the vocabulary."""

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES
from pretraining_runs import write_corpus

from cse.training.pretraining_data import Reading, TokenFile, tokenise, train_tokenizer


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


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".csv.gz", ".parquet"])
def test_a_table_is_read_by_its_column(tmp_path: Path, suffix: str) -> None:
    texts = ["", *(f'{sentence}, "{number}" rain' for number, sentence in enumerate(SENTENCES * 9))]
    write_table(tmp_path / f"table{suffix}", texts)
    (tmp_path / "plain.txt").write_text("\n".join(texts[1:]))
    table, plain = [tmp_path / f"table{suffix}"], [tmp_path / "plain.txt"]
    tokenizer = train_tokenizer(table, 90, Reading("said"))
    assert tokenizer.get_vocab() == train_tokenizer(plain, 90).get_vocab()
    tokenise(table, tokenizer, tmp_path / "a", Reading("said"))
    tokenise(plain, tokenizer, tmp_path / "b")
    for name in ("train.ids", "train.starts", "valid.ids", "valid.starts"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def write_table(path: Path, texts: list[str]) -> None:
    """Write rows of a number, a text called `said` and a label."""
    rows = [{"number": number, "said": text, "label": "xylophone"} for number, text in enumerate(texts)]
    if path.suffix == ".parquet":
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(rows), path)
        return
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return
    if path.suffix == ".tsv":  # without quoting
        lines = [list(rows[0]), *(map(str, row.values()) for row in rows)]
        path.write_text("".join("\t".join(line) + "\n" for line in lines))
        return
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(gzip.compress(buffer.getvalue().encode()) if path.suffix == ".gz" else buffer.getvalue().encode())


@pytest.mark.parametrize("vocabulary", [60, 90])
def test_the_same_text_gives_the_same_vocabulary(corpus: Path, vocabulary: int) -> None:
    learned = [train_tokenizer([corpus], vocabulary).get_vocab() for _ in range(4)]
    assert all(pieces == learned[0] for pieces in learned)
    assert len(learned[0]) == vocabulary
