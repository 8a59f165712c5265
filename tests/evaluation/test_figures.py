"""Figures are pictures, and one without anything in it is refused."""

from pathlib import Path

import pytest

from cse.evaluation import figures

SEEDS = {"MR": {"a": [60.0, 62.0, 64.0], "b": [70.0, 70.0, 70.0]}, "CR": {"b": [55.0, 58.0, 58.0]}}
POINTS = {"a": {"grades": [0.0, 0.5, 1.0, 4.0, 5.0], "cosines": [0.1, 0.3, 0.5, 0.8, 1.0]}}
CURVES = {"a": {"removed": [0, 10, 20], "average": [70.0, 65.0, 50.0], "kept": [100.0, 80.0, 60.0]}}
TOKENS = {
    "x": [0.0, 1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0, 7.0], "tokens": ["a", "b", "c", "d"],
    "frequency": ["rare", "", "frequent", "frequent"], "piece": ["subword"] * 4, "explained": [12.34, 5.0],
}  # fmt: skip
DRAWN = {"violins": SEEDS, "similarity_by_grade": POINTS, "removal_curves": CURVES, "token_picture": TOKENS}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_a_picture_and_nothing_to_draw_is_refused(name: str, tmp_path: Path) -> None:
    path = getattr(figures, name)(DRAWN[name], tmp_path / "new" / "figure.png", "$x$ model, seed 42")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(ValueError, match="nothing to draw for 'title'"):
        getattr(figures, name)({}, tmp_path / "x.png", "title")
