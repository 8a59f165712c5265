"""The Probe tab: what is measured is what the encoders say, and every text is escaped."""

import numpy as np
import pytest
from app_models import GOOD, MARKUP, write_model

import cse
from cse.analysis.calibration import Disagreement, random_cosines
from cse.app.models.models import Failure
from cse.app.sections.changes import Moved, changes_of, moved_html, perturbed, variants_of
from cse.app.sections.probe import disagreeing, disagreements_html, graded_pairs, lined_pairs
from cse.app.state.app_state import AppState, open_state

HOSTILE = "<script>alert(1)</script>"
PAIRS = [("the cat is eating", "a dog"), ("the sun was big", "the sun was red"), ("a man", "a woman is happy")]


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("probe")
    folders = [write_model(root / name, bert_folder, name, seed) for seed, name in enumerate(GOOD[:2])]
    (root / "broken").mkdir()
    return open_state([*map(str, folders), str(root / "broken")], ())


def test_a_change_moves_a_sentence_as_far_as_its_cosine_says(state):
    rows, failures = perturbed(state, "the dog is happy.")
    assert list(failures) == ["broken"]
    assert [row.changed for row in rows] == [changed for _, changed in changes_of("the dog is happy.")]
    assert ("negated", "the dog is not happy.") in [(row.name, row.changed) for row in rows]
    for column in state.models.columns[:2]:
        encoder = cse.load(column.model)
        reference = random_cosines(encoder.encode(state.demo.sentences[::6]))
        own, other = encoder.encode(["the dog is happy.", rows[0].changed])
        cosine = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
        assert rows[0].moved[column.name] == pytest.approx((1 - cosine) / (1 - np.median(reference)), abs=1e-4)


def test_variants_of_a_visitor_come_first_and_are_measured_alike(state):
    typed = "the dog is not happy.\n\n  a <b>cat</b>  \nthe dog is happy."
    rows, _ = perturbed(state, "the dog is happy.", typed)
    assert [(row.name, row.keeps, row.changed) for row in rows[:3]] == [
        ("variant 1", None, "the dog is not happy."), ("variant 2", None, "a <b>cat</b>"),
        ("variant 3", None, "the dog is happy."),
    ]  # fmt: skip
    assert rows[0].moved == pytest.approx(next(row.moved for row in rows if row.name == "negated"), abs=1e-5)
    assert list(rows[2].moved.values()) == pytest.approx([0, 0], abs=1e-5)
    assert [row[:3] for row in rows[3:]] == [row[:3] for row in perturbed(state, "the dog is happy.")[0]]
    page = moved_html(rows, {})
    assert "No model reacts to variant 3: 0 %" in page
    assert "<b>cat" not in page
    assert page.count("where the meaning is") == 2  # the means are those of the generated changes
    assert variants_of("a\n" * 20) == ["a"] * 20
    for wrong, message in (
        ("a\n" * 21, "Your variants are 21; give at most 20."),
        (["a"], "Your variants is not text"),
    ):
        with pytest.raises(ValueError, match=message):
            perturbed(state, "the dog is happy.", wrong)


def test_the_models_places_of_pairs_are_those_of_their_cosines(state):
    found, failures = disagreeing(state, PAIRS)
    assert list(failures) == ["broken"]
    assert sorted(row.pair for row in found) == [0, 1, 2]
    for column in state.models.columns[:2]:
        first, second = (cse.load(column.model).encode([pair[side] for pair in PAIRS]) for side in (0, 1))
        cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        assert [row.places[column.name] for row in sorted(found)] == (cosines.argsort().argsort() / 2).tolist()


def test_pairs_are_read_line_by_line_and_a_wrong_one_is_named():
    assert lined_pairs("a | b\n\nc\td\n e|f ") == [("a", "b"), ("c", "d"), ("e", "f")]
    assert len(graded_pairs()) == 60
    for lines, message in (
        ("a | b\nc\nd | e", "is not a pair; write"),
        ("a | b\nc | d | e\nf | g", "is not a pair"),
        ("a|b", "3 to"),
    ):
        with pytest.raises(ValueError, match=message):
            lined_pairs(lines)


def test_rows_show_shares_means_and_nothing_as_markup():
    rows = [Moved("negated", False, HOSTILE, {MARKUP: 0.25}), Moved("capitals", True, "A", {MARKUP: 0.0})]
    page = moved_html(rows, {HOSTILE: Failure(HOSTILE)})
    page += disagreements_html([(HOSTILE, "b")], [Disagreement(0, {MARKUP: 0.5}, 0.0)], {})
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("25 %<") == 2  # the row and the mean of those that change the meaning
    assert page.count("0 %") >= 2
    assert "No change applies" in moved_html([], {})
