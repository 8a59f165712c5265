"""`scripts.topics`: groups with words and typical texts, as text, JSON and CSV; scores of labels; bad input."""

import csv
import json
from pathlib import Path

import pytest
from command_line import ran, refused, run

import cse
from cse.analysis.topics import group_names, grouped, typical

TEXTS = [
    (topic, f"the {word} {noun} is {somewhere}")
    for topic, noun in (("pets", "dog"), ("home", "guitar"), ("sky", "rain"))
    for word in ("big", "small", "red", "happy")
    for somewhere in ("here", "in the park")
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "texts.csv"
    rows = [*TEXTS, TEXTS[0], ("", "=the sun was out")]
    file.write_text("topic,text\n" + "".join(f"{topic},{text}\n" for topic, text in rows))
    return file


def test_groups_words_and_typical_texts_are_those_of_the_library(bert_folder, table, tmp_path):
    outputs = ("--json", tmp_path / "t.json", "--csv", tmp_path / "t.csv")
    done = ran("topics", table, "--model", bert_folder, "--groups", 3, "--labels", "topic", *outputs)
    document = json.loads((tmp_path / "t.json").read_text())
    texts = [*(text for _, text in TEXTS), "=the sun was out"]
    model = cse.load(str(bert_folder))
    vectors = model.encode(texts, normalize_embeddings=True)
    groups = grouped(vectors, 3, 42)
    group_of = {text: int(group) for text, group in zip(texts, groups, strict=True)}
    rows = [*(text for _, text in TEXTS), TEXTS[0][1], texts[-1]]
    numbers = [group_of[text] for text in rows]
    topics = [*(topic for topic, _ in TEXTS), TEXTS[0][0], ""]
    assert [group["size"] for group in document["groups"]] == [numbers.count(number) for number in range(3)]
    distinct = [texts.index(text) for text in rows]
    names = group_names(rows, groups[distinct], 8, vectors[distinct], model.encode)
    assert document["left_out"] == names.left_out
    assert names.notes(8) == document["notes"]
    central = typical(vectors, groups, 3)
    for number, group in enumerate(document["groups"]):
        assert [entry["word"] for entry in group["words"]] == names.words[number]
        first_row = {text: row for row, text in reversed(list(enumerate(rows)))}
        assert group["typical"] == [
            {"row": first_row[texts[row]] + 1, "text": texts[row], "fields": {"topic": topics[first_row[texts[row]]]}}
            for row in central[number]
        ]
        assert group["rows"] == [row for row, of in enumerate(numbers, 1) if of == number]
    assert (document["texts"], document["scores"]["labelled"]) == (26, 25)
    assert (document["model"], document["fingerprint"]) == ("bert-mean", model.fingerprint)
    with (tmp_path / "t.csv").open(newline="") as file:
        table_rows = list(csv.DictReader(file))
    assert [int(row["group"]) - 1 for row in table_rows] == numbers
    assert [int(row["row"]) for row in table_rows] == list(range(1, 27))
    assert list(table_rows[0]) == ["row", "group", "words", "topic", "text"]
    assert [(row["topic"], row["text"]) for row in table_rows] == list(zip(topics, rows, strict=True))
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["1", str(numbers.count(0)), names.words[0][0]]
    assert lines[-1].startswith(f"purity {document['scores']['purity']:.2f}, NMI {document['scores']['nmi']:.2f}")


def test_without_labels_there_are_no_scores_and_json_goes_to_stdout(bert_folder, table):
    done = ran("topics", table, "--model", bert_folder, "--json", "-")
    document = json.loads(done.stdout)
    assert "scores" not in document
    assert len(document["groups"]) == 4  # the square root of half of 25 distinct texts
    assert not any("label" in group for group in document["groups"])


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("a dog\n", (), "only 1 text in it; grouping needs at least 4 different texts"),
        ("a\nb\n" * 60, (), "look like labels; give the --column of the texts"),
    ],
)
def test_texts_that_cannot_be_grouped_are_refused(bert_folder, tmp_path, content, options, words):
    file = tmp_path / "a.txt"
    file.write_text(content)
    outputs = ("--json", tmp_path / "t.json", "--csv", tmp_path / "t.csv")
    refused(run("topics", file, "--model", bert_folder, *options, *outputs), 3, words)
    assert not (tmp_path / "t.json").exists()
    assert not (tmp_path / "t.csv").exists()


def test_unknown_columns_models_and_numbers_are_refused(bert_folder, table):
    refused(
        run("topics", table, "--model", bert_folder, "--labels", "label"), 3, "no column 'label'; it has topic, text"
    )
