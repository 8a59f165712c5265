"""The choice: by labels what beats the start by more than the margin, without them the projection, and no collapse."""

import pytest

from cse.adaptation.choice import called, choose, measured, other_reading

SOUND = {"guard": {"concentration": 70.0, "found": 90.0, "cosine": 0.3}}
COLLAPSED = {"guard": {"concentration": 99.0, "found": 10.0, "cosine": 0.999}}


def labelled(points: float, guard: dict = SOUND) -> dict:
    return {**guard, "labels": {"neighbours": points}}


@pytest.mark.parametrize(
    ("candidates", "result"),
    [
        ({"projection": 70.3}, "start"),
        ({"projection": 70.4}, "projection"),
        ({"projection": 71.0, "training": 72.0, "trained-projection": 71.9}, "training"),
        ({"projection": 71.0, "training": 60.0, "trained-projection": 75.0}, "trained-projection"),
        ({"projection": 60.0, "training": 65.0}, "start"),
        ({}, "start"),
    ],
)
def test_with_labels_the_best_that_beats_the_start_is_chosen(candidates: dict, result: str) -> None:
    stages = {"start": labelled(70.0), **{name: labelled(points) for name, points in candidates.items()}}
    choice = choose(stages)
    assert (choice.result, choice.candidate, choice.kept) == (result, None, result == "start")
    assert ("Keep your model" in choice.sentence) == choice.kept
    assert ("no candidate could be used" in choice.sentence) == (not candidates)


def test_another_pooling_counts_where_the_labels_prefer_it_and_it_has_not_collapsed() -> None:
    stages = {"start": labelled(60.0), "reading": {**labelled(70.0), "pooling": "cls"}, "projection": labelled(71.0)}
    choice = choose(stages)
    assert (choice.result, other_reading(stages)) == ("projection", "cls")
    assert choice.sentence.startswith(f"{measured(11.0)} Projection read by cls has 11.0 points more")
    assert called("start", stages) == "your model as it is"
    for other in (labelled(60.2), labelled(70.0, COLLAPSED)):
        unused = {**stages, "reading": {**other, "pooling": "cls"}}
        assert other_reading(unused) is None
        assert called("projection", unused) == "projection"


def test_without_labels_the_projection_is_the_result_and_training_is_left_to_the_user() -> None:
    start = {"start": SOUND, "training": SOUND}
    assert choose({**start, "projection": SOUND, "trained-projection": SOUND}).candidate == "trained-projection"
    alone = choose({**start, "projection": SOUND, "trained-projection": COLLAPSED})
    assert (alone.result, alone.candidate) == ("projection", "training")
    assert "only you can judge" in alone.sentence
    assert "grouped better by labels in 12 of 15 trials" in alone.sentence
    many = choose({"start": SOUND, "projection": {**SOUND, "texts": 1000}})
    assert "grouped better by labels in all of 30 trials" in many.sentence
    spoken = choose({"start": SOUND, "projection": SOUND, "language": SOUND, "training": SOUND})
    assert (spoken.result, spoken.candidate) == ("language", "training")
    assert "the model that learned the words of your texts" in spoken.sentence
    assert choose({"start": SOUND, "projection": SOUND, "language": COLLAPSED}).result == "projection"
    left = choose({"start": SOUND, "projection": SOUND, "training": {"left_out": "no time"}})
    assert (left.result, left.candidate) == ("projection", None)
    kept = choose({"start": SOUND, "projection": COLLAPSED, "training": SOUND})
    assert (kept.result, kept.candidate, kept.kept) == ("start", "training", True)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ({"start": labelled(70.0), "projection": labelled(72.6)}, "Groups by your labels better; finding was not"),
        (
            {"start": labelled(70.0), "projection": labelled(70.2)},
            "Groups by your labels equally well; finding was not",
        ),
        ({"start": labelled(70.0), "projection": labelled(60.0)}, "Groups by your labels worse; finding was not"),
        ({"start": labelled(70.0)}, "Neither grouping nor finding was"),
        ({"start": SOUND, "projection": SOUND}, "Neither grouping nor finding was"),
        ({"start": SOUND, "training": SOUND}, "Neither grouping nor finding was"),
    ],
)
def test_the_verdict_says_first_what_was_measured(stages: dict, said: str) -> None:
    assert choose(stages).sentence.startswith(f"{said} measured. ")


def test_what_has_collapsed_is_never_chosen() -> None:
    choice = choose({"start": labelled(70.0), "projection": labelled(99.0, COLLAPSED), "training": labelled(71.0)})
    assert choice.result == "training"
