"""A corpus encoded in parts: equal to encoding it at once, shared by processes, and the same after a kill."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import ran, refused, run
from killed_write import leave_killed_write

from cse.encoder import shards
from cse.encoder.shards import (
    ShardPlan,
    begin,
    count_texts,
    encode_in_parts,
    finish,
    read_blocks,
    read_plan,
    with_texts,
    write_parts,
)
from cse.errors import ArtefactError

TEXTS = [f"sentence {number}" for number in range(23)]
COUNT, SHA256 = count_texts(TEXTS)
PLAN = ShardPlan("promptbert", None, None, "f" * 12, 2, False, COUNT, SHA256, shards=4)
Encode = Callable[[list[str]], np.ndarray]


def encode(block: list[str]) -> np.ndarray:
    """A vector that differs for every sentence."""
    return np.array([[int(text.split()[1]), len(text)] for text in block], np.float32)


EXPECTED = encode(TEXTS)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BLOCK", 3)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run_parts(folder: Path, encode: Encode = encode, resume: bool = False, plan: ShardPlan = PLAN) -> int:
    """How many sentences were reported."""
    reported: list[int] = []
    encode_in_parts(folder, plan, TEXTS, encode, resume, reported.append)
    return sum(reported)


def test_the_parts_are_the_rows_in_order_and_the_manifest_says_what_they_are(tmp_path):
    assert run_parts(tmp_path / "v") == len(TEXTS)
    assert sorted(contents(tmp_path / "v")) == ["manifest.json", *(f"part-0000{n}-of-00004.npy" for n in range(4))]
    parts = [np.load(tmp_path / "v" / f"part-0000{n}-of-00004.npy") for n in range(4)]
    assert [len(part) for part in parts] == [5, 6, 6, 6]
    np.testing.assert_array_equal(np.concatenate(parts), EXPECTED)
    assert parts[0].dtype == np.float32
    manifest = json.loads((tmp_path / "v" / "manifest.json").read_text())
    assert manifest["sha256"] == hashlib.sha256("".join(f"{text}\n" for text in TEXTS).encode()).hexdigest()
    for name, record in manifest["parts"].items():
        assert record["sha256"] == hashlib.sha256((tmp_path / "v" / name).read_bytes()).hexdigest()
    np.testing.assert_array_equal(np.concatenate(list(read_blocks(tmp_path / "v"))), EXPECTED)


@pytest.mark.parametrize("calls", [0, 3, 7])
def test_a_run_stopped_at_any_block_resumes_to_the_same_bytes_and_repeats_no_part(tmp_path, calls):
    run_parts(tmp_path / "whole")
    seen: list[str] = []

    def stopped(block: list[str]) -> np.ndarray:
        seen.extend(block)
        if len(seen) > 3 * calls:
            raise KeyboardInterrupt
        return encode(block)

    with pytest.raises(KeyboardInterrupt):
        run_parts(tmp_path / "v", stopped)
    leave_killed_write(tmp_path / "v" / "part-00003-of-00004.npy")
    again: list[str] = []
    kept = sum(len(np.load(path)) for path in (tmp_path / "v").glob("part-*.npy"))
    assert run_parts(tmp_path / "v", lambda block: again.extend(block) or encode(block), resume=True) == len(TEXTS)
    assert again == TEXTS[kept:]
    assert contents(tmp_path / "v") == contents(tmp_path / "whole")


def test_two_processes_that_share_the_parts_write_what_one_does(tmp_path):
    run_parts(tmp_path / "whole")
    begin(tmp_path / "v", PLAN, resume=False)
    for rank in (1, 0):
        write_parts(tmp_path / "v", PLAN, TEXTS, encode, range(rank, PLAN.shards, 2), lambda rows: None)
    finish(tmp_path / "v", PLAN)
    assert contents(tmp_path / "v") == contents(tmp_path / "whole")


def stop(block: list[str]) -> np.ndarray:
    raise KeyboardInterrupt


def test_a_damaged_part_is_written_again_by_a_resumed_run_and_refused_in_a_finished_one(tmp_path):
    run_parts(tmp_path / "whole")
    begin(tmp_path / "v", PLAN, resume=False)
    write_parts(tmp_path / "v", PLAN, TEXTS, encode, [0], lambda rows: None)
    for folder in ("whole", "v"):
        damaged = tmp_path / folder / PLAN.name(0)
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(ArtefactError, match=r"part-00000-of-00004.npy: damaged .*encode it again"):
        list(read_blocks(tmp_path / "whole"))
    run_parts(tmp_path / "v", resume=True)
    np.testing.assert_array_equal(np.concatenate(list(read_blocks(tmp_path / "v"))), EXPECTED)


def test_what_does_not_fit_the_run_is_refused_and_left_alone(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_parts(tmp_path / "v", stop)
    before = contents(tmp_path / "v")
    with pytest.raises(ValueError, match="holds an unfinished run; continue it with `resume`"):
        run_parts(tmp_path / "v")
    for changes, reason in (({"sha256": "other"}, "other sentences"), ({"batch_size": 8}, "batch_size None, not 8")):
        with pytest.raises(ValueError, match=f"begun with {reason}"):
            run_parts(tmp_path / "v", resume=True, plan=replace(PLAN, **changes))
    with pytest.raises(ArtefactError, match="unfinished run; continue it"):
        read_plan(tmp_path / "v")
    assert contents(tmp_path / "v") == before
    run_parts(tmp_path / "v", resume=True)
    with pytest.raises(ValueError, match="is finished; give another `output`"):
        run_parts(tmp_path / "v", resume=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something else"):
        run_parts(tmp_path / "mine", resume=True)
    assert contents(tmp_path / "mine") == {"notes.txt": b"mine"}
    with pytest.raises(ValueError, match="the text changed while it was read: 1 sentences are missing"):
        encode_in_parts(tmp_path / "new", PLAN, TEXTS[:-1], encode, False, lambda rows: None)


@pytest.mark.parametrize("texts", [TEXTS[:-1], [*TEXTS, "one more"], ["another", *TEXTS[1:]]])
def test_vectors_are_not_given_with_other_sentences(tmp_path, texts):
    run_parts(tmp_path / "v")
    pairs = list(with_texts(tmp_path / "v", TEXTS))
    assert [text for block, _ in pairs for text in block] == TEXTS
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in pairs]), EXPECTED)
    with pytest.raises(ValueError, match="encoded from other sentences"):
        list(with_texts(tmp_path / "v", texts))


def test_the_command_encodes_in_parts_what_it_encodes_at_once(bert_folder, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"a dog and {number} cats\n" for number in range(10)))
    options = ("encode", "--model", bert_folder, "--input", tmp_path / "text.txt", "--normalize")
    assert run(*options, "--output", tmp_path / "v.npy").exit_code == 0
    ran(*options, "--output", tmp_path / "v", "--shards", 3)
    np.testing.assert_allclose(
        np.concatenate(list(read_blocks(tmp_path / "v"))), np.load(tmp_path / "v.npy"), atol=1e-6
    )
    refused(run(*options, "--output", tmp_path / "w", "--shards", 11), 3, "--shards is 11", "10 sentences")


def test_parquet_parts_hold_the_columns_and_are_not_resumed_with_others(bert_folder, tmp_path, monkeypatch):
    def killed(*plan: object) -> None:
        raise ValueError("killed")

    table = tmp_path / "t.csv"
    words = ["encode", "--model", bert_folder, "--input", table, "--shards", 3, "--parquet", "--output", tmp_path / "v"]
    rows = "".join(f"{number},a dog and {number} cats\n" for number in range(10))
    table.write_text(f"id,text\n{rows}")
    with monkeypatch.context() as patch:
        patch.setattr(shards, "finish", killed)
        assert run(*words).exit_code == 3
    for other in (f"id,text\n{rows.replace('9,', 'x,')}", f"number,text\n{rows}"):
        table.write_text(other)
        refused(run(*words, "--resume"), 3, "was begun with other columns")
    table.write_text(f"id,text\n{rows}")
    ran(*words, "--resume")
    frame = pd.read_parquet(tmp_path / "v")  # the folder, as engines read one
    assert frame[["row", "id"]].values.tolist() == [[number + 1, str(number)] for number in range(10)]
    np.testing.assert_array_equal(np.stack(frame["vector"]), np.concatenate(list(read_blocks(tmp_path / "v"))))
