"""The shipped first results are those of the bundled models, and no weights are read to show them."""

import json

import gradio as gr
import numpy as np
import pytest
from app_models import GOOD, write_model

from cse.analysis.calibration import overlap
from cse.app.drawing.canvas import map_of
from cse.app.drawing.ranks import MOST
from cse.app.models.models import Models
from cse.app.opening import FILE, Opening, compute_opening, read_opening, write_opening
from cse.app.page import page
from cse.app.sections.map_points import demo_points
from cse.app.sections.search import DEFAULT as HITS
from cse.app.state.app_state import AppState, open_state
from cse.app.state.corpora import VECTORS
from cse.app.state.groups import GROUPS
from cse.app.state.maps import draw_maps
from cse.evaluation.clustering import nmi
from cse.models.names import BUNDLED_NAMES


@pytest.fixture(scope="module")
def state() -> AppState:
    return open_state(BUNDLED_NAMES, ())


def test_the_shipped_first_results_are_the_living_models(state: AppState, monkeypatch) -> None:
    """Maps are not drawn again, since t-SNE multiplies the last bit of a machine; their scores are."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    places = iter([map_of(stored["maps"][name]).xy for name in BUNDLED_NAMES])
    monkeypatch.setattr("cse.app.state.maps.place", lambda *_: next(places))
    living = compute_opening(state)
    assert stored["descriptions"] == living["descriptions"]
    assert [row[:3] for row in stored["changes"]] == [list(row[:3]) for row in living["changes"]]
    for ours, theirs in zip(stored["changes"], living["changes"], strict=True):
        assert ours[3] == pytest.approx(theirs[3], abs=1e-3)
    inside = stored["xrays"]
    assert inside["dcpcse"]["attention"]["read"] == pytest.approx(
        living["xrays"]["dcpcse"]["attention"]["read"], abs=1e-3
    )
    for ours, theirs in zip(inside["dcpcse"]["ablations"], living["xrays"]["dcpcse"]["ablations"], strict=True):
        assert ours.pop("layers") == theirs.pop("layers")
        assert ours == pytest.approx(theirs, abs=1e-3)
    assert inside["conpvp"]["prototypes"][0]["template"] == living["xrays"]["conpvp"]["prototypes"][0]["template"]
    assert stored["disagreements"][0][0] == living["disagreements"][0][0]
    assert stored["disagreements"][0][1] == pytest.approx(living["disagreements"][0][1], abs=0.05)
    for name in BUNDLED_NAMES:
        np.testing.assert_allclose(stored["similarity"][name][0], living["similarity"][name][0], atol=2e-4)
        np.testing.assert_allclose(stored["similarity"][name][1], living["similarity"][name][1], atol=0.1)
        np.testing.assert_allclose(stored["similarity"][name][2], living["similarity"][name][2], atol=5e-4)
        for field, off in (("cosines", 2e-4), ("percentiles", 0.1)):
            np.testing.assert_allclose(stored["all_pairs"][name][field], living["all_pairs"][name][field], atol=off)
        ours, theirs = stored["hits"][name], living["hits"][name]
        assert ([hit[2:] for hit in ours[0][:HITS]], ours[1]) == ([hit[2:] for hit in theirs[0][:HITS]], theirs[1])
        assert overlap(*([hit[2] for hit in side[0]] for side in (ours, theirs))) >= MOST - 1  # another machine's ties
        for before, after in zip(stored["tokens"][name][:3], living["tokens"][name][:3], strict=True):
            assert [word for word, _ in before] == [word for word, _ in after]
        for ours, theirs in zip(stored["trials"][name][:2], living["trials"][name][:2], strict=True):
            assert ours[0] == theirs[0]
            assert ours[1] == pytest.approx(theirs[1], abs=0.5)  # two pairs that nearly tie may change places
            assert [word for word, _ in ours[2]] == [word for word, _ in theirs[2]]
        ours, theirs = map_of(stored["maps"][name]), map_of(living["maps"][name])
        assert theirs.trustworthiness == pytest.approx(ours.trustworthiness, abs=2e-3)
        assert theirs.continuity == pytest.approx(ours.continuity, abs=2e-3)
        assert min(ours.trustworthiness, ours.continuity) > 0.8
        assert (ours.near == theirs.near).mean() > 0.99
        assert nmi(ours.groups.of, theirs.groups.of) > 0.95
        assert ours.same_topic == pytest.approx(theirs.same_topic, abs=2e-3)


def test_the_shipped_vectors_of_the_demo_corpus_are_the_living_models(state: AppState) -> None:
    """Ten rows of each; float16 keeps three digits."""
    assert len(list(VECTORS.glob("*.npy"))) == len(BUNDLED_NAMES)
    rows = np.linspace(0, len(state.demo.sentences) - 1, 10).astype(int)
    for column in state.models.columns:
        encoder = state.models.encoder(column)
        stored = np.load(VECTORS / f"{encoder.fingerprint}.npy")
        assert (stored.dtype, stored.shape) == (np.float16, (len(state.demo.sentences), encoder.dim))
        wanted = encoder.encode([state.demo.sentences[row] for row in rows])
        np.testing.assert_allclose(stored[rows], wanted, atol=2e-3 * np.abs(wanted).max())
        assert state.demo.vectors(encoder).dtype == np.float32


def test_precomputing_writes_what_is_read_and_leaves_what_there_was_where_a_model_fails(
    tmp_path, bert_folder, monkeypatch
) -> None:
    for name, place in (("VECTORS", tmp_path / "vectors"), ("FILE", tmp_path / "opening.json")):
        monkeypatch.setattr(f"cse.app.opening.{name}", place)
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "old.npy").write_bytes(b"old")
    with pytest.raises(ValueError, match="broken: "):
        write_opening(open_state([str(tmp_path / "broken")], ()))
    assert (tmp_path / "vectors" / "old.npy").exists()
    # places that t-SNE finds in seconds
    monkeypatch.setattr("cse.app.state.maps.place", lambda vectors, *_: np.asarray(vectors[:, :2]))
    small = open_state([str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]], ())
    files = write_opening(small)
    assert sorted(files) == sorted([*(tmp_path / "vectors").iterdir(), tmp_path / "opening.json"])
    assert not (tmp_path / "vectors" / "old.npy").exists()
    assert json.loads((tmp_path / "opening.json").read_text()).keys() == json.loads(FILE.read_text()).keys()


def test_a_page_with_another_column_is_computed_when_it_opens(bert_folder) -> None:
    assert read_opening(Models([*BUNDLED_NAMES, str(bert_folder)])) == Opening()
    assert read_opening(Models(["bundled"])) == Opening()
    assert list(read_opening(Models(["dcpcse", "simcse"])).hits or ()) == ["dcpcse", "simcse"]


def test_every_tab_of_the_bundled_page_has_its_result_or_says_which_option_allows_it() -> None:
    state = open_state(BUNDLED_NAMES, ())
    blocks = page(state).blocks.values()
    shown = {
        block.elem_id: block.value for block in blocks if getattr(block, "elem_id", None) and hasattr(block, "value")
    }
    assert shown["similarity"].count("<svg") == len(BUNDLED_NAMES)
    assert shown["hits"].count('<th scope="col" title="Flat') + shown["hits"].count('<th scope="col"><i') == 2 * len(
        BUNDLED_NAMES
    )  # the ranks, and the agreement
    for place in ("tokens", "template-lab"):
        assert shown[place].count('class="cse-card"') == len(BUNDLED_NAMES), place
    for drawn in (shown["maps"]["maps"], shown["all-pairs"]["models"]):
        assert [model["name"] for model in drawn] == list(BUNDLED_NAMES)
    assert shown["models"].count("popovertarget") == shown["models"].count("· STS ") == len(BUNDLED_NAMES)
    for place in ("changes", "disagreements"):
        assert shown[place].count('<th scope="col">') == len(BUNDLED_NAMES) + {"changes": 2, "disagreements": 1}[place]
    assert shown["xray"].count("<tr>") == 1 + 7 + 1 + 17
    assert len(shown["maps"]["texts"]) == len(state.demo.sentences)
    hints = [block.value for block in blocks if isinstance(block, gr.HTML) and isinstance(block.value, str)]
    for said, option in (("does not train models", "--train"), ("takes no models", "--models-root FOLDER")):
        assert [f"This server {said}." in hint and option in hint for hint in hints].count(True) == 1, said


def test_the_shipped_maps_are_not_drawn_again(monkeypatch) -> None:
    state = open_state(BUNDLED_NAMES, ())
    page(state)
    monkeypatch.setattr("cse.analysis.maps.embed", None)  # would fail if anything were drawn
    monkeypatch.setattr("cse.app.state.maps.groups_of", None)
    (maps,) = draw_maps(state, demo_points(state), 0, GROUPS)
    assert list(maps) == list(BUNDLED_NAMES)
    shipped = read_opening(state.models).maps
    for name, drawn in maps.items():
        np.testing.assert_allclose(drawn.xy, shipped[name].xy, atol=1e-4)
        assert drawn.groups[1:] == shipped[name].groups[1:]
        np.testing.assert_array_equal(drawn.groups.of, shipped[name].groups.of)
    with pytest.raises(TypeError, match="not callable"):
        list(draw_maps(state, demo_points(state), 1, GROUPS))
