"""The cost card's speed: the median of timed encodings, measured once a model, and never for one that fails."""

import re

import pytest
from app_models import write_model
from conftest import SENTENCES

from cse.adaptation.projection import project
from cse.app.scoreboard import speed
from cse.app.scoreboard.model_strip import descriptions, strip_html
from cse.app.state.app_state import open_state


class Slow:
    """An encoder whose calls take the milliseconds it was given, on a clock of its own."""

    def __init__(self, *took: float) -> None:
        self.now, self.took = 0.0, list(took)

    def encode(self, text: str) -> None:
        self.now += self.took.pop(0) / 1000


def test_the_first_run_is_not_counted_and_the_median_is_told(monkeypatch) -> None:
    slow = Slow(900, 5, 4, 100, 3, 6)
    monkeypatch.setattr(speed.time, "perf_counter", lambda: slow.now)
    assert speed.milliseconds(slow) == pytest.approx(5)
    assert speed.in_words(12.345) == "12.3 ms a sentence on this host (median of 5)"


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


def test_nothing_is_measured_and_nothing_raised_for_a_page_that_was_closed(tmp_path, bert_folder, monkeypatch) -> None:
    state = open_state([str(write_model(tmp_path / "simcse", bert_folder, "simcse"))], ())
    monkeypatch.setattr("cse.app.models.models.client_left", lambda: True)
    assert speed.speeds(state) == {}
