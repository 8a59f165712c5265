"""Figures and tables for papers: they hold the answer's numbers, no text is cut off, and no text is code."""

import re
import struct
import xml.etree.ElementTree as ElementTree
from io import BytesIO

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from cse.app.drawing.palette import MODELS, OWN
from cse.app.export import own_figures
from cse.app.export.figures import FIGURES, draw, figure_file
from cse.app.export.look import MOST_SIZE, SIZE, WIDTHS, Look, line, look_of
from cse.app.export.sheets import sheet
from cse.app.export.taken import Taken, caption
from cse.app.export.tidy import TABLES
from cse.app.export.typeset import as_latex, as_markdown, latex
from cse.app.state.model_map import same_label
from cse.app.state.records import record_of
from cse.evaluation.figures import paper_style

HOSTILE = 'costs $x^2$ & 5 % of <b>"#1"</b> ]]> \\input{x} ~_^{} \x0b\x00 a | b `c` [d] é'
SHOWN = line(HOSTILE)
MODELS_OF = ("simcse", "promptbert", "dcpcse", HOSTILE)
BAD = {"error": "damaged"}


def by_model(*values):
    return {**dict(zip(MODELS_OF, values, strict=False)), "bad": BAD}


def scored(value, before=None, trained=None, untrained=None, deviation=0.5):
    figure = {"value": value, "deviation": deviation, "runs": 3}
    second = {"value": value - 10, "deviation": None, "runs": 1}
    return {
        "figures": [figure, second], "before_training": [before and {"value": before, "deviation": None, "runs": 1}],
        "seeds": [1], "untrained": untrained, "shipped_seed": 1, "trained_parameters": trained,
    }  # fmt: skip


