"""The verdict on grouping and finding: four cases, purposes, offers, and texts without labels."""

import pytest

from cse.adaptation.candidates import left_out
from cse.adaptation.choice import choose

NOISE = 0.5  # half of an interval


def stages(gains: dict[str, tuple[float | None, float]]) -> dict:
    """Finished stages whose candidates gain so many points at grouping (None: no labels) and finding."""
    made: dict = {"start": {"scores": {}}}
    for name, (grouping, finding) in gains.items():
        axes = {"grouping": grouping, "finding": finding} if grouping is not None else {"finding": finding}
        scores = {"scores": {}, "gains": {axis: [gain, gain - NOISE, gain + NOISE] for axis, gain in axes.items()}}
        stage, _, variant = name.partition(" ")
        if variant:
            made.setdefault(stage, {}).setdefault("variants", {})[variant] = scores
        else:
            made[stage] = {**scores, "pooling": "cls"}
    return made


TRADE = {"projection 0": (17.1, -23.0), "projection -0.25": (-4.0, 0.8)}


@pytest.mark.parametrize(
    ("gains", "purpose", "result", "sentence"),
    [
        (
            {"projection 0": (2.1, 1.0), "projection 0.25": (2.5, -0.2)}, "both", "projection 0",
            "Better at grouping (+2.1), better at finding (+1.0): use the new model. It was made by projection.",
        ),
        (
            TRADE, "both", "start",
            "Keep your model, or give up one thing for the other. Projection: better at grouping (+17.1), worse at "
            "finding (-23.0): `--for groups` takes it. Projection, dial -0.25: worse at grouping (-4.0), better at "
            "finding (+0.8): `--for search` takes it.",
        ),
        (
            TRADE, "groups", "projection 0",
            "Better at grouping (+17.1), worse at finding (-23.0): use the new model. It was made by projection.",
        ),
        (
            {"projection 0": (0.5, 0.0), "training": (0.2, -3.0)}, "both", "start",
            "No better: keep your model. The best candidate, projection: level at grouping (+0.5), level at finding "
            "(+0.0).",
        ),
        ({}, "both", "start", "Neither grouping nor finding was measured. Keep your model: no candidate could be "
         "used."),
    ],
)  # fmt: skip
def test_the_verdict_says_what_was_gained_and_lost(gains, purpose, result, sentence):
    choice = choose(stages(gains), purpose)
    assert (choice.result, choice.sentence) == (result, sentence)
    assert choice.candidate == ("projection 0" if gains is TRADE and result == "start" else None)


def test_what_is_offered_is_what_its_option_takes():
    tried = stages({"projection 0": (-3.0, 2.0), "projection -0.25": (-3.0, 3.0)})
    tried["projection"]["variants"]["-0.25"]["gains"]["finding"] = [3.0, -0.2, 6.2]  # perhaps by chance
    choice = choose(tried)
    assert "Projection: worse at grouping (-3.0), better at finding (+2.0): `--for search` takes it." in choice.sentence
    assert choice.candidate == choose(tried, "search").result == "projection 0"


def test_the_verdict_says_what_the_time_was_not_enough_for():
    made = stages(TRADE)
    made["start"] |= {"texts": 436, "wanted": 1148}
    assert choose(made, "groups").sentence.endswith(
        "projection. The time was enough for 436 of 1,148 texts to fit on: more minutes may answer otherwise."
    )
    made["start"]["texts"] = 1148
    made["training"] = left_out("training took longer than the time that was left", out_of_time=True)
    assert choose(made, "groups").sentence.endswith("projection. Training did not fit in the time: try more minutes.")
    made["training"] = left_out("8 batches of training do not fit in the time", out_of_time=True, minutes=7)
    assert choose(made, "groups").sentence.endswith("projection. Training did not fit in the time: try 7 minutes.")


def test_without_labels_finding_decides_and_the_last_that_finds_as_well_is_left_to_the_user():
    better = choose(stages({"projection -0.25": (None, 0.8), "projection 0": (None, -0.9), "training": (None, -2.0)}))
    assert (better.result, better.candidate) == ("projection -0.25", "projection 0")
    assert better.sentence == (
        "Better at finding (+0.8): use the new model. It was made by projection, dial -0.25. "
        "Grouping was not measured, as there are no labels: only you can judge it."
    )
    kept = choose(stages({"projection 0": (None, -0.9), "training": (None, 0.1)}))
    assert (kept.result, kept.candidate) == ("start", "training")
    assert kept.sentence.startswith("No better: keep your model. The best candidate, training: level at finding (+0.1)")
    assert choose(stages({"projection 0": (None, -1.1)})).candidate is None
