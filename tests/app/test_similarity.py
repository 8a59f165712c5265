"""The place Similarity: its numbers are those that numpy finds, and endpoint, page and first answer show the same."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pandas as pd
import pytest
from app_models import MARKUP, write_model
from conftest import SENTENCES
from page_state import encode_own

import cse
from cse.analysis.calibration import histogram
from cse.app.corpus.own import OwnCorpus
from cse.app.models.naming import title
from cse.app.result import moved_by_training
from cse.app.results.similarity import Disagreements, Pairs, Similarity, among_random, left_end
from cse.app.results.words import Changes, Words
from cse.app.show import answer, ask, page_html, read_first
from cse.app.state import AppState, open_session, open_state
from cse.app.validation import FieldError
from cse.models.names import BUNDLED_NAMES

KINDS = (Similarity, Pairs, Words, Changes, Disagreements)
GOOD = ["simcse", "promptbert"]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
THREE = ["the cat is eating", "a dog", "the sun was big"]


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("similarity")
    folders = [write_model(root / name, bert_folder, name, seed) for seed, name in enumerate(GOOD)]
    (root / "broken").mkdir()
    return open_state([*map(str, folders), str(root / "broken")], ())


def unit(state: AppState, name: str, texts: list[str]) -> np.ndarray:
    """Vectors of length 1, by the library itself."""
    column = next(column for column in state.models.own if column.name == name)
    rows = cse.load(column.model).encode(texts).astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_pairs(state: AppState, name: str) -> np.ndarray:
    rows = unit(state, name, state.demo.texts[::6])
    return (rows @ rows.T)[np.triu_indices(len(rows), 1)]


def cells(page: str) -> list[list[str]]:
    """The texts of a page's table, a list a row of its body."""
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body.split("<tr")[1:]]
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in rows]


def test_a_pair_is_placed_among_the_random_pairs_of_every_model(state):
    result = ask(state, Similarity, {"s1": " the dog ", "s2": "the cat"})
    assert list(result.failed) == ["broken"]
    for row, shown in zip(result.frame.itertuples(), cells(page_html(result)), strict=True):
        one, other = unit(state, row.model, ["the dog", "the cat"])
        random = random_pairs(state, row.model)
        assert row.cosine == pytest.approx(one @ other, abs=1e-5)
        assert row.percentile == pytest.approx(100 * np.mean(random < one @ other), abs=0.1)
        assert row.random_mean == pytest.approx(random.mean(), abs=1e-5)
        assert sum(row.histogram) == pytest.approx(1, abs=0.01)
        assert result.json()[row.model] == row.cosine
        assert shown == [title(row.model), "", f"{row.cosine:.3f}", among_random(row.percentile)]
    assert result.json()["broken"].keys() == {"error"}


def test_of_many_models_the_ends_are_said(state):
    answer = ask(state, Similarity, {})
    frame = pd.concat([answer.frame] * 3)[:3].assign(model=["simcse", "promptbert", "conpvp"])
    said = answer.result.says(frame.assign(percentile=[99.97, 40.0, 98.8]))
    assert said.endswith(
        "closer than 40.0 % of random pairs in PromptBERT (the least) and over 99.9 % in SimCSE (the most)."
    )


def test_what_training_left_as_it_was_is_told_apart():
    values = {"simcse (before)": 0.121, "simcse": 0.119, "conpvp (before)": 0.9, "conpvp": 0.2, "dcpcse": 0.3}
    said = moved_by_training("mean", values, lambda value: f"{value:.2f}")
    assert said == "The mean went from 0.90 to 0.20 in ConPVP and stayed at 0.12 in SimCSE."


def test_the_figure_has_the_histograms_and_the_cosines_of_the_table(state):
    answer = ask(state, Similarity, {})
    (spec,) = answer.result.charts(answer.frame)
    rows = pd.DataFrame(spec["data"]["values"])
    assert rows["pair"].dropna().tolist() == pytest.approx(answer.frame["cosine"].tolist())
    for line, shares in enumerate(answer.frame["histogram"]):
        bars = rows[(rows["line"] == line) & rows["cosine"].notna()]
        heights = line - bars["top"].to_numpy()
        np.testing.assert_allclose(heights / heights.sum(), np.array(shares)[-len(bars) :] / sum(shares), atol=1e-6)
        assert sum(shares[: -len(bars)]) == 0