WORDS = [[["the", 0.25], [HOSTILE, -0.5]], [["x", 0.125]]]
MATRIX = [[1, 0.5, -0.25], [0.5, 1, 0.125], [-0.25, 0.125, 1]]
TRIAL = {"template": HOSTILE, "score": 71.5, "words": []}
STAGES = {"before": [[HOSTILE, 0.5], ["b", 0.25]], "alone": [["c", 0.125]], "after": []}
MAP = {
    "xy": [[0, 0], [1, 0.5], [0.25, 1]], "groups": {"of": [0, 1, 0]}, "trustworthiness": 0.9, "continuity": 0.8,
    "same_topic": None,
}  # fmt: skip
PREFIX = {
    "cosine": 0.5, "attention": {"read": [0.1, 0.2], "mean": [0.3, 0.4], "even": 0.05},
    "ablations": [{"layers": [1], "moved": 0.5, "cosine": 0.7}, {"layers": [2], "moved": 0.125, "cosine": 0.7},
                  {"layers": [1, 2], "moved": 0.25, "cosine": 0.75}],
}  # fmt: skip
COLUMNS = [{"unit": unit, "score": "spearman", "lower_is_better": False, "best": ["promptbert"]} for unit in ("a", "b")]
RESULTS = {
    "simcse": scored(70.0, 60.0, 10_000_000), "promptbert": scored(75.0, 40.0, 18_432),
    "bundled-cls": scored(50.0, untrained="cls", trained=0), "bundled-mean": scored(55.0, untrained="mean", trained=0),
}  # fmt: skip
ENTRY = {"row": HOSTILE, "published": 70.0, "task": "sts", "source": "p", "mean": 60.0, "difference": -10.0}
HEADS = {
    "read": None, "tokens": ["prefix 1", HOSTILE, "[SEP]"], "prefix": 1,
    "shares": [[[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]], [[0.2, 0.2, 0.6], [0.4, 0.4, 0.2]]],
}  # fmt: skip
PLACES = [(3.0, 90), (5.0, 96), (7.0, 100)]
NEAR = {
    "nines": 5.0, "advised": 4.5, "texts": 100, "kept": 96, "groups": 1,
    "curve": [{"nines": nines, "kept": kept} for nines, kept in PLACES],
    "page": [[{"row": 3, "number": 4, "kept": True, "cosine": 1.0, "reason": "the first", "text": HOSTILE},
              {"row": 7, "number": 8, "kept": False, "cosine": 0.75, "reason": "near", "text": "b"}]],
}  # fmt: skip
SIDE = {"milliseconds": 2.5, "megabytes": 43.0, "found": None, "labels": {"nmi": 40.5}}
VOTES = {
    "decided": 10,
    "sides": [{"name": "simcse", "votes": 7, "share": 0.75, "low": 0.5, "high": 0.875, **SIDE},
              {"name": HOSTILE, "votes": 3, "share": 0.25, "low": 0.125, "high": 0.5, **SIDE}],
}  # fmt: skip
RUN = {"losses": [[1, 2.5], [2, 1.25]], "scores": [[2, 61.5]], "start": 60.5, "table": []}
ANSWERS = {
    "similarity": ({"s1": HOSTILE, "s2": "b"}, by_model(0.5, 0.25, -0.125, 1.0)),
    "words": ({"s1": HOSTILE, "s2": "x"}, by_model(*[{"cosine": 0.5, "words": WORDS}] * 2)),
    "pairs": (
        {"lines": "a"},
        {"sentences": ["a", HOSTILE, "c"], "models": by_model(*[{"cosines": MATRIX, "percentiles": MATRIX}] * 3)},
    ),
    "search": (
        {"query": HOSTILE, "corpus": "demo", "k": 2},
        by_model(
            *[
                [{"rank": n, "score": 0.5, "text": text} for n, text in enumerate(found, 1)]
                for found in (["one", HOSTILE], [HOSTILE, "two"], ["three", "two"])
            ]
        ),
    ),
    "tokens": ({"sentence": HOSTILE, "k": 2}, by_model(STAGES, STAGES)),
    "template": (
        {"sentence": "s", "template": HOSTILE},
        by_model(
            *[{"own": {**TRIAL, "score": 80.5}, "other": TRIAL, "gain": {"value": -9.0, "low": -10.0, "high": -8.0}}]
            * 2
        ),
    ),
    "map": ({"seed": 3}, {"labels": ["pets", HOSTILE, "pets"], "texts": ["a", "b", "c"], "maps": by_model(*[MAP] * 4)}),
    "changes": (
        {"sentence": HOSTILE},
        {
            "changes": [
                {"name": "negated", "keeps": False, "changed": HOSTILE, "moved": {"simcse": 0.5, HOSTILE: 0.25}}
            ],
            "errors": {},
        },
    ),
    "disagreements": (
        {},
        {"pairs": [{"s1": HOSTILE, "s2": "b", "places": {"simcse": 0.0, "dcpcse": 1.0}}], "errors": {}},
    ),
    "xray": (
        {"s1": HOSTILE, "s2": "b"},
        by_model(
            {"cosine": 0.5},
            {"cosine": 0.5, "prototypes": [{"template": HOSTILE, "positive": True, "cosine": 0.75}]},
            PREFIX,
        ),
    ),
    "attention": ({"sentence": HOSTILE}, by_model(HEADS, {**HEADS, "read": "[MASK]", "prefix": 0})),
    "duplicates": ({"model": "promptbert", "nines": 5.0, "keep": "first"}, NEAR),
    "ballot": ({"corpus": HOSTILE}, VOTES),
    "labels": ({"corpus": "own"}, by_model({"neighbours": 80.5, "nmi": 40.0}, {"neighbours": 70.5, "nmi": 50.0})),
    "times": ({}, by_model(*({"milliseconds": took, "score": 70.5} for took in (5.0, 7.5, 40.0, 9.0)))),
    "training": ({"name": HOSTILE, "method": "simcse", "corpus": "b"}, RUN),
    "results": ({"task": "sts"}, {"task": "sts", "columns": COLUMNS, "models": RESULTS, "protocol": "Seeds 1 & 2."}),
    "ledger": ({}, [ENTRY, {**ENTRY, "published": None}]),
}


