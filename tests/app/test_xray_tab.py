"""The X-ray of the Probe tab: what is shown is what the library says, JSON keeps it, and every text is escaped."""

import json

import numpy as np
import pytest
from app_models import MARKUP, write_model

import cse
from cse.analysis.calibration import random_cosines
from cse.analysis.prefix_analysis import PrefixAttention, Prototype, prefix_attention, prototypes, without_prefix
from cse.app.models.models import Failure
from cse.app.sections.prefix import Ablation, XRay, layer_choices, layers_of, opened_xray, plain_xray, xray_html, xrays
from cse.app.state.app_state import AppState, open_state

PAIR = ("the dog is happy", "the cat is sad")


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("xray")
    folders = [write_model(root / name, bert_folder, name) for name in ("simcse", "dcpcse", "conpvp")]
    (root / "broken").mkdir()
    return open_state([*map(str, folders), str(root / "broken")], ())


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_an_xray_is_what_the_library_says_and_json_keeps_it(state: AppState) -> None:
    found = xrays(state, *PAIR, off=[2, 1])
    broken = found.pop("broken")
    assert isinstance(broken, Failure)
    assert opened_xray(json.loads(json.dumps(plain_xray(found["dcpcse"])))) == found["dcpcse"]
    assert plain_xray(found["simcse"]).keys() == {"cosine"}
    assert found["conpvp"].prototypes == prototypes(cse.load(state.models.columns[2].model), PAIR[0])
    encoder = cse.load(state.models.columns[1].model, backend="torch")
    assert found["dcpcse"].attention == prefix_attention(encoder, PAIR[0])
    assert [row.layers for row in found["dcpcse"].ablations] == [(1,), (2,), (1, 2)]
    median = np.median(random_cosines(encoder.encode(state.demo.sentences[::6])))
    own = encoder.encode(PAIR[0])
    for row in found["dcpcse"].ablations:
        first, second = without_prefix(encoder, PAIR, row.layers)
        assert row.cosine == pytest.approx(cosine(first, second), abs=1e-5)
        assert row.moved == pytest.approx((1 - cosine(own, first)) / (1 - median), abs=1e-4)
    assert layer_choices(found) == [("1", 1), ("2", 2)]
    assert xrays(state, *PAIR, off=[3])["dcpcse"] == Failure("dcpcse has no layer 3; choose from 1 to 2")


def test_layers_of_a_client_are_checked() -> None:
    assert layers_of([3, 1, 3.0]) == (1, 3)
    for wrong in ("1", 1, [0], [1.5], ["1"], [49], [True], list(range(1, 60)), {"1": 1}):
        with pytest.raises(ValueError, match="layer"):
            layers_of(wrong)


def test_tables_say_what_is_seen_and_nothing_is_markup() -> None:
    attention = PrefixAttention((0.1, 0.6), (0.2, 0.3), 0.25)
    ablations = [Ablation((1,), 0.05, 0.8), Ablation((2,), 0.5, 0.7), Ablation((1, 2), 1.25, 0.4)]
    rows = [Prototype(MARKUP, True, 0.9), Prototype("b", False, 0.5), Prototype("c", True, 0.4)]
    page = xray_html(
        {MARKUP: XRay(0.9, attention, ablations, rows), "<b>": XRay(1.0, None, [], []), "<i>": Failure("<i>")}, (2,)
    )
    assert "<img" not in page
    assert "<i>" not in page.replace("<i style", "")
    assert "&lt;b&gt; has neither" in page
    assert "in layer 2: 60 %, where evenly spread it would be 25 %" in page
    assert "moves by 125 %, and the pair's cosine goes from 0.900 to 0.400" in page
    assert "0.650 to positive ones and 0.500 to negative ones" in page
    assert page.count("cse-mean") == page.count(">chosen<") == 1
