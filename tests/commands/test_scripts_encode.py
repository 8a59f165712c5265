"""Encoding from the command line: text of any length on a line."""

from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run
from typer.testing import CliRunner, Result

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


@pytest.mark.parametrize(
    ("content", "options", "code", "message"),
    [
        (b"", (), 3, "standard input: no sentence in it"),
        (b" \n\n", (), 3, "standard input: no sentence in it"),
        (b"ok\n\xff\n", (), 3, "standard input: line 2 is not UTF-8"),
        (b"ok\n\x00\n", (), 3, "standard input: line 2 holds a NUL byte"),
        (b"ok\n", ("--shards", 2), 2, "leave out --shards"),
        (b"ok\n", ("--column", "text"), 2, "leave out --column"),
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
