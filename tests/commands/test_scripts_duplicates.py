"""`scripts.duplicates`: groups equal brute force on the encoder's vectors; outputs, bad input, nothing half written."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest
from command_line import ran, refused, run
from conftest import WORDS

import cse
from cse.analysis.duplicates import thresholds


def made_texts() -> list[str]:
    """150 random texts and copies of some with a word changed, in random order; some copies are exact."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS[:40], k=7)) for _ in range(150)]
    near = [f"{text.rsplit(' ', 1)[0]} {rng.choice(WORDS[:40])}" for text in texts[:30]]
    mixed = [*texts, *near, *texts[:10], *texts[:3]]
    rng.shuffle(mixed)
    return mixed


TEXTS = made_texts()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS))
    return path


def groups_by_brute_force(vectors: np.ndarray, least: float) -> list[list[int]]:
    groups = {row: {row} for row in range(len(vectors))}
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for a, b in np.argwhere(np.triu(unit @ unit.T >= least, 1)).tolist():
        if groups[a] is not groups[b]:
            groups[a] |= groups[b]
            for row in groups[b]:
                groups[row] = groups[a]
    return sorted({id(group): sorted(group) for group in groups.values()}.values())


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize("percentile", [99, 99.9])
def test_the_kept_rows_and_groups_are_those_of_brute_force(bert_folder, file, tmp_path, percentile):
    outputs = ("--output", tmp_path / "kept.csv", "--groups", tmp_path / "groups.csv", "--json")
    done = ran("duplicates", file, "--model", bert_folder, "--percentile", percentile, *outputs)
    encode = cse.load(str(bert_folder)).encode
    vectors = encode(list(dict.fromkeys(TEXTS)), normalize_embeddings=True)
    (least,) = thresholds(vectors, [percentile], seed=42)
    expected = groups_by_brute_force(encode(TEXTS, normalize_embeddings=True), least)
    assert 10 < sum(len(group) > 1 for group in expected) < 100
    lines = (tmp_path / "kept.csv").read_text().splitlines()
    assert lines == ["text", *(TEXTS[group[0]] for group in expected)]
    rows = table(tmp_path / "groups.csv")
    several = [group for group in expected if len(group) > 1]
    assert [int(row["row"]) - 1 for row in rows] == [row for group in several for row in group]
    assert [int(row["group"]) for row in rows] == [n for n, group in enumerate(several, 1) for _ in group]
    assert [row["text"] for row in rows] == [TEXTS[int(row["row"]) - 1] for row in rows]
    firsts = {group[0] for group in several}
    for row in rows:
        kept = int(row["row"]) - 1 in firsts
        assert (row["kept"], row["reason"] == "the first") == (("yes", True) if kept else ("no", False))
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["kept"], summary["groups"]) == (len(TEXTS), len(expected), len(several))
    assert summary["largest"] == max(map(len, expected))
    assert summary["cosine"] == pytest.approx(least, abs=1e-4)


def test_tables_and_groups_keep_all_columns_unchanged(bert_folder, tmp_path):
    texts = ["=the dog", "a cat, big", "=the dog", "the sun"]
    rows = [(f"{number}", text, "=1+1") for number, text in enumerate(texts)]
    with (tmp_path / "in.csv").open("w", newline="") as opened:
        csv.writer(opened).writerows([("id", "body", "note"), *rows])
    options = ("--column", "body", "--output", tmp_path / "out.csv", "--groups", tmp_path / "g.csv")
    ran("duplicates", tmp_path / "in.csv", "--model", bert_folder, *options)
    with (tmp_path / "out.csv").open(newline="") as opened:
        assert list(csv.reader(opened)) == [["id", "body", "note"], *map(list, [rows[0], rows[1], rows[3]])]
    groups = table(tmp_path / "g.csv")
    assert list(groups[0]) == ["group", "row", "kept", "cosine", "reason", "id", "body", "note"]
    assert [(row["row"], row["id"], row["body"], row["note"]) for row in groups] == [
        ("1", "0", "=the dog", "=1+1"), ("3", "2", "=the dog", "=1+1")
    ]  # fmt: skip
    assert [row["reason"] for row in groups] == ["the first", "equal to the kept row"]
    ran("duplicates", tmp_path / "in.csv", "--model", bert_folder, *options, "--for-spreadsheets")
    assert [row["body"] for row in table(tmp_path / "g.csv")] == ["'=the dog"] * 2
    assert [row["note"] for row in table(tmp_path / "out.csv")] == ["'=1+1"] * 3


