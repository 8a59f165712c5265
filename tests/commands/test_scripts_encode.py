"""Encoding from the command line: text of any length on a line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import refused, run
from typer.testing import CliRunner, Result

import cse
from cse.commands.encode import app
from cse.encoder.openvino_encoder import OpenVinoEncoder


def from_stdin(content: bytes, *words: object) -> Result:
    return CliRunner().invoke(app, ["--input", "-", *map(str, words)], input=content)


def test_standard_input_is_encoded_as_a_file_of_the_same_lines(bert_folder: Path, tmp_path: Path) -> None:
    content = "\ufeffthe dog\r\n\n  a cat \nthe sun".encode()
    (tmp_path / "a.txt").write_bytes(content)
    done = run("encode", "--model", bert_folder, "--input", tmp_path / "a.txt", "--output", tmp_path / "file.npy")
    assert done.exit_code == 0, done.output
    done = from_stdin(content, "--model", bert_folder, "--output", tmp_path / "stdin.npy")
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(np.load(tmp_path / "stdin.npy"), np.load(tmp_path / "file.npy"))
    assert len(np.load(tmp_path / "stdin.npy")) == 3
    assert np.load(tmp_path / "stdin.rows.npy").tolist() == [1, 3, 4]
    assert "standard input: 3 lines\n" in done.stderr
    content = "id;text\n1;caf\u00e9 noir\n2;the sun\n".encode("cp1252")
    done = from_stdin(content, "--model", bert_folder, "--column", "text", "--output", tmp_path / "table.npy")
    assert done.exit_code == 0, done.output
    expected = cse.load(str(bert_folder)).encode(["caf\u00e9 noir", "the sun"])
    np.testing.assert_array_equal(np.load(tmp_path / "table.npy"), expected)


MESSY = "id;text;vector;id\n1; le caf\u00e9 noir ;x;9\n;;;\n3;the sun;y;8\n\n4;;;\n5;a dog;z;7\n".encode("cp1252")


def test_vectors_come_with_the_numbers_of_their_rows_or_with_all_columns(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(MESSY)
    expected = cse.load(str(bert_folder)).encode(["le caf\u00e9 noir", "the sun", "a dog"])
    command = ("encode", "--model", bert_folder, "--input", tmp_path / "a.csv", "--output")
    done = run(*command, tmp_path / "v.npy")
    assert done.exit_code == 0, done.output
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
    done = run(*command, tmp_path / "parts", "--shards", 2)
    assert done.exit_code == 0, done.output
    parts = [np.load(part) for part in sorted((tmp_path / "parts").glob("*.npy"))]
    np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_an_array_and_its_rows_are_written_both_or_not_at_all(
    bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    pq.write_table(pa.table({"text": ["the dog"]}), tmp_path / "a.parquet")
    own = tmp_path / "a.parquet"
    refused(run("encode", "--model", bert_folder, "--input", own, "--output", own), 3, "is the file that is read")


@pytest.mark.parametrize(
    ("content", "options", "code", "message"),
    [
        (b"", (), 3, "standard input: no text in it"),
        (b" \n\n", (), 3, "standard input: no text in it"),
        (b"two words\n\x00\n", (), 3, "standard input: line 2 holds a NUL byte"),
        (b"ok\n", ("--shards", 2), 2, "leave out --shards"),
        (b"ok\n", ("--column", "text"), 3, "standard input: a text file has no column 'text'; leave out --column"),
    ],
)
def test_standard_input_that_cannot_be_encoded_is_refused(
    bert_folder: Path, tmp_path: Path, content: bytes, options: tuple, code: int, message: str
) -> None:
    done = from_stdin(content, "--model", bert_folder, "--output", tmp_path / "v.npy", *options)
    refused(done, code, message)
    assert not any(tmp_path.iterdir())


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_encoded(
    bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("the dog\n")
    monkeypatch.setattr(OpenVinoEncoder, "encode_ids", lambda *_, **__: pytest.fail("encoded"))
    output = tmp_path / "a.txt" / "v.npy"
    done = run("encode", "--model", bert_folder, "--input", tmp_path / "a.txt", "--output", output)
    refused(done, 3, f"{output}: cannot be written", "give another file")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
