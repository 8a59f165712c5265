"""encode, tokens and export: what they write and print, and one line for what they refuse."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from command_line import ran, refused, run
from index_corpus import build
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from typer.testing import Result

import cse
from cse.encoder.openvino_encoder import OpenVinoEncoder
from cse.methods.templates import Template


def from_stdin(content: bytes, *words: object) -> Result:
    return run("encode", "--input", "-", *words, stdin=content)


def test_standard_input_is_encoded_as_a_file_of_the_same_lines(bert_folder, tmp_path):
    content = "\ufeffthe dog\r\n\n  a cat \nthe sun".encode()
    (tmp_path / "a.txt").write_bytes(content)
    done = ran("encode", "--model", bert_folder, "--input", tmp_path / "a.txt", "--output", tmp_path / "file.npy")
    done = from_stdin(content, "--model", bert_folder, "--output", tmp_path / "stdin.npy")
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(np.load(tmp_path / "stdin.npy"), np.load(tmp_path / "file.npy"))
    assert len(np.load(tmp_path / "stdin.npy")) == 3
    assert np.load(tmp_path / "stdin.rows.npy").tolist() == [1, 3, 4]
    assert "standard input: 3 lines\n" in done.stderr


def test_texts_of_standard_input_become_vectors_in_json(bert_folder, tmp_path):
    words = ("encode", "-", "--model", bert_folder, "--json")
    rows = json.loads(ran(*words, stdin="the dog\n\na cat\n").stdout)
    assert [(row["row"], row["text"]) for row in rows] == [(1, "the dog"), (3, "a cat")]
    expected = cse.load(str(bert_folder)).encode(["the dog", "a cat"])
    np.testing.assert_array_equal(np.array([row["vector"] for row in rows], np.float32), expected)
    done = run(*words, "--output", tmp_path / "v.npy", stdin="the dog\n")
    fingerprint = cse.load(str(bert_folder)).fingerprint
    assert json.loads(done.stdout) == {
        "model": f"{bert_folder.name}-mean", "fingerprint": fingerprint, "texts": 1, "dimensions": 32,
        "output": str(tmp_path / "v.npy"),
    }  # fmt: skip
    refused(run(*words[:4]), 2, "give --output")
    refused(run(*words, "--input", "-"), 2, "either INPUT or --input")


def test_dimensions_that_a_folder_cuts_are_those_of_files_parts_and_indexes(bert_folder, tmp_path):
    modules = [Transformer(str(bert_folder)), Pooling(32, "mean")]
    SentenceTransformer(modules=modules, device="cpu", truncate_dim=4).save(str(tmp_path / "m"))
    (tmp_path / "a.txt").write_text("the dog\na cat\nthe sun\n")
    words = ("encode", tmp_path / "a.txt", "--model", tmp_path / "m", "--json", "--output")
    expected = cse.load(str(tmp_path / "m")).encode(["the dog", "a cat", "the sun"])
    assert json.loads(ran(*words, tmp_path / "v.npy").stdout)["dimensions"] == 4
    assert json.loads(ran(*words, tmp_path / "v", "--shards", 1).stdout)["dimensions"] == 4
    (part,) = (tmp_path / "v").glob("*.npy")
    np.testing.assert_allclose(np.load(part), expected, atol=1e-6)
    built = ("build_index", tmp_path / "a.txt", "--model", tmp_path / "m", "--output", tmp_path / "i", "--resume")
    assert "i: 3 rows, 4 dimensions" in ran(*built).stdout


MESSY = "id;text;vector;id\n1; le caf\u00e9 noir ;x;9\n;;;\n3;the sun;y;8\n\n4;;;\n5;a dog;z;7\n".encode("cp1252")


def test_vectors_come_with_the_numbers_of_their_rows_or_with_all_columns(bert_folder, tmp_path):
    (tmp_path / "a.csv").write_bytes(MESSY)
    expected = cse.load(str(bert_folder)).encode(["le caf\u00e9 noir", "the sun", "a dog"])
    command = ("encode", "--model", bert_folder, "--input", tmp_path / "a.csv", "--output")
    done = ran(*command, tmp_path / "v.npy")
    assert f"{tmp_path / 'v.rows.npy'}: the numbers of the rows, from 1\n" in done.stderr
    rows = np.load(tmp_path / "v.rows.npy")
    assert (rows.tolist(), rows.dtype) == ([1, 3, 5], np.int64)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), expected)
    assert run(*command, tmp_path / "v.parquet").exit_code == 0
    table = pq.read_table(tmp_path / "v.parquet")
    np.testing.assert_array_equal(np.stack(table.column("cse_vector").to_numpy()), expected)
    assert table.drop_columns(["cse_vector"]).to_pylist() == [
        {"row": 1, "id": "1", "text": " le caf\u00e9 noir ", "vector": "x", "id.2": "9"},
        {"row": 3, "id": "3", "text": "the sun", "vector": "y", "id.2": "8"},
        {"row": 5, "id": "5", "text": "a dog", "vector": "z", "id.2": "7"},
    ]
    refused(run(*command, tmp_path / "w.parquet", "--parquet"), 2, "--parquet needs --shards")


def test_an_array_and_its_rows_are_written_both_or_not_at_all(bert_folder, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("the dog\n")
    (tmp_path / "v.npy").write_text("old")
    (tmp_path / "v.rows.npy").mkdir()
    command = ("encode", "--model", bert_folder, "--input", tmp_path / "a.txt", "--output", tmp_path / "v.npy")
    refused(run(*command), 3, "v.rows.npy: cannot be written")
    (tmp_path / "v.rows.npy").rmdir()
    monkeypatch.setattr(OpenVinoEncoder, "encode_ids", lambda *_, **__: 1 / 0)
    assert run(*command).exit_code == 1
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.txt", "v.npy"]
    assert (tmp_path / "v.npy").read_text() == "old"


@pytest.mark.parametrize(
    ("content", "options", "code", "message"),
    [
        (b"\n", (), 3, "standard input: no text in it"),
        (b"ok\n", ("--shards", 2), 2, "leave out --shards"),
    ],
)
def test_standard_input_that_cannot_be_encoded_is_refused(bert_folder, tmp_path, content, options, code, message):
    done = from_stdin(content, "--model", bert_folder, "--output", tmp_path / "v.npy", *options)
    refused(done, code, message)
    assert not any(tmp_path.iterdir())


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_encoded(bert_folder, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("the dog\n")
    monkeypatch.setattr(OpenVinoEncoder, "encode_ids", lambda *_, **__: pytest.fail("encoded"))
    output = tmp_path / "a.txt" / "v.npy"
    done = run("encode", "--model", bert_folder, "--input", tmp_path / "a.txt", "--output", output)
    refused(done, 3, f"{output}: cannot be written", "give another file")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_tokens_prints_probabilities_in_order_and_json(bert_folder):
    lines = run("tokens", "--model", bert_folder, "the dog is sad", "-k", 3).stdout.splitlines()
    assert len(lines) == 3
    words = ("tokens", "--model", bert_folder, "the dog is sad", "-k", 3, "--no-denoise", "--json")
    tokens = json.loads(run(*words).stdout)
    expected = cse.load(str(bert_folder)).top_tokens("the dog is sad", 3, denoise=False)
    assert [(row["token"], pytest.approx(row["probability"])) for row in tokens] == expected
    assert run("tokens", "--model", bert_folder, "[MASK] 🎸 שלום").exit_code == 0
    asked = run("tokens", "--model", bert_folder, "the dog is sad", "--template", "the [X] was [MASK]", "--json").stdout
    expected = cse.load(str(bert_folder)).top_tokens("the dog is sad", template=Template("the [X] was [MASK]"))
    assert [(row["token"], pytest.approx(row["probability"])) for row in json.loads(asked)] == expected
    refused(run("tokens", "--model", bert_folder, "a", "--template", "[MASK]"), 3, "exactly one [X]")
    refused(run("tokens", "--model", bert_folder, "   "), 3, "empty")


def test_tokens_of_a_file_are_those_of_its_sentences_before_and_after(bert_folder, tmp_path):
    file = tmp_path / "asked.txt"
    file.write_text("the dog is sad\n\na big cat\n")
    encoder = cse.load(str(bert_folder))
    lines = [line.split("\t") for line in run("tokens", "--model", bert_folder, "--file", file).stdout.splitlines()]
    asked = json.loads(run("tokens", "--model", bert_folder, "--file", file, "--json").stdout)
    for (sentence, before, after), row in zip(lines, asked, strict=True):
        assert before.split() == row["before"] == [token for token, _ in encoder.top_tokens(sentence, 5, False)]
        assert after.split() == row["after"] == [token for token, _ in encoder.top_tokens(sentence, 5)]
    assert [(row["row"], row["sentence"]) for row in asked] == [(1, "the dog is sad"), (3, "a big cat")]
    refused(run("tokens", "--model", bert_folder, "--file", file, "the dog"), 3, "give either a sentence or --file")
    refused(run("tokens", "--model", bert_folder, "a", "-k", 9999), 3, "k is 9999")


def test_an_index_becomes_a_table_with_its_map(tmp_path):
    build(tmp_path / "index", "Flat", 30)
    done = ran("export", tmp_path / "index", "--to", "parquet", "--output", tmp_path / "out", "--json")
    assert json.loads(done.stdout) == {
        "model": str(tmp_path / "index"), "form": "parquet", "output": str(tmp_path / "out"),
        "files": ["README.md", "cse_export.json", "index.parquet"],
    }  # fmt: skip
    table = pd.read_parquet(tmp_path / "out" / "index.parquet")
    assert table[["x", "y"]].to_numpy().min() >= 0
    assert table[["x", "y"]].to_numpy().max() <= 1
    assert table["x"].nunique() == 30
