"""Clusters: maps, groups, changes and near-duplicates are those of independent computations; texts are escaped."""

import base64
import csv
import io
import json
import random
import re
from collections import Counter
from datetime import date
from html import unescape
from itertools import combinations

import gradio as gr
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from app_models import GOOD, MARKUP, write_model
from command_line import run
from conftest import WORDS
from given_corpus import GivenCorpus
from page_state import KEY, put_table

from cse.analysis.duplicates import thresholds
from cse.app.files import WIDTHS, as_json, figure
from cse.app.html import LIGHT
from cse.app.models.naming import title
from cse.app.places.clusters import (
    Clusters,
    canvas_value,
    first_maps,
    selected_rows,
    selection,
    selection_html,
)
from cse.app.result import by_models
from cse.app.results import duplicates
from cse.app.results.colourings import MARKS, SHAPES, by_fifths, by_group, looks_of
from cse.app.results.duplicates import Duplicates, percentile_of, tables
from cse.app.results.groups import Groups, Neighbours
from cse.app.results.map import (
    HEIGHT,
    LETTER,
    SIDE,
    WIDTH,
    Map,
    colourings_of,
    fitted_counts,
    names_on,
    pair_of,
    titles_of,
)
from cse.app.show import Answer, page_html, read_first
from cse.app.state import AppState, Session, open_session, open_state
from cse.app.validation import FieldError
from cse.corpus.output import csv_text
from cse.evaluation.clustering import neighbour_values
from cse.models.names import BUNDLED_NAMES

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def made_texts() -> list[str]:
    """120 random texts, 40 copies with a word changed, 12 exact ones, and a formula twice."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS[:40], k=7)) for _ in range(120)]
    near = [f"{text.rsplit(' ', 1)[0]} {rng.choice(WORDS[:40])}" for text in texts[:40]]
    made = [*texts, *near, *texts[:12], "=1+1 the dog", "=1+1 the dog"]
    rng.shuffle(made)
    return made


TEXTS = made_texts()
LABELS = ["pets", "food", ""] * 58


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("clusters")
    models = [str(write_model(root / name, bert_folder, name, seed)) for seed, name in enumerate(GOOD[:3])]
    (root / "broken").mkdir()
    return open_state([*models, str(root / "broken")], ())


def session_of(state: AppState, texts=TEXTS, labels=None, names=GOOD[:3]) -> Session:
    corpus = GivenCorpus(texts, labels)
    return Session(state, corpus, corpus, tuple(each for each in state.models.columns if each.name in names))


@pytest.fixture(scope="module")
def drawn(state) -> pd.DataFrame:
    return Map(groups=4).frame(session_of(state, labels=LABELS))


def vectors_of(state: AppState, name: str, texts=TEXTS) -> np.ndarray:
    (column,) = (each for each in state.models.columns if each.name == name)
    vectors = state.models.encoder(column).encode(texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_map_has_the_nearest_texts_label_neighbours_and_disagreement_of_the_vectors(state, drawn) -> None:
    near, first = {}, np.array([TEXTS.index(text) for text in TEXTS])  # of copies the first is near to other texts
    for name, rows in by_models(drawn).items():
        cosines = vectors_of(state, name) @ vectors_of(state, name).T
        np.fill_diagonal(cosines, -9)
        near[name] = rows["near"].tolist()
        for row, positions in enumerate(near[name]):
            others = np.flatnonzero((first == np.arange(len(TEXTS))) & (first != first[row]))
            assert set(positions) <= set(others)
            assert sorted(cosines[row][positions]) == pytest.approx(np.sort(cosines[row][others])[-5:], abs=1e-5)
        known = [row for row, label in enumerate(LABELS) if label]
        best = np.argsort(-cosines[np.ix_(known, known)], axis=1, kind="stable")[:, :5]
        gold = np.array(LABELS)[known]
        assert rows["same_topic"].iloc[0] == pytest.approx((gold[best] == gold[:, None]).mean(), abs=0.02)
    for name, rows in by_models(drawn).items():
        lacking = [
            np.mean([1 - len({*mine} & {*near[other][row]}) / 5 for other in near if other != name])
            for row, mine in enumerate(near[name])
        ]
        assert rows["disagreement"].tolist() == pytest.approx(lacking)
    assert drawn[["x", "y"]].to_numpy().min() >= 0
    assert drawn[["x", "y"]].to_numpy().max() <= 1


def test_the_figure_has_the_maps_of_the_page_in_their_order_and_its_colours_and_no_text(drawn) -> None:
    def shown(asked: Map) -> tuple[list[str], str]:
        drawing = figure(Answer(asked, drawn, {}), "svg").decode()
        assert not any(text in unescape(drawing) for text in drawn["text"])
        texts = re.findall(r">([^<>]+)</text>", drawing)
        return [name for name in texts if name in map(title, drawn["model"])], drawing

    names, drawing = shown(Map(groups=4))
    assert names == ["SimCSE", "PromptBERT"]
    assert {colour in drawing for colour in LIGHT[:4]} == {True}
    names, drawing = shown(Map(groups=4, maps="dcpcse,simcse", colour="Label"))
    assert names == ["DCPCSE", "SimCSE"]
    assert [name in drawing for name in ("food", "no label", drawn["name"].iloc[0])] == [True, True, False]
    assert drawing.count(">food</text>") == 1 + 2 * 2  # in the legend, and with its halo on each map
    by = Map(groups=4, colour="Disagreement")
    assert "of 5 nearest differ" in shown(by)[1]
    assert "SimCSE and PromptBERT do not share" in by.facts(drawn)[0]
    filtered = Map(points=(0, 1), sought="a dog", entry="food")
    assert "the 2 selected texts (“a dog”, food) are dark" in filtered.facts(drawn)[0]
    for width in WIDTHS.values():  # in points
        drawing = figure(Answer(Map(groups=4), drawn, {}), "svg", width).decode()
        assert float(re.search(r' width="([0-9.]+)pt"', drawing)[1]) == pytest.approx(width * 72 / 25.4, rel=0.04)


def test_names_on_a_figure_stand_at_most_of_their_points_and_never_over_each_other(drawn) -> None:
    points, colouring = drawn.assign(entry=drawn["group"] - 1), by_group(drawn)
    names = names_on(points, colouring)
    assert set(names["model"]) == set(drawn["model"])
    for _, (model, name, x, y) in names.iterrows():
        own = drawn[(drawn["model"] == model) & (drawn["group"] == colouring.short.index(name) + 1)]
        assert (np.hypot(own["x"] - x, own["y"] - y) < 0.25).mean() >= 0.3  # it stands among its points
        others = names[(names["model"] == model) & (names["name"] != name)]
        wide = (others["name"].str.len() + len(name)) * LETTER * WIDTH / SIDE / 2
        assert not ((abs(others["x"] - x) < wide) & (abs(others["y"] - y) < LETTER * HEIGHT / SIDE - 1e-9)).any()


def test_a_group_has_two_words_of_its_name_on_a_map_where_no_other_group_begins_with_them() -> None:
    names = ["cash bank loan", "leaves plants grow", "leaves plants seed", "group 4"]
    frame = pd.DataFrame({"model": "simcse", "group": [1, 2, 3, 4], "name": names})
    assert by_group(frame).short == ["cash bank", "leaves plants grow", "leaves plants seed", "group 4"]


def test_a_figure_is_faint_where_a_text_is_not_selected(drawn) -> None:
    asked = Map(groups=4, points=[2, 7])
    (spec,) = asked.charts(drawn)
    dark = [point for point in spec["data"]["values"] if point["chosen"]]
    rows = by_models(drawn)["simcse"].iloc[[2, 7]]
    assert [(point["x"], point["y"]) for point in dark[:2]] == list(zip(rows["x"], rows["y"], strict=True))
    assert "the 2 selected texts are dark" in asked.facts(drawn)[0]


def test_groups_have_one_number_and_name_in_two_maps_only_if_they_share_their_texts(drawn) -> None:
    assert set(drawn.groupby("group")["name"].nunique()) == {1}
    groups = [rows["group"].to_numpy() for rows in by_models(drawn).values()]
    assert len(np.unique(groups[0])) == 4
    alike = [
        ((one == number) & (other == number)).sum() / ((one == number) | (other == number)).sum()
        for one, other in combinations(groups, 2)
        for number in np.intersect1d(one, other)
    ]
    assert alike
    assert min(alike) > 0.2  # of the first map that has the group they share a third or more


def test_no_two_groups_of_a_map_have_one_name() -> None:
    assert titles_of([["a", "b", "c", "d"], [], ["a", "b", "c", "d"], ["a", "b", "c"], ["a", "b", "c", "d", "e"]]) == [
        "a b c", "group 2", "a b c d", "a b c (4)", "a b c e",
    ]  # fmt: skip


def test_groups_tell_typical_and_odd_texts_and_what_other_models_do(state, drawn) -> None:
    groups = Groups("simcse").of_map(drawn)
    models, unit = by_models(drawn), vectors_of(state, "simcse")
    for line in groups.to_dict("records"):
        members = np.flatnonzero(models["simcse"]["group"] == line["group"])
        cosines = unit[members] @ unit[members].mean(axis=0)
        assert line["size"] == len(members)
        at = dict(zip(members.tolist(), cosines.tolist(), strict=True))  # equal texts are alike
        assert at[line["typical"][0]] == pytest.approx(cosines.max(), abs=1e-5)
        assert at[line["odd"][0]] == pytest.approx(cosines.min(), abs=1e-5)
        for other, parts in line["elsewhere"].items():
            there = models[other]["group"].to_numpy()[members]
            assert parts[0]["count"] == np.bincount(there).max()
            assert (there == parts[0]["group"]).sum() == parts[0]["count"]
        labels = Counter(np.array(LABELS)[members].tolist())
        assert line["share"] == pytest.approx(labels[line["label"]] / len(members))  # also of those without a label
        assert line["unlabelled"] == pytest.approx(labels[""] / len(members))
    assert set(Groups().of_map(drawn)["model"]) == set(GOOD[:3])


def test_label_neighbours_are_of_the_labels_of_the_texts_and_not_of_those_that_another_corpus_gave_them(state, drawn):
    labels = ["one", "two", "three", "one", "four", "five"] * 29
    session = session_of(state, labels=labels)
    session.corpus.number = 1
    for name, rows in by_models(Map(groups=4).frame(session)).items():
        fresh = neighbour_values(vectors_of(state, name), np.unique(labels, return_inverse=True)[1]).mean()
        assert rows["same_topic"].iloc[0] == pytest.approx(fresh) != by_models(drawn)[name]["same_topic"].iloc[0]


def test_a_model_before_its_training_was_fitted_on_nothing(state, monkeypatch) -> None:
    monkeypatch.setattr("cse.app.results.map.fitted_count", lambda model, texts: 3)
    session = open_session(state, models=["simcse (before)", "simcse"])
    assert fitted_counts(session, TEXTS) == {"simcse": 3}


def test_a_pinned_text_is_that_of_the_corpus_where_the_maps_have_some_of_its_texts(drawn) -> None:
    positions = np.arange(len(TEXTS)) * 2
    assert canvas_value(drawn, pin=20, positions=positions)["pin"] == 10
    assert canvas_value(drawn, pin=21, positions=positions)["pin"] == -1
    assert canvas_value(drawn, positions=positions)["positions"][10] == 20


def test_maps_have_as_many_groups_as_there_are(drawn) -> None:
    value = canvas_value(drawn.assign(group=drawn["group"] + 299))
    assert np.frombuffer(base64.b64decode(value["maps"][0]["of"]), "<u2").min() == 299


def test_no_map_has_no_groups_and_a_date_is_saved_as_text(drawn) -> None:
    assert Groups().of_map(pd.DataFrame()).empty
    saved = as_json(Answer(Map(), drawn.head(2).assign(day=[date(2026, 1, 2), None]), {}))
    assert [row["day"] for row in json.loads(saved)["rows"]] == ["2026-01-02", None]


def test_models_of_an_address_keep_their_places_while_maps_are_drawn(drawn) -> None:
    partly = drawn[drawn["model"] == "simcse"]
    value = canvas_value(partly, shown=["promptbert", "simcse"], drawing=True)
    assert (value["shown"], value["picked"], value["drawing"]) == (["promptbert", "simcse"], True, True)
    assert [made["name"] for made in value["maps"]] == ["simcse"]
    assert canvas_value(partly)["shown"] == ["simcse"]


def test_copies_of_a_text_are_one_typical_text_and_texts_without_a_label_are_told(drawn) -> None:
    rows = by_models(drawn)["simcse"].assign(group=1, name="pets", label=["pets", ""] * 87)
    rows["text"] = [f"text {int(min(rank, 3))}" for rank in rows["typicality"].rank(ascending=False, method="first")]
    groups = Groups("simcse").of_map(rows)
    assert groups["typical_texts"].item() == ["text 1", "text 2", "text 3"]
    assert groups["odd"].item() == []
    shown = page_html(Answer(Groups(), groups, {}))
    assert "174, 50 % pets, 50 % no label" in shown


def test_no_two_groups_of_a_map_have_one_colour_and_those_of_other_maps_have_another_shape() -> None:
    in_model = {"first": range(1, 13), "second": [1, 2, 3, 13, 14, 15], "third": [4, 13, 16]}
    rows = [(model, group) for model, groups in in_model.items() for group in groups]
    looks = looks_of(pd.DataFrame(rows, columns=["model", "group"]))
    assert [looks[group] for group in range(1, 13)] == [(at, at % 4) for at in range(12)]  # as in one map alone
    for groups in in_model.values():
        assert len({looks[group][0] for group in groups}) == len(groups)
    assert len(set(looks.values())) == len(looks)
    hue, shape = looks[13]
    assert MARKS[shape] == f"hollow {SHAPES[hue % 4]}"  # the group of that number has the hue, and is full


def test_changes_count_the_common_neighbours_and_begin_with_the_texts_that_change_most(drawn) -> None:
    asked = Neighbours("promptbert", "dcpcse")
    changed, models = asked.of_map(drawn), by_models(drawn)
    shared = [
        len({*one} & {*other})
        for one, other in zip(models["promptbert"]["near"], models["dcpcse"]["near"], strict=True)
    ]
    assert changed.set_index("position")["shared"].sort_index().tolist() == shared
    assert changed["shared"].is_monotonic_increasing
    assert [bar["texts"] for bar in asked.view(changed)["bars"]] == [shared.count(number) for number in range(6)]
    assert asked.answer(changed)["shared"] == pytest.approx(np.mean(shared) / 5)
    page = page_html(Answer(asked, changed, {}))
    for number in range(6):
        assert f'{number} of 5 shared: {shared.count(number)} texts"' in page
    listed = changed.drop_duplicates("text").head(6)  # copies change alike
    assert page.count('class="cse-both"') == 2 * sum(listed["shared"])
    assert re.findall(r'cse-change"><button[^>]*>([^<]+)<', page) == listed["text"].tolist()


def test_the_maps_compared_are_the_named_ones_else_the_newest_model_with_its_start() -> None:
    names = ["a", "b (before)", "b", "mine (before)", "mine"]
    assert pair_of(names[:1]) == ("a", "")
    assert pair_of(["a", "c"]) == ("a", "c")
    assert pair_of(names) == ("mine (before)", "mine")
    assert pair_of(names, "a", "b") == ("a", "b")


def test_maps_come_one_by_one_are_kept_and_a_broken_model_is_told(state, monkeypatch) -> None:
    session = session_of(state, TEXTS[:40], names=(*GOOD[:3], "broken"))
    shown = [list(frame["model"].unique()) for frame in Map(groups=3).frames(session)]
    assert shown == [["simcse"], ["simcse", "promptbert"], [*GOOD[:3]], [*GOOD[:3]]]
    assert "config.json" in session.failed["broken"]
    steps = Clusters(state).draw(3, 9999, 42, "", "", "", "", "", "", 0, "demo", [*GOOD[:2]], "")
    marks = [step[-1] for step in steps if isinstance(step[-1], tuple)]
    assert [len(mark) for mark in marks] == [1, 5]  # half drawn maps are not taken for whole ones
    monkeypatch.setattr("cse.analysis.maps.embed", None)  # would fail if anything were drawn again
    again = session_of(state, TEXTS[:40], names=GOOD[:3])
    assert set(Map(groups=3).frame(again)["model"]) == set(GOOD[:3])


def test_the_endpoint_has_the_json_of_the_frame(state, drawn) -> None:
    frame = Map(groups=3).frame(session_of(state, TEXTS[:30], names=GOOD[:2]))
    answer = json.loads(json.dumps(Map().answer(frame), allow_nan=False))
    assert (answer["labels"], answer["texts"]) == (None, TEXTS[:30])
    for name, rows in by_models(frame).items():
        made = answer["maps"][name]
        assert made["xy"] == rows[["x", "y"]].to_numpy().tolist()
        assert made["near"] == rows["near"].tolist()
        assert [number + 1 for number in made["groups"]["of"]] == rows["group"].tolist()
        assert len(made["groups"]["words"]) == rows["group"].max()
    assert Map().answer(drawn)["labels"] == LABELS


def test_texts_are_data_on_the_canvas_and_escaped_beside_it(state) -> None:
    texts = [f"{HOSTILE} {word}" for word in WORDS[:24]]
    corpus = GivenCorpus(texts, [HOSTILE] * 24)
    corpus.table = pa.table({"text": [HOSTILE] * 24})
    session = Session(state, corpus, corpus, state.models.columns[:2])
    frame = Map(groups=3).frame(session)
    assert json.loads(json.dumps(canvas_value(frame)))["texts"] == texts
    pages = [
        page_html(Answer(Map(), frame, {}, {MARKUP: HOSTILE})), page_html(Answer(Groups(), Groups().of_map(frame), {})),
        page_html(Answer(Neighbours(), Neighbours().of_map(frame), {})), selection_html(frame, [0, 5]),
    ]  # fmt: skip
    near = Duplicates(nines=3.0)
    pages.append(page_html(Answer(near, near.frame(session), {})))
    for page in pages:
        assert "<script" not in page
        assert "<img" not in page


def test_the_selection_has_all_columns_and_the_group_in_every_model(drawn) -> None:
    table = selection(drawn, [2, 7])
    assert list(table.columns) == [
        "row", "text", "label", "group of SimCSE", "group of PromptBERT", "group of DCPCSE"
    ]  # fmt: skip
    assert table[["row", "text", "label"]].to_numpy().tolist() == [[3, TEXTS[2], ""], [8, TEXTS[7], "food"]]
    with pytest.raises(FieldError, match="A point must be a whole number from 0 to 8"):
        selected_rows([9], 9)


def test_labels_that_are_a_column_stand_once_under_its_name(drawn) -> None:
    with_table = drawn.assign(queue=[f" {label}" if label else None for label in drawn["label"]], stars="1")
    assert [one.title for one in colourings_of(drawn)] == ["Label", "Length"]
    assert [one.title for one in colourings_of(with_table)] == ["queue", "stars", "Length"]
    assert list(selection(with_table, [2, 7]).columns)[:4] == ["row", "text", "queue", "stars"]
    for frame in (drawn, with_table):
        assert "Labels: food 1, 1 without" in selection_html(frame, [2, 7])


def test_numbers_and_dates_of_a_column_are_coloured_in_order_by_fifths() -> None:
    def told(cells: list[str]) -> tuple[list[str], list[int], int] | None:
        made = by_fifths("Size", pd.Series(cells))
        return made and (made.names, made.of.tolist(), made.missing)

    numbers = [f"{number / 2:g}".replace(".", ",") for number in range(20)]
    names = ["0 to 1,5", "2 to 3,5", "4 to 5,5", "6 to 7,5", "8 to 9,5"]
    assert told(numbers) == (names, [number // 4 for number in range(20)], -1)
    assert told([*numbers[::-1], ""]) == ([*names, "no size"], [*(number // 4 for number in range(19, -1, -1)), 5], 5)
    days = [f"2025-0{month}-0{day}T09:00:00" for month in (1, 2) for day in range(1, 9)]
    assert told(days)[0][0] == "2025-01-01 to 2025-01-04"
    mixed = [f"{day}.2.2025" for day in range(1, 10)] + [f"2025-01-{day}" for day in range(10, 20)]
    assert told(mixed)[0][0] == "2025-01-10 to 2025-01-13"
    assert told(["5", "1", "3"] * 9)[:2] == (["1", "3", "5"], [2, 0, 1] * 9)  # stars
    assert told(["a", "b"] * 9) is None


def test_the_shipped_maps_are_kept_as_if_they_were_drawn(monkeypatch) -> None:
    state = open_state(BUNDLED_NAMES, ())
    first = first_maps(state)
    assert first is not None
    assert set(first.models) == set(BUNDLED_NAMES)
    session = open_session(state)
    assert Map().frame(session) is first.frame
    assert session.models == first.models
    assert read_first(state, Map).frame["text"].tolist()[:1200] == state.demo.texts
    monkeypatch.setattr("cse.analysis.maps.embed", None)  # would fail if anything were drawn again
    some = open_session(state, models=["simcse", "conpvp"])
    maps, known = by_models(Map().frame(some)), by_models(first.frame)
    for name, rows in maps.items():
        for axis in "xy":  # the scale is that of the models shown
            assert np.corrcoef(rows[axis], known[name][axis])[0, 1] == pytest.approx(1)
        assert rows["near"].tolist() == known[name]["near"].tolist()
        assert rows["same_topic"].iloc[0] == known[name]["same_topic"].iloc[0]


def as_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_tables_of_near_duplicates_hold_what_the_command_writes(state, tmp_path) -> None:
    session, nines, keep = session_of(state), 3.4, "longest"
    frame = Duplicates("simcse", nines, keep).frame(session)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    outputs = ("--output", tmp_path / "kept.csv", "--groups", tmp_path / "groups.csv", "--keep", keep)
    model = state.models.columns[0].model
    done = run("duplicates", tmp_path / "texts.txt", "--model", model, "--percentile", percentile_of(nines), *outputs)
    assert done.exit_code == 0, done.output
    made = {name: as_rows(csv_text(*table)) for name, table in tables(frame, session).items()}
    groups = [{**row, "group": ""} for row in as_rows((tmp_path / "groups.csv").read_text())]
    key = lambda row: int(row["row"])  # noqa: E731
    assert sorted(({**row, "group": ""} for row in made["groups.csv"]), key=key) == sorted(groups, key=key)
    kept = as_rows((tmp_path / "kept.csv").read_text())
    assert [row["text"] for row in made["unique.csv"]] == [row["text"] for row in kept]


def test_near_duplicates_and_changes_show_and_save_the_columns_of_the_table(state) -> None:
    ids = [f"T-{number}" for number in range(len(TEXTS))]
    rows = pa.table(
        {"id": ids, "body": TEXTS, "kind": ["pet"] * len(TEXTS), "cosine": ids[::-1], "priority": [None, 1, 2] * 58}
    )
    put_table(state, rows)
    shared = "own", list(GOOD[:2]), KEY
    _, _, *begun, mark = Clusters(state).near(True, ("other texts",), 0.0, GOOD[0], "first", "1", *shared)
    assert begun[-1] == ""  # a group of other texts was rejected
    assert Clusters(state).near(True, mark, 4.0, GOOD[0], "first", "1", *shared)[-2] == gr.skip()
    session = open_session(state, "own", KEY, list(GOOD[:2]))
    asked = Duplicates(GOOD[0], 3.7)
    frame = asked.frame(session)
    for name, table in tables(frame, session).items():
        saved = as_rows(csv_text(*table))
        further = "cosine " if name == "groups.csv" else "cosine"
        positions = [int(row["row"]) - 1 for row in saved]
        assert [(row["id"], row[further], row["priority"]) for row in saved] == [
            (ids[position], ids[-1 - position], ("", "1", "2")[position % 3]) for position in positions
        ]
        assert len(saved) > 10
        assert saved[0]["body" if name == "unique.csv" else "text"] == TEXTS[positions[0]]
    member = asked.answer(frame)["page"][0][0]
    assert f"row {member['number']} · id: {ids[member['row']]} · kind: pet" in page_html(Answer(asked, frame, {}))
    changes = Neighbours(most=100)
    frame = changes.of_map(Map(most=100, groups=3).frame(session))
    line = changes.answer(frame)["texts"][0]
    assert f"row {line['row']} · id: {ids[line['row'] - 1]} · kind: pet" in page_html(Answer(changes, frame, {}))
    state.own_corpora.remove(KEY)


def test_groups_come_by_certainty_exact_ones_apart_and_a_rejected_one_keeps_its_texts(state) -> None:
    session, asked = session_of(state), Duplicates("simcse", 3.7)
    frame = asked.frame(session)
    unit = vectors_of(state, "simcse")
    near = frame[~frame["exact"]]
    assert near["expected"].is_monotonic_increasing
    assert all(members["text"].nunique() == 1 for _, members in frame[frame["exact"]].groupby("group"))
    _, pair = next(each for each in near.groupby("group") if len(each[1]) == 2)
    one, other = pair["position"]
    assert pair["weakest"].iloc[0] == pytest.approx(unit[one] @ unit[other], abs=1e-5)
    distinct = len(dict.fromkeys(TEXTS))
    pairs = distinct * (distinct - 1) / 2
    assert frame.attrs["expected"] == pytest.approx(pairs * 10**-3.7)
    assert frame.attrs["cosine"] == pytest.approx(
        thresholds(unit[[TEXTS.index(text) for text in dict.fromkeys(TEXTS)]], [percentile_of(3.7)], seed=42)[0]
    )
    gone = int((~frame["kept"]).sum())
    assert f"{gone} of 174 texts would go" in asked.says(frame)
    rejected = Duplicates("simcse", 3.7, rejected=str(pair["first"].iloc[0])).frame(session)
    assert f"{gone - 1} of 174 texts would go" in asked.says(rejected)
    kept = {row[0] for row in tables(rejected, session)["unique.csv"][1]}
    assert set(pair["row"]) <= kept
    page = page_html(Answer(asked, rejected, {}))
    assert f'data-reject="{pair["first"].iloc[0]}">' in page
    opened, folded = page.split("<summary>", 1)  # the most certain groups are open, the others one press away
    count = near["group"].nunique()
    assert folded.startswith(f"{count - opened.count('data-reject')} less certain</summary>")
    assert [opened.count("data-reject"), page.count("data-reject")] == [6, frame["group"].nunique()]


def test_the_slider_searches_nothing_again_and_begins_at_the_advised_place(state, monkeypatch) -> None:
    frame = Duplicates("simcse").frame(session_of(state))
    assert frame.attrs["nines"] == frame.attrs["advised"]
    monkeypatch.setattr(duplicates, "searched", None)
    for nines in (3.0, 5.0, 7.0):
        frame = Duplicates("simcse", nines).frame(session_of(state))
        assert frame.attrs["kept"] == 174 - (~frame["kept"]).sum()


def test_near_duplicates_need_two_texts_and_a_model(state) -> None:
    with pytest.raises(FieldError, match="The corpus has 1 text; near-duplicates need at least 2"):
        Duplicates().frame(session_of(state, ["a dog"]))
    with pytest.raises(FieldError, match="broken: ") as caught:
        Duplicates("broken").frame(session_of(state, names=("broken",)))
    assert caught.value.field == "The model"


def test_differences_from_the_kept_text_are_marked(state) -> None:
    texts = [*TEXTS, f"the dog {HOSTILE} barks", f"the cat {HOSTILE} barks loudly"]
    line = {"text": texts[-1], "kept": False, "exact": False}
    marked = str(duplicates.marked(line, [{"text": texts[-2], "kept": True}, line])["html"])
    assert "<del>dog</del> <ins>cat</ins>" in marked
    assert "<ins>loudly</ins>" in marked
    assert "<script" not in marked
