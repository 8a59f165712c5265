"""Figures hold the numbers they were given: artists are read back, files are PNGs that appear whole or not at all."""

import struct
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cse.evaluation import figures

SEEDS = {"MR": {"a": [60.0, 62.0, 64.0], "b": [70.0, 70.0, 70.0]}, "CR": {"b": [55.0, 58.0, 58.0]}}
POINTS = {"a": {"grades": [0.0, 0.5, 1.0, 4.0, 5.0], "cosines": [0.1, 0.3, 0.5, 0.8, 1.0]}}
CURVES = {"a": {"removed": [0, 10, 20], "average": [70.0, 65.0, 50.0], "kept": [100.0, 80.0, 60.0]}}
SWEEP = {"dcpcse": {8: [70.0, 74.0], 1: [60.0]}, "other": {4: [66.0, 66.0]}}
TEMPLATES = {"[X] [MASK] .": 39.34, 'costs $5 : "[X]" $6 [MASK] .': 73.44, "[X] is [MASK] .": 47.26}
TOKENS = {
    "x": [0.0, 1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0, 7.0], "tokens": ["a", "b", "c", "d"],
    "frequency": ["rare", "", "frequent", "frequent"], "piece": ["subword"] * 4, "explained": [12.34, 5.0],
}  # fmt: skip
DRAWN = {
    "violins": (SEEDS, {}),
    "similarity_by_grade": (POINTS, {}),
    "removal_curves": (CURVES, {}),
    "sweep": (SWEEP, {"varied": "prefix length"}),
    "template_bars": (TEMPLATES, {}),
    "token_picture": (TOKENS, {}),
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch):
    """Call a figure function and get the Figure it would have saved."""

    def draw(name: str) -> Figure:
        seen: list[Figure] = []
        monkeypatch.setattr(figures, "_save", lambda figure, path: seen.append(figure))
        values, options = DRAWN[name]
        getattr(figures, name)(values, Path("unused.png"), "costs $1 or $2", **options)
        (figure,) = seen
        assert figure.get_suptitle() == "costs $1 or $2"
        return figure

    return draw


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_written_whole_at_150_dots_per_inch(name: str, tmp_path: Path) -> None:
    values, options = DRAWN[name]
    path = getattr(figures, name)(values, tmp_path / "new" / "figure.png", "$x$ model, seed 42", **options)
    assert path == tmp_path / "new" / "figure.png"
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content[-8:-4] == b"IEND"
    width, height = struct.unpack(">II", content[16:24])
    assert width >= 450
    assert height >= 150 * 1.8
    assert content[content.index(b"pHYs") + 4 :][:4] == struct.pack(">I", round(150 / 0.0254))
    assert [file.name for file in path.parent.iterdir()] == ["figure.png"]


def test_the_same_numbers_give_the_same_file(tmp_path: Path) -> None:
    first, second = (figures.removal_curves(CURVES, tmp_path / name, "title").read_bytes() for name in ("a", "b"))
    assert first == second
    assert (
        figures.removal_curves({"a": CURVES["a"] | {"average": [1, 2, 3]}}, tmp_path / "a", "title") == tmp_path / "a"
    )
    assert (tmp_path / "a").read_bytes() != second  # replaced


def test_violins_have_a_panel_a_set_and_every_value_at_its_model(drawn) -> None:
    first, second = drawn("violins").axes
    assert [axes.get_title() for axes in (first, second)] == ["MR", "CR"]
    assert [label.get_text() for label in second.get_xticklabels()] == ["a", "b"]
    dots = [tuple(point) for part in first.collections if len(part.get_offsets()) > 1 for point in part.get_offsets()]
    assert dots == [(0, 60), (0, 62), (0, 64), (1, 70), (1, 70), (1, 70)]
    (mean,) = (part for part in second.collections if type(part).__name__ == "LineCollection")
    assert np.allclose(mean.get_segments()[0], [[0.7, 57.0], [1.3, 57.0]])
    violin = second.collections[0]
    assert to_hex(violin.get_facecolor()[0]) == figures.COLOURS[1]  # a model has its colour in every panel