def taken(endpoint):
    inputs, answer = ANSWERS[endpoint]
    models = {name: f"0123{place}" for place, name in enumerate((*MODELS_OF, "bad"))}
    return Taken(
        endpoint, inputs, models, answer, seeds={"simcse": 43}, percentiles={"simcse": 97.25},
        histograms={"simcse": [0.0] * 49 + [1.0]},
    )  # fmt: skip


@pytest.fixture
def drawn():
    def of(endpoint, look=None):
        with paper_style(SIZE):
            return draw(taken(endpoint), look or Look())

    return of


def lines_of(axes):
    """The points of the named lines of axes, by name."""
    found = {}
    for each in axes.get_lines():
        found.setdefault(each.get_label(), []).append([tuple(point) for point in each.get_xydata()])
    return found


def values(axes, name):
    """Where the marks of a model are across; one that began elsewhere has a line and a ring before it."""
    return [points[0][0] for points in lines_of(axes)[name]]


def test_every_table_has_a_figure_and_its_own_caption():
    assert FIGURES.keys() == TABLES.keys() == ANSWERS.keys()
    told = {endpoint: caption(taken(endpoint)) for endpoint in ANSWERS}
    assert len(set(told.values())) == len(told)
    assert "SimCSE (seed 43, fingerprint 01230)" in told["similarity"]
    assert "PromptBERT (fingerprint 01231)" in told["similarity"]
    assert "01234" not in told["similarity"]  # of the model that failed
    assert "seed of t-SNE 3" in told["map"]
    assert "Seeds 1 & 2." in told["results"]


def test_marks_and_rings_are_at_the_values_of_the_answer(drawn):
    (axes,) = drawn("changes").axes
    assert (values(axes, "simcse"), values(axes, HOSTILE)) == ([50.0], [25.0])
    assert lines_of(axes)["no change"] == [[(0.0, 0.0), (0.0, 1.0)]]
    (axes,) = drawn("disagreements").axes
    assert (values(axes, "simcse"), values(axes, "dcpcse")) == ([0.0], [100.0])
    (axes,) = drawn("template").axes
    assert (values(axes, "simcse"), values(axes, "_start")) == ([71.5], [80.5, 80.5])
    (axes,) = drawn("ledger").axes
    assert (values(axes, "obtained"), values(axes, "_start")) == ([60.0], [70.0])
    first, second = drawn("words").axes
    assert (values(first, "simcse"), values(second, "promptbert")) == ([0.25, -0.5], [0.125])


def test_scores_have_their_intervals_their_gains_and_their_cost(drawn):
    scores, gains, costs = drawn("results").axes
    assert values(scores, "simcse") == [70.0, 60.0]
    assert values(scores, "Untrained (mean)") == [55.0, 45.0]
    assert "bundled-cls" not in lines_of(scores)  # not the strongest untrained reading
    spans = sorted(tuple(segment[:, 0]) for part in scores.collections for segment in part.get_segments())
    assert spans == [(54.5, 55.5), (69.5, 70.5), (74.5, 75.5)]
    assert (values(gains, "promptbert"), values(gains, "_start")) == ([75.0], [60.0, 40.0])
    assert lines_of(costs)["promptbert"] == [[(18_432.0, 75.0)]]
    assert lines_of(costs)["Untrained (mean)"] == [[(0.0, 55.0)]]