@pytest.mark.parametrize(("low", "left"), [(-0.1, -0.25), (-0.26, -0.5), (-0.97, -1)])
def test_the_axis_begins_where_the_lowest_random_pair_is(state, low, left):
    answer = ask(state, Similarity, {})
    answer.frame.at[0, "histogram"] = histogram(np.array([low, 0.5]))
    assert left_end(answer.frame) == left
    spec = json.dumps(answer.result.charts(answer.frame))
    assert f'"domain": [{left}' in spec
    row, _ = answer.result.view(answer.frame)["shown"][0]
    corners = [[float(number) for number in corner.split(",")] for corner in row["outline"].split()]
    top = next(x for x, y in corners if y < 30)  # where the first bar rises
    assert left + (1 - left) * top / 100 <= low < left + (1 - left) * top / 100 + 0.03


def test_what_a_model_cannot_read_is_noted_with_the_sentence(state):
    notes = ask(state, Similarity, {"s1": "the dog " * 400, "s2": "ok"}).notes
    assert any(re.match(r"Sentence A: only the first \d+ of its 800 word pieces are read", note) for note in notes)
    notes = ask(state, Pairs, {"lines": "ok\n" + "the dog " * 400}).notes
    assert any(re.match(r"Sentence 2: only the first \d+ of its 800 word pieces are read", note) for note in notes)


def test_all_pairs_of_a_list_have_the_cosines_of_their_vectors(state):
    result = ask(state, Pairs, {"lines": "\n\n".join(THREE)})
    for name in GOOD:
        rows, records = unit(state, name, THREE), result.json()[name]
        random, cosines = np.sort(random_pairs(state, name)), (rows @ rows.T)[np.triu_indices(3, 1)]
        assert [(pair["first"], pair["second"]) for pair in records] == [(1, 2), (1, 3), (2, 3)]
        assert [pair["cosine"] for pair in records] == pytest.approx(cosines, abs=1e-4)
        shares = 100 * np.searchsorted(random, cosines) / len(random)
        assert [pair["percentile"] for pair in records] == pytest.approx(shares, abs=0.1)
        best = max(((0, 1), (0, 2), (1, 2)), key=lambda pair: (rows @ rows.T)[pair])
        assert f"{best[0] + 1} and {best[1] + 1} in " in page_html(result)
    assert result.json()["broken"].keys() == {"error"}
    first = result.frame.iloc[0]
    assert (first.s1, first.s2, first["first"], first.second) == (*THREE[:2], 1, 2)
    assert f"1 and 2: cosine {first.cosine:.3f}, percentile {first.percentile:.1f}" in page_html(result)


def test_a_word_counts_what_the_cosine_loses_without_it(state):
    result = ask(state, Words, {"s1": "the dog eats.", "s2": "a cat"})
    for name in GOOD:
        rows = result.frame[result.frame["model"] == name]
        vectors = unit(state, name, ["the dog eats.", "a cat", "dog eats.", "the eats.", "the dog.", "cat", "a"])
        whole = vectors[0] @ vectors[1]
        lost = [*(whole - vectors[2:5] @ vectors[1]), *(whole - vectors[5:] @ vectors[0])]
        assert rows["value"].tolist() == pytest.approx(lost, abs=1e-5)
        words = [(record["sentence"], record["word"]) for record in result.json()[name]]
        assert words == [(1, "the"), (1, "dog"), (1, "eats"), (2, "a"), (2, "cat")]
        assert result.json()[name][0]["cosine"] == pytest.approx(whole, abs=1e-5)
        best = f"“{['the', 'dog', 'eats', 'a', 'cat'][int(np.argmax(lost))]}”" if max(lost) > 0 else "no word"
        assert f"{best} in " in result.result.says(result.frame)
    with pytest.raises(FieldError, match="Sentence B has 65 words; give at most 64"):
        ask(state, Words, {"s1": "a", "s2": "a " * 65})


