"""Blind votes in the page: what is asked, how votes count and are kept, and what the verdict and its link say."""

import base64
import json
import zlib
from dataclasses import replace

import pytest
from app_models import write_model
from given_corpus import GivenCorpus

import cse
from cse.analysis.votes import questions, verdict
from cse.app.choice.ballot_html import ballot_html, so_far
from cse.app.choice.choose_tab import needed_html
from cse.app.choice.comparison import LEAST_VOTES, MODELS, UNTRAINED, compare, sample
from cse.app.choice.record import LONGEST, Record, code_of, record_from, record_of
from cse.app.choice.verdict_html import verdict_html
from cse.app.choice.voting import LOST, Voting, end, undo, vote
from cse.app.state.app_state import AppState, open_state
from cse.app.state.ballots import TEXT, Ballots, Facts
from cse.app.state.own_corpora import KEPT
from cse.app.validation import FieldError
from cse.evaluation.clustering import label_scores

HOSTILE = "<img src=x onerror=alert(1)>"
TOPICS = {"pets": ["dog", "cat"], "home": ["kitchen", "guitar"], "sky": ["rain", "sun"]}
ROWS = [
    (f"the {size} {noun} {more}", topic)
    for topic, nouns in TOPICS.items()
    for noun in nouns
    for size in ("small", "big", "red", "sad")
    for more in ("is here in the park", f"was {HOSTILE} here")
]
TEXTS, LABELS = zip(*ROWS, strict=True)
KEY, OTHER = "1" * 32, "2" * 32


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("choice")
    folders = [write_model(root / name, bert_folder, name, seed) for seed, name in enumerate(("simcse", "promptbert"))]
    (root / "broken").mkdir()
    return open_state([*map(str, folders), str(root / "broken")], ())


@pytest.fixture(scope="module")
def corpus() -> GivenCorpus:
    return GivenCorpus(TEXTS, LABELS)


@pytest.fixture
def voting(state, corpus) -> Voting:
    """Handlers with a new ballot of six votes under `KEY`."""
    state.ballots.put(KEY, compare(state, corpus, "simcse", "promptbert", 6))
    return Voting(state)


def test_the_questions_and_scores_are_those_of_the_library(state, corpus) -> None:
    ballot = compare(state, corpus, "simcse", "promptbert", 20)
    vectors = [cse.load(column.model).encode(TEXTS, normalize_embeddings=True) for column in state.models.columns[:2]]
    expected = questions(*vectors, seed=42)
    assert [question.row for question in ballot.questions] == [question.row for question in expected]
    assert ballot.differing == len(expected) / len(TEXTS)
    assert ballot.judgement.scores == {
        side: label_scores(each, LABELS) for side, each in zip(("start", "result"), vectors, strict=True)
    }
    for facts, column in zip(ballot.models, state.models.columns[:2], strict=True):
        assert (facts.name, facts.fingerprint) == (column.name, cse.load(column.model).fingerprint)
        assert facts.megabytes == round(4e-6 * cse.load(column.model).parameter_count, 1)
        assert facts.milliseconds > 0
        assert 0 <= facts.found <= 100


def test_the_untrained_start_can_be_compared_though_it_is_no_column(state) -> None:
    texts = TEXTS[::3]
    ballot = compare(state, GivenCorpus(texts), UNTRAINED[0].name, UNTRAINED[1].name, 6)
    start, result = (cse.load("bundled", column.pooling).encode(texts) for column in UNTRAINED)
    near = {question.row: question for question in questions(start, result, seed=42)}
    assert [near[asked.row] for asked in ballot.questions] == list(ballot.questions)


def test_a_question_shows_both_lists_and_neither_name(voting, state) -> None:
    ballot = state.ballots.get(KEY)
    for choice in "abska":
        asked, shown = ballot.question, ballot_html(ballot)
        assert not any(name in shown for name in ("simcse", "promptbert", "start", "result", HOSTILE))
        first = TEXTS[asked.lists[0][0]].replace("<", "&lt;").replace(">", "&gt;")
        assert shown.index("<h3>A</h3>") < shown.index(first) < shown.index("<h3>B</h3>")
        vote(choice)(ballot)
    given = [answer.vote for answer in ballot.judgement.answers]
    assert given[2:4] == ["same", "skip"]
    sides = [answer.first for answer in ballot.judgement.answers]
    other = {"start": "result", "result": "start"}
    assert (given[0], given[1], given[4]) == (sides[0], other[sides[1]], sides[4])