def test_distributions_matrices_ranks_and_words_are_the_answers(drawn):
    axes = drawn("similarity").axes
    assert [lines_of(each)[name][0][0][0] for each, name in zip(axes, MODELS_OF, strict=True)] == [0.5, 0.25, -0.125, 1]
    assert axes[0].patches[0].get_data().values.tolist() == [0.0] * 49 + [1.0]
    first = drawn("pairs").axes[0]
    assert np.array_equal(first.get_images()[0].get_array(), MATRIX)
    assert [text.get_text() for text in first.texts[:3]] == ["1.00", ".50", "\N{MINUS SIGN}.25"]
    (axes,) = drawn("search").axes
    assert lines_of(axes)["two"] == [[(0, 3), (1, 2), (2, 2)]]  # 3 is below the dashed line
    assert lines_of(axes)[HOSTILE] == [[(0, 2), (1, 1), (2, 4)]]  # and 4 is its place among those
    grid = drawn("tokens").axes
    assert [patch.get_width() for patch in grid[0].patches] == [50.0, 25.0]
    assert [patch.get_width() for patch in grid[1].patches] == [12.5]
    assert grid[0].get_yticklabels()[1].get_text() == "b"


def test_maps_have_the_same_limits_and_every_point(drawn):
    axes = drawn("map").axes
    assert len(axes) == 4
    assert len({(each.get_xlim(), each.get_ylim()) for each in axes}) == 1
    for each in axes:
        points = np.concatenate([part.get_offsets() for part in each.collections])
        assert sorted(map(tuple, points)) == sorted(map(tuple, MAP["xy"]))
    labels = {part.get_label(): len(part.get_offsets()) for part in axes[0].collections}
    assert labels == {"pets": 2, line(HOSTILE, 24): 1}


def test_an_xray_has_attention_displacement_and_prototypes(drawn):
    attention, moved, prototypes = drawn("xray").axes
    assert lines_of(attention)["token read"] == [[(1, 10.0), (2, 20.0)]]
    assert lines_of(attention)["all tokens"] == [[(1, 30.0), (2, 40.0)]]
    assert lines_of(attention)["evenly spread"][0][0][1] == 5.0
    assert lines_of(moved)["off in one layer"] == [[(1, 50.0), (2, 12.5)]]
    assert [patch.get_width() for patch in prototypes.patches] == [0.75]


def test_near_duplicates_votes_labels_and_a_training_are_the_answers(drawn):
    (axes,) = drawn("duplicates").axes
    assert lines_of(axes)["promptbert"] == [[(3.0, 10.0), (5.0, 4.0), (7.0, 0.0)]]
    assert [lines_of(axes)[name][0][0][0] for name in ("chosen", "recommended")] == [5.0, 4.5]
    votes = drawn("ballot")
    assert (values(votes.axes[0], "simcse"), values(votes.axes[0], HOSTILE)) == ([75.0], [25.0])
    spans = sorted(tuple(each[:, 0]) for part in votes.axes[0].collections for each in part.get_segments())
    assert spans == [(12.5, 50.0), (50.0, 87.5)]
    (axes,) = drawn("labels").axes
    assert (values(axes, "simcse"), values(axes, "promptbert")) == ([80.5, 40.0], [70.5, 50.0])
    (axes,) = drawn("times").axes
    assert lines_of(axes)["promptbert"] == [[(7.5, 70.5)]]
    assert sheet(taken("times")).rows[0] == ["SimCSE", "5", "70.50"]
    loss, guard = drawn("training").axes
    assert lines_of(loss)["loss"] == [[(1.0, 2.5), (2.0, 1.25)]]
    assert lines_of(guard)["guard's score"] == [[(2.0, 61.5)]]
    assert lines_of(guard)["start"][0][0][1] == 60.5


def test_attention_is_drawn_by_layer_on_tokens_and_by_layer_and_head_on_a_prefix(drawn):
    images = [each.get_images()[0].get_array() for each in drawn("attention").axes[:4]]
    np.testing.assert_allclose(images[0], [[25, 12.5, 62.5], [30, 30, 40]])
    np.testing.assert_allclose(images[1], [[50, 0], [20, 40]])
    np.testing.assert_allclose(images[3], [[50, 100], [60, 40]])  # on the most looked-at token, without a prefix
    assert sheet(taken("attention")).rows[1] == ["SimCSE", "2", "[SEP]", "40.0%", "30.0%"]