def test_a_change_moves_a_sentence_as_far_as_its_cosine_says(state):
    typed = "the dog is not happy.\n\n  a cat  \nthe dog is happy."
    result = ask(state, Changes, {"sentence": "the dog is happy.", "variants": typed})
    changes = result.json()["simcse"]
    assert [(change["name"], change["keeps"], change["changed"]) for change in changes[:4]] == [
        ("variant 1", None, "the dog is not happy."), ("variant 2", None, "a cat"),
        ("variant 3", None, "the dog is happy."), ("negated", False, "the dog is not happy."),
    ]  # fmt: skip
    assert result.json()["broken"].keys() == {"error"}
    for name in GOOD:
        own, *others = unit(state, name, ["the dog is happy.", *(change["changed"] for change in changes)])
        apart = 1 - np.median(random_pairs(state, name))
        moved = [(1 - own @ other) / apart for other in others]
        assert [change["moved"] for change in result.json()[name]] == pytest.approx(moved, abs=1e-4)
    negated = next(change for change in changes if change["name"] == "negated")
    assert negated["moved"] == pytest.approx(changes[0]["moved"], abs=1e-5)
    page = page_html(result)
    mean = np.mean([change["moved"] for change in changes if change["keeps"]])
    assert ["mean where the meaning is kept", f"{round(100 * mean)} %"] in [row[:2] for row in cells(page)]
    with pytest.raises(FieldError, match="Your list of variants has 21 sentences; paste 1 to 20"):
        ask(state, Changes, {"sentence": "a", "variants": "a\n" * 21})


def test_pairs_are_ordered_by_how_differently_the_models_rank_them(state):
    result = ask(state, Disagreements, {})
    frame = result.frame.set_index("pair")
    places = {}
    for name in GOOD:
        of_model = frame[frame["model"] == name]
        one, other = (unit(state, name, of_model[side].tolist()) for side in ("s1", "s2"))
        places[name] = (one * other).sum(1).argsort().argsort() / (len(of_model) - 1)
        assert of_model["place"].tolist() == pytest.approx(places[name], abs=0.05)  # nearly equal cosines may swap
    shown = result.result.view(result.frame)["shown"]
    apart = [abs(pair["places"][GOOD[0]] - pair["places"][GOOD[1]]) for pair in shown]
    assert apart == sorted(apart, reverse=True)
    assert apart[0] == pytest.approx(max(abs(places[GOOD[0]] - places[GOOD[1]])), abs=0.05)
    assert cells(page_html(result))[0][1:] == [f"{round(100 * shown[0]['places'][name])}" for name in GOOD]


def test_pairs_of_the_corpus_are_near_in_a_model_and_keep_their_rows(state):
    frame = ask(state, Disagreements, {}).frame
    texts = state.demo.texts
    assert all(texts[row.row1 - 1] == row.s1 and texts[row.row2 - 1] == row.s2 for row in frame.itertuples())
    near = set()
    for name in GOOD:
        rows = unit(state, name, texts)
        cosines = rows @ rows.T
        np.fill_diagonal(cosines, -2)
        sampled = np.unique(np.linspace(0, len(texts) - 1, 60).astype(int))
        near |= {tuple(sorted((int(row), int(cosines[row].argmax())))) for row in sampled}
        of_model = frame[frame["model"] == name]
        found = cosines[of_model["row1"] - 1, of_model["row2"] - 1]
        assert of_model["cosine"].tolist() == pytest.approx(found, abs=1e-4)
    # Two neighbours may be equally near but for rounding.
    pairs = set(zip(frame["row1"] - 1, frame["row2"] - 1, strict=True))
    assert len(pairs ^ near) <= len(near) // 20


def test_an_own_corpus_is_the_scale_and_gives_the_pairs(state):
    texts = [f"{text} {number}" for text in SENTENCES for number in ("one", "two", "three")]
    key, own = "b" * 32, OwnCorpus("pets.txt", texts, None)
    encode_own(state, key, own)
    shared = {"corpus": "own", "key": key}
    result = ask(state, Similarity, {"s1": texts[0], "s2": texts[1], **shared})
    found = ask(state, Disagreements, shared).frame
    assert "random pairs of pets.txt (21)" in page_html(result)
    for name in GOOD:
        rows = unit(state, name, texts)
        cosines = rows @ rows.T
        random = cosines[np.triu_indices(len(texts), 1)]
        shown = result.frame.set_index("model")["percentile"][name]
        assert shown == pytest.approx(100 * np.mean(random < cosines[0, 1]), abs=1)  # two pairs
        near = {frozenset((texts[row], texts[best])) for row, best in enumerate((cosines - 2 * np.eye(21)).argmax(1))}
        assert near <= {frozenset(pair) for pair in zip(found["s1"], found["s2"], strict=True)}
    few = OwnCorpus("few.txt", ["a cat"] * 5, None)
    encode_own(state, key, few)
    with pytest.raises(FieldError, match=r"few\.txt \(5\) has too few different texts"):
        ask(state, Disagreements, {**shared, "models": GOOD})