def test_the_fewest_votes_can_find_a_model_better_and_the_page_says_how_many_must_agree() -> None:
    assert verdict(["result"] * LEAST_VOTES).better == "result"
    assert verdict(["result"] * (LEAST_VOTES - 1)).better is None
    assert "Of 20 votes for a list, 15 must favour one model to find it better." in needed_html(20)
    assert needed_html(5) == needed_html(None) == ""


def test_the_interval_does_not_tell_which_model_is_ahead() -> None:
    ahead, behind = (
        so_far(verdict(votes)) for votes in (["start"] * 6 + ["result"] * 2, ["result"] * 6 + ["start"] * 2)
    )
    assert ahead == behind
    assert "6 of 8 votes; 95 % interval of its share: 41 to 93 %" in ahead


def test_votes_count_once_are_taken_back_and_end_in_a_verdict_that_is_found_again(voting, state) -> None:
    give, back, stop = (voting.changing(change) for change in (vote("a"), undo, end))
    assert give(0, KEY).place == 1
    assert give(0, KEY).place == 1  # another tab showed an earlier question
    assert back(1, KEY).place == 0
    for place in range(5):
        shown = give(place, KEY)
        assert (shown.verdict, shown.code) == ("", "")
    assert voting.resume("", "", 6, "", KEY) == shown  # after a reload
    finished = give(5, KEY)
    assert (finished.question, finished.place) == ("", 6)
    assert verdict_html(record_of(state.ballots.get(KEY))) == finished.verdict
    assert give(6, KEY) == finished  # nothing is asked any more
    assert back(6, KEY).verdict == ""
    assert stop(5, KEY).verdict.startswith('<h3 class="cse-verdict">')
    assert LOST in give(0, OTHER).status
    state.ballots.drop(OTHER)
    assert state.ballots.get(KEY) is not None
    assert voting.resume("", "", 6, "", OTHER).verdict == ""
    with pytest.raises(ValueError, match="no votes of yours"):
        voting.save(OTHER)
    saved = json.loads(voting.save(KEY)["text"])
    assert [each["vote"] for each in saved["votes"]] == [a.vote for a in state.ballots.get(KEY).judgement.answers]
    assert saved["verdict"]["sentence"] == record_of(state.ballots.get(KEY)).verdict.sentence()
    assert [facts["name"] for facts in saved["models"]] == ["simcse", "promptbert"]
    state.ballots.drop(KEY)
    assert LOST in give(4, KEY).status


def test_a_link_opens_the_verdict_for_everyone_and_says_where_it_comes_from(voting, state) -> None:
    ended = voting.changing(end)(0, KEY)
    assert record_from(ended.code) == record_of(state.ballots.get(KEY))
    assert len(ended.code) < 1000
    assert voting.resume("", "", 6, ended.code, KEY).verdict == ended.verdict
    opened = voting.resume("", "", 6, ended.code, OTHER)
    assert "comes from a link" in opened.verdict
    assert opened.verdict.startswith(ended.verdict[:60])
    broken = voting.resume("", "", 6, ended.code[:-9], OTHER)
    assert (broken.verdict, "This link holds no verdict" in broken.status) == ("", True)


RECORD = Record(
    (Facts("simcse", "1a", 1.5, 43.0, 96.0), Facts(HOSTILE, "2b", 2.5, 50.0)),
    {"start": 3, "result": 14, "same": 2, "skip": 1},
    HOSTILE,
    2000,
    0.75,
    {"start": {"neighbours": 60.0, HOSTILE: 1.0}, "result": {"neighbours": 70.25, HOSTILE: 2.0}},
)


def coded(found: object) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(found).encode())).decode().rstrip("=")


def opened(code: str) -> dict:
    return json.loads(zlib.decompress(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))))


def test_the_verdict_says_in_one_sentence_what_the_votes_tell_and_shows_all_that_was_measured() -> None:
    shown = verdict_html(RECORD)
    assert HOSTILE not in shown
    assert f"{HOSTILE.replace('<', '&lt;').replace('>', '&gt;')} is better: 14 of 17 votes, p = .013</h3>" in shown
    for words in (
        "<b>3</b> of 17",
        "82 %, interval 59 to 94 %",
        "differ for 75 %",
        "70.25",
        "1.5",
        "50.0",
        "Check for a collapse",
    ):
        assert words in shown, words
    even = replace(RECORD, counts={"start": 2, "result": 3, "same": 0, "skip": 0}, scores=None, note="No labels.")
    assert '<h3 class="cse-verdict">Not distinguishable: 3 of 5 votes' in verdict_html(even)
    assert "No labels." in verdict_html(even)
    assert "interval 0 to 100 %" in verdict_html(replace(even, counts=dict.fromkeys(RECORD.counts, 0)))


