"""The modules of the page: columns of models, HTML in which no text of a user is markup, and what a client may send."""

import base64
import json

import numpy as np
import pytest
from app_models import MARKUP, write_model
from conftest import ROOT

from index import Hit
from ui import html, validation
from ui.canvas import ModelMap, canvas_value, pack
from ui.models import Column, Failure, Models, columns, free_name
from ui.search import search_html
from ui.similarity import DARK_RAMP, LIGHT_RAMP, cell_colours, cell_html, contrast, cosine_html, heat_map_html
from ui.tokens import Reading, reading_html

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{value}} ${alert(1)} `"


def test_a_model_that_appears_later_is_found_on_the_next_try(tmp_path, bert_folder):
    models = Models([str(tmp_path / "later")])
    call = {"function": lambda column, encoder: encoder.dim}
    (reason,) = models.apply(**call).values()
    assert isinstance(reason, Failure)
    write_model(tmp_path / "later", bert_folder, "simcse")
    assert models.apply(**call) == {"later": 32}


def test_repeated_models_share_a_column_and_names_are_told_apart(tmp_path, monkeypatch):
    for name in ("a/run", "b/run"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = columns(["simcse", "a/run", str(tmp_path / "a" / "run"), "b/run", "simcse"])
    assert found == (
        Column("simcse", "simcse"),
        Column("run", str(tmp_path / "a" / "run")),
        Column(str(tmp_path / "b" / "run"), str(tmp_path / "b" / "run")),
    )
    assert free_name(("", "a", "b"), {"a"}) == "b"


def test_no_component_lets_a_users_text_through_as_markup():
    hit = Hit(rank=1, score=0.5, row=0, text=HOSTILE)
    reading = Reading([(HOSTILE, 0.5)], [(HOSTILE, 0.4)], HOSTILE, own=True)
    pages = [
        heat_map_html([HOSTILE, "b"], np.eye(2), HOSTILE),
        search_html({HOSTILE: [hit], "other": []}),
        html.columns({HOSTILE: reading, "other": Failure(HOSTILE)}, reading_html),
        html.hint(HOSTILE),
    ]
    for page in pages:
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&gt;&lt;img" in page


def test_a_map_carries_texts_as_data():
    value = canvas_value([HOSTILE, "b"], ["x", "y"], {MARKUP: ModelMap(np.zeros((2, 2)), 1.0)}, joined=False)
    assert value["texts"] == [HOSTILE, "b"]
    assert json.loads(json.dumps(value)) == value
    script = (ROOT / "ui" / "canvas.js").read_text()
    assert "innerHTML" not in script
    assert "insertAdjacent" not in script


def test_numbers_can_be_read_on_every_colour_of_the_heat_map():
    for cosine in np.linspace(-1, 1, 401):
        for ramp in (LIGHT_RAMP, DARK_RAMP):
            background, text = cell_colours(float(cosine), ramp)
            assert contrast(background, text) >= 4.5, cosine  # WCAG 2, level AA
    assert cell_colours(1.0) == ((8, 48, 107), (255, 255, 255))
    assert cell_colours(-1.0)[0] == (153, 52, 4)
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)


@pytest.mark.parametrize("ramp", [LIGHT_RAMP, DARK_RAMP])
def test_a_higher_cosine_stands_out_more_from_what_is_unrelated(ramp):
    zero = cell_colours(0.0, ramp)[0]
    for sign in (-1, 1):
        found = [contrast(cell_colours(sign * cosine, ramp)[0], zero) for cosine in np.linspace(0, 1, 21)]
        assert found == sorted(found)
        assert found[-1] >= 3


def test_a_cell_has_its_colours_in_both_schemes():
    assert cell_html(1.0) == '<td style="--l:#08306b;--m:#ffffff;--d:#aad4ff;--e:#000000">1</td>'
    assert cell_html(-0.25).endswith(">-.25</td>")


def test_a_cosine_has_three_decimals_and_a_bar_of_its_size():
    assert cosine_html(0.8346) == (
        '<p class="cse-number">0.835</p><span class="cse-bar "><i style="width:83.5%"></i></span>'
    )
    assert 'class="cse-bar negative"><i style="width:12.0%"' in cosine_html(-0.12)


def test_only_what_one_of_several_models_found_is_marked():
    def hits(*texts):
        return [Hit(rank, 0.5, 0, text) for rank, text in enumerate(texts, start=1)]

    page = search_html({"a": hits("both", "mine"), "b": hits("both", "yours"), "c": Failure("broken")})
    assert page.count("only here") == 2
    assert "both</span>" in page
    assert search_html({"a": hits("one"), "c": Failure("broken")}).count("only here") == 0


def test_packed_points_come_back():
    xy = np.array([[0, 1], [0.25, 0.5], [2, -1]])
    numbers = np.frombuffer(base64.b64decode(pack(xy)), "<u2").reshape(-1, 2) / 65535
    np.testing.assert_allclose(numbers, np.clip(xy, 0, 1), atol=1e-5)


def test_lines_are_stripped_and_counted():
    assert validation.lines(" a \n\n b\r\nc", 2, 3) == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"The list has 1 sentence; paste 2 to 40, one per line\."):
        validation.lines("a", 2, 40)
