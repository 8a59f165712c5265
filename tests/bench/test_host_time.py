"""The figures of `tests.bench host`: every work beside the tokenizer's batch call, which is the least of them."""

import json
from pathlib import Path

from command_line import run
from conftest import SENTENCES


def test_encoding_and_steps_stand_beside_the_tokenizer(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(f"{one} {two}" for one in SENTENCES for two in SENTENCES))
    words = ("--model", bert_folder, "--input", tmp_path / "text.txt", "--batch-size", 16, "--rounds", 2, "--json")
    done = run("bench", "host", *words, "--method", "promptbert", "--method", "consert")
    assert done.exit_code == 0, done.output
    works = json.loads(done.stdout)["works"]
    assert list(works) == ["tokenizer", "encode", "tokens of promptbert", "promptbert", "tokens of consert", "consert"]
    assert works["tokenizer"]["times"] == [1, 1, 1]
    assert all(work["microseconds"] > 0 for work in works.values())