def test_rows_without_a_text_are_kept_and_all_rows_have_the_numbers_of_the_table(bert_folder, tmp_path):
    bodies = ["a dog", "", " ", "a dog", "the sun", "a cat", "a dog", ""]
    (tmp_path / "gap.csv").write_text("id,body\n" + "".join(f"{n},{body}\n" for n, body in enumerate(bodies, 1)))
    outputs = ("--output", tmp_path / "out.csv", "--groups", tmp_path / "g.csv", "--keep", "first")
    command = ("duplicates", tmp_path / "gap.csv", "--column", "body", "--model", bert_folder, *outputs)
    done = ran(*command)
    assert done.stderr.count("gap.csv: 8 rows, commas; texts from `body`; 3 rows without a text\n") == 1
    assert done.stdout == "kept 6 of 8 rows; 1 groups of near-duplicates, the largest of 3 rows\n"
    assert [row["id"] for row in table(tmp_path / "out.csv")] == ["1", "2", "3", "5", "6", "8"]
    groups = [(row["row"], row["kept"], row["body"]) for row in table(tmp_path / "g.csv")]
    assert groups == [("1", "yes", "a dog"), ("4", "no", "a dog"), ("7", "no", "a dog")]
    summary = json.loads(run(*command, "--json").stdout)
    assert (summary["rows"], summary["kept"], summary["largest"]) == (8, 6, 3)


def test_equal_texts_are_one_row_and_the_longest_can_be_kept(bert_folder, tmp_path):
    (tmp_path / "same.txt").write_text("a dog\n" * 9)
    options = ("--model", bert_folder, "--output", tmp_path / "out.csv")
    done = run("duplicates", tmp_path / "same.txt", *options)
    assert done.stdout == "kept 1 of 9 rows; 1 groups of near-duplicates, the largest of 9 rows\n"
    (tmp_path / "two.txt").write_text("The dog\nthe   dog\nthe sun\n")  # one row of tokens
    assert run("duplicates", tmp_path / "two.txt", *options, "--keep", "longest").exit_code == 0
    assert (tmp_path / "out.csv").read_text() == "text\nthe   dog\nthe sun\n"


def test_bad_input_is_refused_and_nothing_is_written(bert_folder, file, tmp_path):
    (tmp_path / "out").mkdir()
    out = tmp_path / "out"
    options = ("--model", bert_folder, "--output", out / "kept.csv", "--groups", out / "g.csv")
    bad = tmp_path / "bad.txt"
    refused(run("duplicates", bad, *options), 3, "no such file")
    bad.write_text("a dog\n")
    refused(run("duplicates", bad, *options), 3, "only 1 text in it")
    refused(run("duplicates", file, "--model", "nothing/here", *options[2:]), 4, "no model 'nothing/here'")
    done = run("duplicates", file, "--model", bert_folder, "--output", tmp_path / "kept.txt")
    refused(done, 3, "ends in .csv, .tsv, .jsonl or .parquet")
    refused(run("duplicates", file, *options, "--percentile", 100), 2)
    (tmp_path / "file").touch()
    lost = run("duplicates", file, "--model", "nothing/here", "--output", tmp_path / "file" / "kept.csv")
    refused(lost, 3, "cannot be written")  # before a model is opened
    assert not list((tmp_path / "out").iterdir())
