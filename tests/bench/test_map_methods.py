"""The benchmark of maps scores every method on the same vectors."""

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.bench.__main__ import app
from tests.bench.maps import DEFAULTS, OURS, RANDOM


def test_the_command_scores_every_method(tmp_path: Path) -> None:
    table = tmp_path / "texts.tsv"
    words = ["cat", "dog", "sun", "rain"]
    rows = [f"{word}\ta {word} and {number}" for word in words for number in range(5)]
    table.write_text("label\ttext\n" + "\n".join(rows) + "\n")
    command = ["maps", str(table), "--model", "simcse", "--column", "text", "--labels", "label", "--json"]
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert (told["texts"], list(told["methods"])) == (20, [OURS, DEFAULTS, RANDOM])
    for figures in told["methods"].values():
        assert 0.5 < figures["trustworthiness"] <= 1
        assert figures["same_label"] > 0.5
