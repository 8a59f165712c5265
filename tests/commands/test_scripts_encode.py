"""Encoding from the command line: text of any length on a line."""

from pathlib import Path

import numpy as np
from test_scripts import run


def test_one_megabyte_on_one_line_is_encoded(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("dog " * 250_000 + "\nthe cat\n")
    done = run("encode", "--model", bert_folder, "--input", tmp_path / "long.txt", "--output", tmp_path / "v.npy")
    assert done.exit_code == 0, done.output
    assert np.isfinite(np.load(tmp_path / "v.npy")).all()
