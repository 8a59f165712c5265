"""The modules of the page: columns of models, HTML in which no text of a user is markup, and what a client may send."""

import base64
import json
from types import SimpleNamespace

import numpy as np
import pytest
from app_models import MARKUP, write_model

from index import Hit
from ui import html, validation
from ui.canvas import FOLDER, SCRIPTS, ModelMap, canvas_value, map_of, map_value, pack
from ui.clusters import demo_points, maps_value, pinned
from ui.corpora import Demo
from ui.distribution import Placed, placed_html
from ui.models import Column, Failure, Models, columns, free_name
from ui.search import Found, search_html
from ui.similarity import DARK_RAMP, LIGHT_RAMP, cell_colours, cell_html, contrast, heat_map_html
from ui.tokens import Reading, readings_html

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
    reading = Reading([(HOSTILE, 0.5)], [(HOSTILE, 0.3)], [(HOSTILE, 0.4)], f"[X] {HOSTILE}", own=True)
    pages = [
        heat_map_html([HOSTILE, "b"], np.eye(2), HOSTILE),
        search_html(5, {HOSTILE: Found([hit], HOSTILE, 1.0), "other": Found([], "Flat", 1.0)}),
        readings_html(HOSTILE, {HOSTILE: reading, "other": Failure(HOSTILE)}),
        html.hint(HOSTILE),
    ]
    for page in pages:
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&gt;&lt;img" in page


def drawn(count: int) -> ModelMap:
    rng = np.random.default_rng(0)
    near = rng.integers(0, count, (count, 5))
    return ModelMap(rng.random((count, 2)).astype(np.float32), near, rng.integers(0, 11, count) / 10, 0.9, 0.8, None)


def test_a_map_carries_texts_as_data():
    value = canvas_value([HOSTILE, "b"], ["x", "y"], {MARKUP: drawn(2)}, joined=False)
    assert value["texts"] == [HOSTILE, "b"]
    json.dumps(value)
    assert {path.stem for path in FOLDER.glob("*.js")} == set(SCRIPTS)
    for name in SCRIPTS:
        script = (FOLDER / f"{name}.js").read_text()
        assert "innerHTML" not in script
        assert "insertAdjacent" not in script
        assert len(script.splitlines()) <= 250


def test_a_map_comes_back_from_its_json_values():
    before = drawn(7)
    after = map_of(json.loads(json.dumps(map_value(before))))
    np.testing.assert_allclose(after.xy, before.xy, atol=1e-5)
    np.testing.assert_array_equal(after.near, before.near)
    np.testing.assert_allclose(after.lost, before.lost, atol=1 / 255)
    assert after[3:] == before[3:]


def test_a_pinned_sentence_of_the_demo_corpus_is_among_the_points():
    state = SimpleNamespace(demo=(demo := Demo()))
    few, more = demo_points(state, 10), demo_points(state, 10, pin=1199)
    assert (few.rows.tolist(), len(few.rows)) == ([row for row in range(1200) if row % 100 < 10], 120)
    assert more.rows.tolist() == [*few.rows, 1199]
    assert (more.texts[-1], more.labels[-1]) == (demo.sentences[1199], demo.topics[1199])
    assert demo_points(state, 10, pin=5).texts == few.texts
    assert maps_value(more, {}, pin=1199)["pin"] == 120
    assert maps_value(few, {}, pin=1199)["pin"] == maps_value(few, {})["pin"] == -1


@pytest.mark.parametrize("pin", ["x", "-1", "1e3", "1200", "999999999", 1200, 2.5, True, [], {}])
def test_what_names_no_sentence_pins_none(pin):
    state = SimpleNamespace(demo=Demo())
    assert (pinned(state, ""), pinned(state, None), pinned(state, "57"), pinned(state, 57)) == (None, None, 57, 57)
    with pytest.raises(ValueError, match="The pinned sentence must be a whole number from 0 to 1199"):
        pinned(state, pin)


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


def test_a_pair_is_placed_among_random_pairs_on_one_axis():
    low, high = Placed(0.125, 40.0, [0.5, 0.5] + [0.0] * 48), Placed(1.0, 100.0, [0.02] * 50)
    page = placed_html({"a": low, "b": high, MARKUP: Failure(HOSTILE)}, {"Sentence A": [HOSTILE], "Sentence B": []})
    assert '<td class="cse-number">0.125</td><td>40.0 %</td>' in page
    assert "above all random pairs" in page
    assert page.count('x1="30.00" x2="30.00"') == 1  # 0.125 on an axis from -0.25 to 1
    assert page.count('x1="100.00" x2="100.00" y1="0"') == 1
    assert "Seen: from 40.0 % in a to above all random pairs in b." in page
    assert page.count("cse-warning") == 1
    assert "<script" not in page
    assert "<img" not in page
    assert "Seen: 40.0 % in every model." in placed_html({"a": low, "b": low}, {})


def found(*texts: str) -> Found:
    corpus = ["both", "mine", "deep", "x", "one"]
    hits = [Hit(rank, 1 - rank / 10, corpus.index(text), text) for rank, text in enumerate(texts, start=1)]
    return Found(hits, "Flat", 3.2)


def test_search_has_a_row_per_sentence_and_its_rank_in_every_model():
    page = search_html(
        2, {"a": found("both", "mine", "deep"), "b": found("both", "deep", "x"), MARKUP: Failure("broken")}
    )
    rows = [row.split("</tr>")[0] for row in page.split('<tr><th scope="row">')[1:]]
    assert [row.split("<")[0].strip() for row in rows] == ["both", "deep", "mine"]  # the mean rank decides
    assert '<span class="cse-rank cse-found">2</span><span class="cse-score">0.800</span>' in rows[1]
    assert '<span class="cse-rank">3</span>' in rows[1]  # beyond the two asked for
    assert ("only b" in rows[1], "only a" in rows[2], "only" in rows[0]) == (True, True, False)
    assert "·</span>" in rows[2]  # b does not have it at all
    assert "1 of 2, 0.55" in page  # 0.1 * 1 + 0.1 * 0.9 * 0.5, and 0.81 * 0.5 for what would follow
    assert "Flat (exact), 3 ms" in page
    assert "broken" in page
    assert "<img" not in page
    assert "only" not in search_html(1, {"a": found("one"), "c": Failure("broken")})


def test_the_words_of_all_models_have_bars_on_one_scale():
    def reading(*shares: float) -> Reading:
        before, alone, after = ([("word", share)] for share in shares)
        return Reading(before, alone, after, 'This : "[X]" means [MASK].', own=shares[0] > 0.3)

    page = readings_html("cats", {"a": reading(0.4, 0.1, 0.2), "b": reading(0.3, 0.05, 0.8)})
    assert [part.split("%")[0] for part in page.split("width:")[1:]] == ["50.0", "12.5", "25.0", "37.5", "6.2", "100.0"]
    assert "<span>This : &quot;</span>cats<span>&quot; means [MASK].</span>" in page
    assert page.count("reads no [MASK] itself") == 1


def test_packed_points_come_back():
    xy = np.array([[0, 1], [0.25, 0.5], [2, -1]])
    numbers = np.frombuffer(base64.b64decode(pack(xy)), "<u2").reshape(-1, 2) / 65535
    np.testing.assert_allclose(numbers, np.clip(xy, 0, 1), atol=1e-5)


def test_lines_are_stripped_and_counted():
    assert validation.lines(" a \n\n b\r\nc", 2, 3) == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"The list has 1 sentence; paste 2 to 40, one per line\."):
        validation.lines("a", 2, 40)