def test_texts_and_names_are_never_markup(state):
    column = state.models.own[0]
    session = replace(open_session(state), columns=(replace(column, name=MARKUP), state.models.own[1]))
    for result in (Similarity(HOSTILE, "b"), Pairs(f"{HOSTILE}\nb"), Words(HOSTILE, "b"), Changes(HOSTILE, HOSTILE)):
        page = page_html(answer(result, session))
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;img src=x" in page


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_first_answer_is_what_the_bundled_model_says(kind):
    state = open_state(BUNDLED_NAMES, ())
    shipped, found = read_first(state, kind), ask(state, kind, {"models": ["simcse"]})
    if kind is Disagreements:  # the pairs are near in any of the four
        both = found.frame.merge(shipped.frame, on=["row1", "row2"])
        assert len(both[both["model_y"] == "simcse"]) == len(found.frame)
        return
    own = shipped.frame[shipped.frame["model"] == "simcse"].reset_index(drop=True)
    assert shipped.models["simcse"] == found.models["simcse"]
    pd.testing.assert_frame_equal(own, found.frame, atol=1e-3, check_dtype=False)
    assert shipped.result.says(own) == found.result.says(found.frame)


@pytest.fixture(scope="module")
def functions(state):
    """What the page calls for each result when another corpus or model is chosen."""
    from cse.app import page

    return [each for each in page.page(state).fns.values() if each.name == "again"]


@pytest.fixture(scope="module")
def again(functions):
    return next(each for each in functions if {"similarity"} & {output.elem_id for output in each.outputs})


def test_an_example_of_new_texts_is_there_before_their_answer_so_that_what_is_typed_meanwhile_stays(state, again):
    encode_own(state, "b" * 32, OwnCorpus("pets.txt", THREE))
    choice = ["own", GOOD, "b" * 32]
    early, late = again.fn((("a", "b"), ("demo", 0), GOOD), "", "a", "b", *choice)
    assert set(early[-2:]) <= set(THREE)
    assert early[0] == late[-1] == late[-2] == gr.skip()
    filled = {"s1": early[-2], "s2": early[-1], "corpus": "own", "models": GOOD, "key": "b" * 32}
    assert late[0] == page_html(ask(state, Similarity, filled))
    (typed,) = again.fn((("a", "b"), ("demo", 0), GOOD), "", "a", "my own", *choice)
    assert typed[-1] == gr.skip()


def test_an_answer_on_earlier_texts_goes_although_the_new_ones_have_its_name_and_number(state, functions):
    again = next(each for each in functions if {"disagreements"} & {output.elem_id for output in each.outputs})
    encode_own(state, "b" * 32, OwnCorpus("pets.txt", THREE))
    values = [value for value in ("own", GOOD, "b" * 32)]
    number = state.own_corpora.corpus("b" * 32).number
    for known, kept in ((number, True), (number - 1, False)):
        (given,) = again.fn(((), ("own", known), GOOD), "earlier", *values)
        assert (given[0] == gr.skip()) == kept


def test_an_answer_that_another_choices_overtook_is_asked_for_again(state, again, monkeypatch):
    from cse.app import events, show

    (place,) = [at for at, output in enumerate(again.outputs) if output is again.inputs[1]]  # the mark of the answer
    choice = ["a dog", "the sun", "demo", GOOD, ""]
    left = [*choice[:3], GOOD[:1], ""]  # of a lesson that was closed; its mark is that of the answer on the page
    mark, known = show.choice_mark(state, "demo", GOOD[:1], ""), (("a", "b"), ("demo", 0), GOOD)
    run, compute, late = again.fn.__closure__, show.ask, []
    (handler,) = [cell.cell_contents for cell in run if isinstance(cell.cell_contents, events.Run)]

    def overtaken(*args, **options):
        if not late:  # it begins while the newer choice is being answered
            late.append(None)
            late[0] = handler.fn(*left)
        return compute(*args, **options)

    monkeypatch.setattr(show, "ask", overtaken)
    monkeypatch.setattr(events, "current_request", lambda: SimpleNamespace(session_hash="visitor"))
    (answers,) = again.fn(known, mark, *choice)
    marks = answers[place], late[0][place]
    assert all(each.startswith(show.OVERTAKEN) for each in marks)  # the change of the mark asks again
    assert marks[0] != marks[1]  # also if an earlier answer was overtaken
    (checked,) = again.fn(known, marks[0], *choice)
    assert checked[place] == show.choice_mark(state, "demo", GOOD, "")
    assert "PromptBERT" in checked[0]