@pytest.mark.parametrize("endpoint", FIGURES)
def test_no_text_is_cut_off_or_read_as_mathematics(endpoint):
    """In either layout, with the largest letters, which have the least room."""
    for width in WIDTHS:
        with paper_style(MOST_SIZE):
            figure = draw(taken(endpoint), look_of(width, MOST_SIZE))
            figure.draw_without_rendering()
            assert not any(text.get_parse_math() for text in figure.findobj(Text))
            drawn, room = figure.get_tightbbox(), 0.02  # inches
            assert (drawn.x0 > -room, drawn.x1 < WIDTHS[width] + room) == (True, True), drawn
            assert (drawn.y0 > -room, drawn.y1 < figure.get_figheight() + room) == (True, True), drawn


def test_files_are_vectors_with_text_and_say_whose_numbers_they_hold():
    found = {
        kind: figure_file(taken("template"), kind, Look(), {"title": "t", "description": f"d {SHOWN}"})
        for kind in ("svg", "pdf", "png")
    }
    assert not any(lacking for _, lacking in found.values())
    svg, pdf, png = (content for content, _ in found.values())
    tree = ElementTree.fromstring(svg)
    texts = ["".join(each.itertext()) for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "$x^2$ & 5 % of <b>" in " ".join(texts)
    assert f"d {SHOWN}" in "".join(tree.itertext())
    assert not [each for each in tree.iter() if each.tag.endswith(("}b", "}script", "}image"))]
    assert pdf.startswith(b"%PDF")
    assert b"/Subtype /Type3" not in pdf
    assert b"/Subtype /Type0" in pdf or b"/Subtype /TrueType" in pdf
    assert b"/Subject" in pdf
    assert struct.unpack(">I", png[16:20])[0] == round(WIDTHS["two"] * 300)
    assert b"tEXtDescription" in png or b"iTXtDescription" in png
    again, _ = figure_file(taken("template"), "pdf", Look(), {"title": "t", "description": f"d {SHOWN}"})
    assert again == pdf


def test_characters_that_the_font_lacks_are_told_and_stay_in_an_svg():
    asked = Taken("template", {}, {}, {"\u6a21\u578b": ANSWERS["template"][1]["simcse"]})
    content, lacking = figure_file(asked, "svg", Look(), {})
    assert lacking
    assert "\u6a21\u578b" in content.decode()


def test_a_model_has_the_colour_of_the_page_and_others_have_another():
    marks = Look(colours={"mine": OWN[0], "yours": OWN[1]}).marks(["dcpcse", "mine", "yours", "simcse"])
    assert [marks[name].colour for name in ("mine", "yours")] == [*OWN[:2]]
    assert (marks["dcpcse"].colour, marks["simcse"].colour) == (MODELS["dcpcse"], MODELS["simcse"])
    assert len({mark.colour for mark in marks.values()}) == len({mark.marker for mark in marks.values()}) == 4
    with paper_style(SIZE):
        (axes,) = draw(taken("changes"), Look()).axes
    colours = {each.get_label(): to_hex(each.get_color()) for each in axes.get_lines()}
    assert colours["simcse"] == MODELS["simcse"]


def test_a_result_without_numbers_or_a_figure_says_so():
    with pytest.raises(ValueError, match="No model has a result to draw"), paper_style(SIZE):
        draw(Taken("similarity", {}, {}, {"bad": BAD}), Look())
    with pytest.raises(ValueError, match="No model here has a prefix"), paper_style(SIZE):
        draw(Taken("xray", {}, {}, {"m": {"cosine": 0.5}}), Look())
    with pytest.raises(ValueError, match="This result has no figure"), paper_style(SIZE):
        draw(Taken("norms", {}, {}, {"m": 1.0}), Look())
    with pytest.raises(ValueError, match="The width is unknown"):
        look_of("three", 8)
    with pytest.raises(ValueError, match="The font size must be"):
        look_of("one", 80)


def test_seeds_and_trained_parameters_are_read_from_a_models_record(tmp_path):
    assert record_of("dcpcse") == (44, 18_432)
    assert record_of("bundled") == (None, 0)
    assert record_of("somebody/unknown") == (None, None)
    (tmp_path / "config.json").write_text("{")
    assert record_of(str(tmp_path)) == (None, None)


@pytest.mark.parametrize("endpoint", TABLES)
def test_a_table_has_as_many_cells_in_every_row_and_runs_nothing(endpoint):
    found, tex, text = sheet(taken(endpoint)), as_latex(taken(endpoint)), as_markdown(taken(endpoint))
    assert found.rows
    assert {len(row) for row in found.rows} == {len(found.head)}
    body = tex[tex.index("\\midrule") : tex.index("\\bottomrule")].splitlines()[1:-1]
    for row in body:
        assert row.endswith(" \\\\")
        assert len(re.findall(r"(?<!\\)&", row)) == len(found.head) - 1
    known = "textbf|caption|label|begin|end|toprule|midrule|bottomrule|centering"
    escaped = r"\\[a-z]+(\{\}|34\{\})|\\[&%$#_{}]|\$\\[a-z]+\$|\$-\$|\\\\$"
    plain = re.sub(rf"{escaped}|\\({known})\b|^% .*", "", tex, flags=re.M)
    assert not re.search(r"[\\%$#~^&_]", plain.replace(" & ", "")), plain
    table = [row for row in text.splitlines() if row.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in table} == {len(found.head) + 1}
    assert not re.search(r"(?<!\\)<", text)


def test_tables_hold_the_numbers_and_mark_the_best():
    assert as_markdown(taken("similarity")).splitlines()[:3] == [
        "| Model | Cosine | Percentile |", "| --- | ---: | ---: |", "| SimCSE | 0.500 | 97.2 |",
    ]  # fmt: skip
    tex = as_latex(taken("results"))
    assert "Model & a & b \\\\" in tex
    assert "SimCSE & 70.00 $\\pm$ 0.50 & 60.00 \\\\" in tex
    assert "PromptBERT & \\textbf{75.00 $\\pm$ 0.50} & \\textbf{65.00} \\\\" in tex
    assert "Untrained (mean) & 55.00" in tex
    changed = sheet(taken("changes"))
    assert changed.head == ["Change", "Changed", "SimCSE", line(HOSTILE, 40)]
    assert changed.rows == [["negated", SHOWN, "50.0%", "25.0%"]]
    assert latex("[a] *b* \\x{$1}") == r"{[}a] {*}b{*} \textbackslash{}x\{\$1\}"


def test_rows_of_near_duplicates_say_yes_and_no_as_the_command_does():
    assert [row[2] for row in TABLES["duplicates"].rows(taken("duplicates"))] == ["yes", "no"]


def test_an_svg_and_the_page_do_not_disturb_each_other():
    """Figures are drawn one at a time: settings of one style never reach another."""
    import threading

    sizes = {}

    def run(size):
        with paper_style(size):
            figure = draw(taken("changes"), Look(size=size))
            sizes[size] = figure.axes[0].xaxis.label.get_size()
            figure.savefig(BytesIO())

    threads = [threading.Thread(target=run, args=(size,)) for size in (6, 9, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == {6: 6, 9: 9, 12: 12}


def test_texts_without_a_label_are_grey_and_none_of_the_labels_in_a_figure():
    names, of = own_figures.legend_of(["b", "", "a", "b"])
    assert (names, of.tolist()) == (["a", "b", "no label"], [1, 2, 0, 1])
    assert own_figures.shade(2, names[2]) == own_figures.FAINT


def test_neighbours_without_a_label_are_no_neighbours_of_another_label():
    near = np.array([[1, 2], [0, 2], [0, 1]])
    assert same_label(near, np.array(["a", "a", ""])) == 1.0
    assert same_label(near, np.array(["a", "", ""])) is None
