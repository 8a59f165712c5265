"""Files as people have them: damaged, packed, endless, with odd names; each is read, or named with its line."""

import gzip
import json
import os
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cse.corpus import Corpus
from cse.corpus import lines as text_files
from cse.corpus.lines import MAX_LINE_BYTES, text_lines
from cse.corpus.supervised import scored_pairs, training_examples
from cse.files.writing import file_digest


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices, 2026-11-23")
@pytest.mark.parametrize("suffix", [".txt", ".parquet", ".txt.gz"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path, suffix):
    pipe, device = tmp_path / f"pipe{suffix}", tmp_path / f"device{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        for read in (Corpus.read, scored_pairs, file_digest):
            with pytest.raises(ValueError, match=rf"{path.name}: is a device or a pipe; give a file"):
                read(path)


def test_a_small_file_of_one_endless_line_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(b"d" * 10**6) * 200)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"bomb.txt.*: line 1 is longer than 10,000,000 bytes; break it"):
        list(text_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size < 10**6
    assert peak < 5 * MAX_LINE_BYTES


def test_a_line_of_five_megabytes_is_read_and_the_limit_is_exact(tmp_path, monkeypatch):
    (tmp_path / "long.txt").write_bytes(b"dog " * 1_250_000 + b"\nshort")
    assert [len(line) for line in text_lines(tmp_path / "long.txt")] == [5_000_000, 5]
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 4)
    (tmp_path / "short.txt").write_bytes(b"abc\nabcd")  # the newline counts
    assert list(text_lines(tmp_path / "short.txt")) == ["abc", "abcd"]
    (tmp_path / "short.txt").write_bytes(b"abc\nabcde")
    with pytest.raises(ValueError, match="line 2 is longer than 4 bytes"):
        list(text_lines(tmp_path / "short.txt"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", r"line 3: cannot read it as JSON \(Expecting"),
        ("[" * 100_000, "line 3: cannot read it as JSON .*recursion"),
        (r'{"text": "a \ud800 b"}', "line 3: cannot read it as JSON .*surrogates not allowed"),
        ('["the dog"]', "line 3 holds a list, not an object"),
    ],
    ids=["cut", "deep", "surrogate", "list"],
)
def test_a_line_that_is_no_object_is_named(tmp_path, line, reason):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n\n' + line + "\n")
    with pytest.raises(ValueError, match=reason) as caught:
        Corpus.read(tmp_path / "a.jsonl")
    assert len(str(caught.value)) < 400


def test_values_of_json_lines_are_text_as_they_stand_and_a_missing_one_is_empty(tmp_path):
    rows = ['{"sent0": " a ", "sent1": 1.5}', "", '{"sent1": true, "sent0": "\\ud83d\\ude00"}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    examples = training_examples(tmp_path / "a.jsonl", supervised=True)
    assert examples[:] == {"0": ["a", "\N{GRINNING FACE}"], "1": ["1.5", "True"]}
    (tmp_path / "a.jsonl").write_text('{"text": "a", "id": 1}\n{"id": 2}\n{"text": null}\n{"text": "b"}\n')
    assert Corpus.read(tmp_path / "a.jsonl", "text").texts == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [("a.jsonl", {"a": "b"}, "dict"), ("a.parquet", ["a", "b"], "list"), ("a.parquet", b"a", "bytes")],
)
def test_a_value_that_is_no_text_is_named_with_its_row_and_type(tmp_path, name, value, kind):
    if name == "a.parquet":
        pq.write_table(pa.table({"text": [None, value]}), tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in (None, value)))
    with pytest.raises(ValueError, match=rf"{name}: row 2 has a {kind} as 'text', not text; give a column of texts"):
        len(Corpus.read(tmp_path / name))


def test_missing_files_folders_and_damaged_archives_are_named(tmp_path):
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"a\n" * 9000)[:30])
    whole = gzip.compress(bytes(range(10, 127)) * 900)
    (tmp_path / "hurt.txt.gz").write_bytes(whole[:40] + b"\xff" * 8 + whole[48:])
    for name, message in {
        "none.txt": "no such file",
        "": "is a folder",
        "cut.txt.gz": "damaged compressed",
        "hurt.txt.gz": "damaged compressed",
    }.items():
        with pytest.raises(ValueError, match=message):
            list(text_lines(tmp_path / name))
    (tmp_path / "notes.md").write_text("Any other suffix is text.\n")
    assert Corpus.read(tmp_path / "notes.md").texts == ["Any other suffix is text."]
    with pytest.raises(ValueError, match="nobody/nothing: no such file, and the data hub cannot be reached"):
        len(Corpus.read("nobody/nothing"))


@pytest.mark.parametrize("name", ["empty.json", "empty.parquet", "empty.csv", "empty.txt"])
def test_an_empty_file_holds_no_sentence(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert Corpus.read(tmp_path / name).texts == []
