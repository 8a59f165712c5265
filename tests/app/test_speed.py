"""The cost card's speed: the median of timed encodings, measured once a model, and never for one that fails."""

import re

from app_models import write_model
from conftest import SENTENCES
from fitted_models import project

from cse.app.scoreboard import speed
from cse.app.scoreboard.model_strip import descriptions, strip_html
from cse.app.state.app_state import open_state


def test_a_model_is_measured_once_and_its_card_says_so(tmp_path, bert_folder, monkeypatch) -> None:
    state = open_state([str(write_model(tmp_path / "simcse", bert_folder, "simcse")), str(tmp_path / "none")], ())
    found = descriptions(state.models)
    assert strip_html(state, found).count(speed.UNKNOWN) == 1  # the card of a failed model has none
    calls = []
    monkeypatch.setattr(speed, "milliseconds", lambda encoder: calls.append(1) or 7.0)
    told = {"simcse": "7 ms a sentence on this host (median of 5)"}
    assert speed.speeds(state) == speed.speeds(state) == told
    assert calls == [1]
    assert told["simcse"] in strip_html(state, found)


def test_the_card_of_a_model_with_a_fitted_projection_says_so(tmp_path, bert_folder) -> None:
    project(str(bert_folder), SENTENCES, tmp_path / "mine", components=3, pooling="mean")
    state = open_state([str(tmp_path / "mine"), str(bert_folder)], ())
    shown = strip_html(state, descriptions(state.models))
    notes = re.findall(r'<span class="cse-note">(.*?)</span>', shown)
    assert notes == ["mean, projection fitted on own texts", "mean, nothing trained"]
