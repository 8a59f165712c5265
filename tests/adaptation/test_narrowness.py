"""Texts of a narrow domain take fewer directions than general sentences, and `train` says so."""

from pathlib import Path

import numpy as np
import pytest
from command_line import run
from conftest import WORDS

import cse
from cse.adaptation import facts
from cse.adaptation.facts import general_texts, is_narrow
from cse.vectors import unit_rows

NARROW = [f"the {a} {b} is {c}" for a in WORDS[:9] for b in WORDS[20:29] for c in WORDS[40:45]]


def test_the_measure_is_the_ratio_of_effective_ranks(bert_folder: Path) -> None:
    encoder = cse.load(str(bert_folder))
    short = cse.load(str(bert_folder))
    short.max_seq_length = facts.NARROWNESS_TOKENS + 2  # [CLS] and [SEP]
    general = list(general_texts())
    ranks = []
    for texts in (NARROW[:250], general[:250]):
        unit = unit_rows(short.encode(texts).astype(np.float64))
        values = np.linalg.eigvalsh(np.cov(unit.T))
        shares = values[values > 0] / values.sum()
        ranks.append(np.exp(-sum(share * np.log(share) for share in shares)))
        assert facts._rank(encoder, texts) == pytest.approx(ranks[-1], rel=1e-3)
    assert is_narrow(encoder, NARROW) == bool(ranks[0] < facts.NARROW_RATIO * ranks[1]) is True
    assert not is_narrow(None, general)  # what all texts are compared with: nothing is encoded
    assert not is_narrow(encoder, NARROW[:249] * 9)  # too few to say


@pytest.mark.parametrize(
    ("options", "warned"),
    [((), True), (("--temperature", "0.2"), False), (("--learning-rate", "1e-5"), False), (("--dry-run",), False)],
)
def test_train_warns_of_its_preset_on_narrow_texts_and_not_of_own_settings(
    bert_folder: Path, tmp_path: Path, options: tuple[str, ...], warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "is_narrow", lambda encoder, texts: set(texts) == set(NARROW))
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(NARROW))
    words = ("--data", file, "--backbone", bert_folder, "--output", tmp_path / "out", "--precision", "no")
    done = run("train", "dcpcse", *words, "--max-steps", 1, "--batch-size", 4, "--max-length", 8, *options)
    assert done.exit_code == 0, done.output
    assert ("narrow domain" in done.stderr) == ("scripts.adapt" in done.stderr) == warned
    assert "narrow" not in done.stdout
