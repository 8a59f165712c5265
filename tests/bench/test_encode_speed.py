"""The figures of `tests.bench encode`: they fit together, and a peer that gives the same vectors or is refused."""

import json
from pathlib import Path

import pytest
from command_line import refused, run
from conftest import SENTENCES

import cse
from tests.bench import encode as encode_speed
from tests.bench.encode import measure_encoding
from tests.bench.flops import encoding_flops


def test_figures_are_of_the_tokens_with_specials_and_of_the_flops_by_hand(
    bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_speed, "matrix_rate", lambda device, dtype, clock: 1e9)
    encoder = cse.load(str(bert_folder), "prompt", backend="torch")
    speed = measure_encoding(encoder, SENTENCES, rounds=2)
    ids = encoder.tokenizer([f'This sentence : "{text}" means [MASK].' for text in SENTENCES])["input_ids"]
    assert speed.tokens == sum(map(len, ids))
    (work,) = speed.works.values()
    seconds = len(SENTENCES) / work["rate"]
    assert work["tokens"] == pytest.approx(speed.tokens / seconds)
    assert work["share"] == pytest.approx(encoding_flops(encoder.model, map(len, ids)) / seconds / 1e9)
    assert work["slowest"] <= work["rate"] <= work["fastest"]


def test_sentence_transformers_and_bf16_take_their_turn(bert_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES * 2))
    options = ("--input", tmp_path / "text.txt", "--sentences", 9, "--rounds", 1)
    for pooling in ("mean", "cls"):
        words = ("--model", bert_folder, "--pooling", pooling, "--against", "sentence-transformers", *options)
        done = run("bench", "encode", *words, "--precision", "bf16", "--cpu-time", "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["sentences"] == 9
        assert found["works"].keys() == {"cse", "cse, torch", "cse, bf16", "sentence-transformers"}
        assert found["times_faster"].keys() == {"cse, torch", "cse, bf16", "sentence-transformers"}
        assert found["machine"]["cores"] >= 1
    refused(run("bench", "encode", "--model", bert_folder, "--pooling", "first-last", *words[4:]), 3, "no such method")
    refused(run("bench", "encode", "--against", "me"), 2, "unknown against 'me'")
    refused(run("bench", "encode", "--precision", "fp8"), 2, "unknown precision")