def test_similarity_has_every_pair_and_the_quartiles_of_each_bucket_with_pairs(drawn) -> None:
    (axes,) = drawn("similarity_by_grade").axes
    expected = np.column_stack([POINTS["a"]["grades"], POINTS["a"]["cosines"]])
    assert np.array_equal(axes.collections[0].get_offsets(), expected)
    boxes = [line.get_xydata() for line in axes.lines if len(line.get_xdata()) == 5]
    assert [(box[:, 0].min() + box[:, 0].max()) / 2 for box in boxes] == [0.5, 1.5, 4.5]
    # grades 0 and 0.5 with cosines 0.1 and 0.3; 4 and 5 with 0.8 and 1
    assert [(box[:, 1].min(), box[:, 1].max()) for box in boxes] == [
        pytest.approx((0.15, 0.25)), pytest.approx((0.5, 0.5)), pytest.approx((0.85, 0.95)),
    ]  # fmt: skip


def test_removal_curves_are_the_averages_over_the_tokens_removed(drawn) -> None:
    (axes,) = drawn("removal_curves").axes
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0, 70], [10, 65], [20, 50]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a"]


def test_a_sweep_is_the_mean_of_the_seeds_with_a_band_of_their_deviation(drawn) -> None:
    (axes,) = drawn("sweep").axes
    first, second = axes.lines
    assert first.get_xydata().tolist() == [[1, 60], [8, 72]]
    assert second.get_xydata().tolist() == [[4, 66]]
    band, dots = axes.collections[:2]
    edges = {tuple(point) for point in band.get_paths()[0].vertices.round(6).tolist()}
    deviation = 8**0.5  # of 70 and 74, n - 1
    assert edges == {(1, 60), (8, round(72 - deviation, 6)), (8, round(72 + deviation, 6))}
    assert dots.get_offsets().tolist() == [[1, 60], [8, 70], [8, 74]]
    assert axes.get_xlabel() == "prefix length"
    assert axes.get_xticks().tolist() == [1, 4, 8]


def test_template_bars_are_ranked_with_the_best_on_top_and_their_text_unchanged(drawn) -> None:
    figure = drawn("template_bars")
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [39.34, 47.26, 73.44]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [figures.FAINT, figures.FAINT, figures.COLOURS[0]]
    assert [label.get_text() for label in axes.get_yticklabels()] == sorted(TEMPLATES, key=TEMPLATES.__getitem__)
    assert not any(label.get_parse_math() for label in axes.get_yticklabels())
    assert [text.get_text() for text in axes.texts] == ["39.34", "47.26", "73.44"]


def test_the_token_picture_has_a_panel_a_kind_and_each_token_in_its_group(drawn) -> None:
    frequency, piece = drawn("token_picture").axes
    groups = {line.get_label(): line.get_xydata().tolist() for line in frequency.lines}
    assert groups == {"no group": [[1, 5]], "frequent": [[2, 6], [3, 7]], "rare": [[0, 4]]}
    assert [line.get_label() for line in piece.lines] == ["subword"]
    assert frequency.get_xlabel() == "component 1 (12.3 % of variance)"
    assert frequency.get_title() == "frequency"


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_to_draw_is_refused(name: str, tmp_path: Path) -> None:
    _, options = DRAWN[name]
    with pytest.raises(ValueError, match="nothing to draw for 'title'"):
        getattr(figures, name)({}, tmp_path / "x.png", "title", **options)


def test_an_entry_without_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.violins({"MR": {"a": [1.0], "b": []}}, tmp_path / "x.png", "title")
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.sweep({"a": {1: [1.0]}, "b": {}}, tmp_path / "x.png", "title", varied="P")


def test_a_long_title_is_wrapped_into_the_figure() -> None:
    figure, _ = figures._panels({"a": [1.0]}, "word " * 40, (3.0, 2.0))
    lines = figure.get_suptitle().split("\n")
    assert " ".join(lines) == " ".join(["word"] * 40)
    assert max(map(len, lines)) <= 12 * 3.4