@pytest.mark.parametrize(
    "change",
    [
        {"counts": {**RECORD.counts, "start": -1}}, {"counts": {**RECORD.counts, "same": 10**9}},
        {"counts": {"start": 1}}, {"counts": None}, {"models": []}, {"models": [1, 2]}, {"corpus": 5}, {"more": 1},
        {"differing": float("nan")}, {"compared": True}, {"scores": {"start": {}}},
        {"scores": {side: dict.fromkeys("abcdefghi", 1.0) for side in ("start", "result")}},
        {"scores": {side: {"purity": "<b>"} for side in ("start", "result")}},
    ],
)  # fmt: skip
def test_a_link_with_other_values_is_refused(change: dict) -> None:
    good = opened(code_of(RECORD))
    assert record_from(coded(good)) == RECORD
    with pytest.raises(ValueError, match="This link holds no verdict"):
        record_from(coded({**good, **change}))


@pytest.mark.parametrize(
    "code",
    ["", "x", "é", "A" * 50, code_of(RECORD)[:-9], "A" * (LONGEST + 1), coded([1]), coded("[" * 10**6), coded(7)],
)
def test_a_broken_link_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match="This link holds no verdict"):
        record_from(code)


def test_bad_input_is_refused_at_the_field_it_concerns(state, corpus) -> None:
    same = GivenCorpus(["the dog is here"] * 60)
    for chosen, first, second, votes, field, words in (
        (GivenCorpus(["a dog"]), "simcse", "promptbert", 20, "The corpus", "at least 10 different texts"),
        (GivenCorpus(TEXTS[:9]), "simcse", "promptbert", 20, "The corpus", "only 9 different texts in it"),
        (same, "simcse", "promptbert", 20, "The corpus", "all its texts are the same"),
        (corpus, "simcse", "simcse", 20, MODELS[1], "Both models are SimCSE"),
        (corpus, "simcse", "nothing", 20, MODELS[1], "is unknown"),
        (corpus, "broken", "simcse", 20, MODELS[0], "broken: "),
        (corpus, "simcse", "promptbert", 1000, "The votes", "from 6 to 60"),
        (corpus, "simcse", "promptbert", 5, "The votes", "from 6 to 60"),
    ):
        with pytest.raises(FieldError, match=words) as caught:
            compare(state, chosen, first, second, votes)
        assert caught.value.field == field


def test_texts_without_usable_labels_say_why_there_are_no_scores(state) -> None:
    for labels, words in ((None, "has no labels"), (["one"] * len(TEXTS), "all texts have the same label 'one'")):
        ballot = compare(state, GivenCorpus(TEXTS, labels), "simcse", "promptbert", 6)
        assert ballot.judgement.scores is None
        assert words in ballot.note


def test_many_and_long_texts_are_sampled_and_shortened(state) -> None:
    long = GivenCorpus([f"{number} {'word ' * 200}" for number in range(6000)] * 2)
    drawn, places = sample(long)
    assert len(drawn) == len(set(drawn.texts)) == 5000
    assert [long.texts[place] for place in places] == drawn.texts
    ballot = compare(state, GivenCorpus([f"{text} {'dog ' * 200}" for text in TEXTS]), "simcse", "promptbert", 6)
    assert {len(text) for text in ballot.texts.values()} == {TEXT}
    assert len(ballot.question.start) == 5


def test_votes_are_kept_for_a_time_for_a_number_of_visitors_and_until_they_are_replaced() -> None:
    now, keys = [0.0], [f"{number:032x}" for number in range(4)]
    kept = Ballots(lambda: now[0], most=3)
    for key in keys:
        kept.put(key, key)  # type: ignore[arg-type]
    assert [kept.get(key) for key in keys] == [None, *keys[1:]]
    kept.put(keys[1], "other")  # type: ignore[arg-type]
    now[0] = KEPT - 1.0
    assert kept.get(keys[1]) == "other"
    now[0] = KEPT + 1.0
    assert [kept.get(key) for key in keys] == [None, "other", None, None]
    for wrong in ("", "x" * 32, None, 5):
        with pytest.raises(ValueError, match="no key to keep votes under"):
            kept.put(wrong, "x")  # type: ignore[arg-type]
        assert kept.get(wrong) is None
