"""Figures and tables for papers: they hold the answer's numbers, no text is cut off, and no text is code."""

import re
import struct
import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.colors import to_hex

from cse.app.drawing.palette import MODELS, OWN
from cse.app.export.figures import FIGURES, draw, figure_file
from cse.app.export.look import SIZE, WIDTHS, Look, line, look_of
from cse.app.export.sheets import sheet
from cse.app.export.taken import Taken, caption
from cse.app.export.tidy import TABLES
from cse.app.export.typeset import as_latex, as_markdown, latex
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
NEAR = {
    "nines": 5.0, "advised": 4.5, "texts": 100, "kept": 96, "groups": 1,
    "curve": [{"nines": nines, "kept": kept} for nines, kept in ((3.0, 90), (5.0, 96), (7.0, 100))],
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


def test_every_table_has_a_figure_and_its_own_caption():
    assert FIGURES.keys() == TABLES.keys() == ANSWERS.keys()
    told = {endpoint: caption(taken(endpoint)) for endpoint in ANSWERS}
    assert len(set(told.values())) == len(told)
    assert "SimCSE (seed 43, fingerprint 01230)" in told["similarity"]
    assert "PromptBERT (fingerprint 01231)" in told["similarity"]
    assert "01234" not in told["similarity"]  # of the model that failed
    assert "seed of t-SNE 3" in told["map"]
    assert "Seeds 1 & 2." in told["results"]


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
