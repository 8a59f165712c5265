"""Near-duplicates in the page: the groups are those of the command, the slider searches nothing, texts are escaped."""

import csv
import io
import random
from dataclasses import replace

import numpy as np
import pytest
from app_models import write_model
from command_line import run
from conftest import WORDS
from given_corpus import GivenCorpus

from cse.analysis.duplicates import Member, Place, threshold
from cse.app.duplicates import near_duplicates
from cse.app.duplicates.groups_html import SHOWN, groups_html, numbers_html
from cse.app.duplicates.near_duplicates import (
    PER_PAGE,
    Page,
    advised_place,
    column_of,
    find,
    groups_csv,
    groups_of_all,
    kept_csv,
    percentile_of,
)
from cse.app.state.app_state import AppState, open_state
from cse.app.validation import FieldError

HOSTILE = "<img src=x onerror=alert(1)>"


def made_texts() -> list[str]:
    """120 random texts, 40 copies with a word changed, 12 exact ones, and a formula twice."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS[:40], k=7)) for _ in range(120)]
    near = [f"{text.rsplit(' ', 1)[0]} {rng.choice(WORDS[:40])}" for text in texts[:40]]
    found = [*texts, *near, *texts[:12], "=1+1 the dog", "=1+1 the dog"]
    rng.shuffle(found)
    return found


TEXTS = made_texts()


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("near")
    write_model(root / "simcse", bert_folder, "simcse")
    (root / "broken").mkdir()
    return open_state([str(root / "simcse"), str(root / "broken")], ())


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(("nines", "keep"), [(3.0, "first"), (3.4, "longest"), (5.0, "central")])
def test_the_tables_hold_what_the_command_writes(state, tmp_path, nines, keep) -> None:
    chosen, column = GivenCorpus(TEXTS), column_of(state, "simcse")
    find(state, chosen, column)
    groups = groups_of_all(state, chosen, column, nines, keep).groups
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    outputs = ("--output", tmp_path / "kept.csv", "--groups", tmp_path / "groups.csv", "--keep", keep)
    done = run(
        "duplicates", tmp_path / "texts.txt", "--model", column.model, "--percentile", percentile_of(nines), *outputs
    )
    assert done.exit_code == 0, done.output
    assert len(groups) > 5
    assert table(groups_csv(chosen, groups)) == table((tmp_path / "groups.csv").read_text())
    kept = table(kept_csv(chosen, groups))
    with (tmp_path / "kept.csv").open(newline="") as opened:
        assert [TEXTS[int(row["row"]) - 1] for row in kept] == [row["text"] for row in csv.DictReader(opened)]
    assert {"=1+1 the dog"} == {row["text"] for row in kept if "=1+1" in row["text"]}
    assert [*table(kept_csv(GivenCorpus(["a", "=b"], ["x", "-y"]), []))[1].values()] == ["2", "=b", "-y"]


def test_the_slider_searches_nothing_again_and_counts_what_the_groups_hold(state, monkeypatch) -> None:
    chosen, column = GivenCorpus(TEXTS[:150]), column_of(state, "simcse")
    found = find(state, chosen, column)
    monkeypatch.setattr(near_duplicates, "searched", None)
    assert find(state, chosen, column) is found
    vectors = state.models.apply(chosen.vectors, [column])["simcse"]
    distinct = vectors[[TEXTS[:150].index(text) for text in dict.fromkeys(TEXTS[:150])]]
    for nines in (3.0, 3.7, 5.0, 7.0):
        page = groups_of_all(state, chosen, column, nines, "first")
        assert page.place.cosine == pytest.approx(threshold(distinct, percentile_of(nines), seed=42))
        gone = sum(len(group) - 1 for group in page.groups)
        assert (page.place.kept, page.place.groups) == (150 - gone, len(page.groups))
        assert page.place.largest == max(map(len, page.groups))
    every = groups_of_all(state, chosen, column, 3.0, "first").groups
    last = groups_of_all(state, chosen, column, 3.0, "first", page=999)
    assert last.groups == every[last.first :]
    assert (last.first % PER_PAGE, 0 < len(last.groups) <= PER_PAGE < len(every)) == (0, True)


def test_many_texts_have_a_higher_least_place_and_the_slider_stays_there(state, monkeypatch) -> None:
    texts = [f"{first} {second} {third}" for first in WORDS[:20] for second in WORDS[:20] for third in WORDS[:20]]
    vectors = np.random.default_rng(0).normal(size=(len(texts), 16)).astype(np.float32)
    found = near_duplicates.searched(texts, vectors)
    assert found.places[0].nines == pytest.approx(3.7)  # 2 of 8,000 random pairs of a text
    assert found.at(3.0) == found.places[0]
    places = [advised_place(replace(found, advised=advised)) for advised in (3.0, 5.0, 5.63, 9.0)]
    assert places == pytest.approx([3.7, 5.0, 5.7, 7.0])
    assert "With so many texts 3.7 is the minimum" in numbers_html(found, 3.0, HOSTILE)
    assert HOSTILE not in numbers_html(found, 3.0, HOSTILE)
    assert "estimate" not in numbers_html(found, 6.2, HOSTILE)  # 1 of 1.6 million, of the 2 million pairs of a sample
    assert "or more in SimCSE, an estimate: rarer than one of all compared pairs." in numbers_html(found, 6.4, "simcse")


def test_bad_input_is_refused_in_one_line(state) -> None:
    column = column_of(state, "simcse")
    with pytest.raises(FieldError, match="The corpus has 1 text; near-duplicates need at least 2"):
        find(state, GivenCorpus(["a dog"]), column)
    with pytest.raises(FieldError, match="broken: ") as caught:
        find(state, GivenCorpus(TEXTS), column_of(state, "broken"))
    assert caught.value.field == "The model"
    with pytest.raises(FieldError, match="not searched yet; press Find groups"):
        groups_of_all(state, GivenCorpus(["new", "texts"]), column, 5, "first")
    same = GivenCorpus(["a dog"] * 30)
    find(state, same, column)
    for nines, keep in ((2, "first"), (5, "best"), ("5", "first")):
        with pytest.raises(FieldError):
            groups_of_all(state, same, column, nines, keep)
    (group,) = groups_of_all(state, same, column, 7, "central").groups
    assert [member.kept for member in group] == [True] + [False] * 29


def test_a_search_that_nobody_waits_for_ends(state, monkeypatch) -> None:
    monkeypatch.setattr(near_duplicates, "client_left", lambda: True)
    with pytest.raises(ValueError, match="The client has left"):
        find(state, GivenCorpus(TEXTS[:40]), column_of(state, "simcse"))


def test_groups_are_escaped_and_their_differences_marked() -> None:
    texts = [f"the dog {HOSTILE} barks", f"the cat {HOSTILE} barks loudly", *[f"{HOSTILE} {n}" for n in range(20)]]
    pair = [Member(0, True, 1.0, "the first"), Member(1, False, 0.93, "near the kept row")]
    many = [Member(row, row == 2, 0.9, "the first") for row in range(2, 22)]
    shown = groups_html(Page(Place(5, 99.999, 0.9, 2, 2, 20), 10, [pair, many], 12), texts, range(1, 23))
    assert HOSTILE not in shown
    assert "<del>dog</del> <ins>cat</ins>" in shown
    assert "<ins>loudly</ins>" in shown
    apart = [Member(1, True, 1.0, "the first"), Member(0, False, 0.7, "linked to the kept row through others")]
    other = ["two texts with hardly a word in common", "the weather is fine in two towns today"]
    assert "<del>" not in groups_html(Page(Place(3, 99.9, 0.6, 1, 1, 2), 0, [apart], 1), other, [1, 2])
    assert "Groups 11 to 12 of 12" in shown
    assert shown.count("<li>") == 2 + SHOWN
    assert f"{20 - SHOWN} more; Groups CSV has them all." in shown
