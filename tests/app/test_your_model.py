"""Your model: its start, what the table and the dial say of an adaptation, and blind votes with their verdict."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from app_models import AtOnce, write_model
from conftest import WORDS
from given_corpus import GivenCorpus
from gradio.context import LocalContext

import cse
from cse.analysis.votes import Answer as VoteAnswer
from cse.analysis.votes import Judged, Judgement, Setup, questions
from cse.app.corpus.own import OwnCorpus
from cse.app.models.models import Column, opened_by
from cse.app.places.votes import LOST, Voting, change, question_html, verdict_html
from cse.app.places.your_model import Trainer, reading_html, requested, start_of, training_html
from cse.app.results.adaptation import (
    Adaptation,
    at_dial,
    dial_points,
    dial_sentence,
    first_answer,
    report_frame,
)
from cse.app.results.judge import FIRST, SECOND, UNTRAINED, Judge
from cse.app.results.scores import Labels
from cse.app.show import answer
from cse.app.state import AppState, Ballot, Session, attach, open_session, open_state
from cse.app.training import training as module
from cse.app.training.request import OWN, Made, checked
from cse.app.training.trainings import Trainings
from cse.app.validation import FieldError

MINUS = "\N{MINUS SIGN}"
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
MANY = [f"the {one} {two} is {three} in the {four}" for one in WORDS[20:26] for two in WORDS[3:8]
        for three in WORDS[7:11] for four in WORDS[14:18]]  # fmt: skip
KEY, OTHER = "1" * 32, "2" * 32


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("models")
    folders = [write_model(root / name, bert_folder, name, seed) for seed, name in enumerate(("simcse", "promptbert"))]
    (root / "broken").mkdir()
    return open_state([*map(str, folders), str(root / "broken")], ())


def session(state, texts=TEXTS, labels=LABELS):
    corpus = GivenCorpus(texts, labels)
    return Session(state, corpus, corpus, state.models.columns)


# -- the table and the dial --------------------------------------------------------------------------------------

GAINS = {"0": (1.0, 0.2), "-0.25": (-1.0, 0.9), "0.25": (2.5, -0.8)}
STAGES = {
    "start": {"scores": {"neighbours": 60.0, "recall@1": 90.0}, "dimension": 8},
    "projection": {
        "variants": {
            variant: {
                "dimension": 4, "scores": {"neighbours": 60 + near, "recall@1": 90 + found},
                "gains": {"grouping": [near, near - 0.5, near + 0.5], "finding": [found, found - 0.5, found + 0.5]},
            }
            for variant, (near, found) in {**GAINS, "neighbours": (0.4, 0.0)}.items()
        }
    },
}  # fmt: skip


def test_the_table_has_the_scores_and_gains_of_the_stages_and_the_first_answer_is_the_commands():
    frame = first_answer(STAGES, "both")
    assert frame["candidate"].tolist() == ["start", *(f"projection {name}" for name in (*GAINS, "neighbours"))]
    row = frame[frame["candidate"] == "projection 0.25"].iloc[0]
    shown = [row[name] for name in ("grouping", "finding", "grouping_low", "finding_high")]
    assert shown == pytest.approx([62.5, 89.2, 2.0, -0.3])
    assert frame.loc[frame["chosen"], "candidate"].tolist() == ["projection 0.25"]  # 1.7 of gain, more than any other
    assert frame["verdict"].iloc[0].startswith("Better at grouping (+2.5), worse at finding (-0.8): use the new model")


def test_the_dial_has_the_candidates_that_differ_in_it_alone_and_stands_at_the_chosen_one():
    frame = first_answer(STAGES, "both")
    points = dial_points(frame)
    assert points["dial"].tolist() == [-0.25, 0.0, 0.25]
    assert points["grouping_gain"].tolist() == [-1.0, 1.0, 2.5]
    assert at_dial(points, 0.2)["candidate"] == "projection 0.25"
    said = "Dial -0.25: grouping -1.0 (-1.5 to -0.5), finding +0.9 (+0.4 to +1.4), in points over the start."
    assert dial_sentence(points, -0.25) == said.replace("-", MINUS)
    worse = points.assign(finding_gain=[-2.0, 0.2, -0.8])  # a place of the dial for finding that finds less
    assert dial_sentence(worse, -0.25).endswith("in points over the start. Finding is best at dial 0.")
    (spec,) = Adaptation(-0.25).charts(frame)
    values = {(row["axis"], row["dial"]): row["gain"] for row in spec["data"]["values"]}
    assert values == {(axis, float(dial)): gains[place] for dial, gains in GAINS.items()
                      for place, axis in enumerate(("grouping", "finding"))}  # fmt: skip
    assert [row["dial"] for row in spec["data"]["values"] if row["at"]] == [-0.25, -0.25]


# -- a start, an adaptation, and the page's models -------------------------------------------------------------------


def test_the_reading_of_a_start_is_said_from_its_configuration(state):
    assert "read at its first token" in reading_html(state, "untrained (cls)")
    assert start_of(state, "untrained (cls)") == ("bundled", "cls")
    assert start_of(state, "promptbert") == (state.models.columns[1].model, None)
    assert HOSTILE not in reading_html(state, HOSTILE)
    with pytest.raises(FieldError, match="There is no model") as refused:
        requested(replace(state, trainings=Trainings(OWN)), "demo", KEY, "no such model")
    assert refused.value.field == "The model"


def test_a_corpus_that_is_too_small_to_adapt_to_is_told_so_before_the_press(state):
    trainer = Trainer(replace(state, trainings=Trainings(OWN)))
    assert "the first answer stands here" in trainer.awaited("demo", KEY)
    state.own_corpora.put(OTHER, OwnCorpus("few.txt", MANY[:319] * 2), state.models.columns)
    said = trainer.awaited("own", OTHER)
    assert "only 319 different texts" in said
    assert "320" in said
    assert "the first answer" not in said


@pytest.fixture(scope="module")
def adapted(tmp_path_factory, bert_folder):
    """A state with a finished adaptation on labelled texts by a real command."""
    root = tmp_path_factory.mktemp("adapted")
    state = open_state([str(write_model(root / "simcse", bert_folder, "simcse"))], ())
    trainings = Trainings(OWN, root)
    state = replace(state, trainings=trainings)
    labels = [text.split()[2] for text in MANY]
    state.own_corpora.put(KEY, OwnCorpus("Mine", MANY, labels), state.models.columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CommandProcess", AtOnce)
        patch.setattr(module, "POLL", 0.05)
        asked = checked(OWN, MANY, labels, name=HOSTILE, corpus="Mine", start=str(bert_folder), minutes=5)
        training = trainings.begin(KEY, asked)
        assert training.wait(300)
    yield state, training, labels
    trainings.close()


def test_the_page_says_the_verdict_of_the_report_and_only_to_its_visitor(adapted):
    state, training, _ = adapted
    report = training.outcome.report
    page = training_html(training)
    assert report["verdict"].partition(". ")[0].replace(" -", f" {MINUS}") in page.replace("&#39;", "'")
    assert HOSTILE not in page
    assert "neighbours change most" in page
    left = training_html(training, quotes=False)  # after the visitor has removed the texts
    assert not [text for text in MANY if text in left]
    frame = Adaptation().frame(open_session(state, key=KEY))
    pd.testing.assert_frame_equal(frame, report_frame(report))
    assert frame.iloc[0]["grouping"] == report["grouping"]["start"]
    assert frame.loc[frame["chosen"], "finding"].item() == report["finding"]["result"]
    with pytest.raises(ValueError, match="no adaptation of yours"):
        Adaptation().frame(open_session(state, key=OTHER))


def test_label_neighbours_of_results_are_those_of_the_report(adapted):
    """One number: both score the texts that the adaptation held out."""
    state, training, labels = adapted
    token = LocalContext.request.set(SimpleNamespace(session_hash="visitor"))
    try:
        start = Column("start", *opened_by(training.request.start))
        found = answer(Labels(), Session(state, GivenCorpus(MANY, labels), GivenCorpus(MANY, labels), (start,)))
    finally:
        LocalContext.request.reset(token)
    assert found.frame["neighbours"].item() == pytest.approx(training.outcome.report["grouping"]["start"], abs=0.02)
    assert found.frame["texts"].item() == training.outcome.report["held_out"]


def test_a_trained_model_is_added_to_its_visitors_page_beside_its_start_once(adapted, tmp_path, monkeypatch):
    state, training, _ = adapted
    token = LocalContext.request.set(SimpleNamespace(session_hash="another"))
    try:
        with monkeypatch.context() as patched:  # one that does not open takes no other with it
            bad = Made("bad", tmp_path / "nowhere")
            made = state.trainings.models(KEY)
            patched.setattr(state.trainings, "models", lambda key: [(bad, None), *made])
            names, refused = attach(state, KEY)
        assert ["bad" in each or "nowhere" in each for each in refused] == [True]
        assert str(tmp_path) not in refused[0]
        assert attach(state, KEY) == ([], [])
        made = [each.name for each in training.outcome.models]
        assert names == [name for each in made for name in (each, f"{each} (before)")][: len(made) + 1]
        assert [column.name for column in state.models.columns] == ["simcse", *names]
        assert attach(state, OTHER) == ([], [])
    finally:
        LocalContext.request.reset(token)
    assert [column.name for column in state.models.columns] == ["simcse"]


# -- blind votes -----------------------------------------------------------------------------------------------------


@pytest.fixture
def voting(state) -> Voting:
    """Handlers with a new ballot of six votes under `KEY`."""
    state.ballots.put(KEY, Judge("simcse", "promptbert", 6).ballot(session(state)))
    return Voting(state)


def test_the_questions_are_those_of_the_library_and_the_endpoint_has_them(state) -> None:
    found = answer(Judge("simcse", "promptbert", 20), session(state))
    vectors = [cse.load(column.model).encode(TEXTS, normalize_embeddings=True) for column in state.models.columns[:2]]
    expected = questions(*vectors, seed=42)
    ballot = Judge("simcse", "promptbert", 20).ballot(session(state))
    assert [question.row for question in ballot.questions] == [question.row for question in expected]
    assert ballot.differing == len(expected) / len(TEXTS)
    asked = found.frame[found.frame["question"] == 1]
    assert asked["text"].unique() == TEXTS[expected[0].row]
    assert asked.loc[asked["model"] == "simcse", "neighbour"].tolist() == [TEXTS[row] for row in expected[0].start]
    assert asked.loc[asked["model"] == "promptbert", "near"].tolist() == [row + 1 for row in expected[0].result]
    assert found.json() == json.loads(json.dumps(found.json()))


def test_the_untrained_start_can_be_compared_though_it_is_no_column(state) -> None:
    texts = TEXTS[::3]
    ballot = Judge(UNTRAINED[0].name, UNTRAINED[1].name, 6).ballot(session(state, texts, None))
    vectors = [cse.load("bundled", column.pooling).encode(texts) for column in UNTRAINED]
    near = {question.row: question for question in questions(*vectors, seed=42)}
    assert [near[asked.row] for asked in ballot.questions] == list(ballot.questions)


def test_repeated_texts_are_asked_by_their_own_rows(state) -> None:
    ballot = Judge("simcse", "promptbert", 6).ballot(session(state, (TEXTS[0], *TEXTS), None))
    assert all(ballot.texts[question.row] == (TEXTS[0], *TEXTS)[question.row] for question in ballot.questions)
    assert 1 not in {question.row for question in ballot.questions}


def test_a_question_shows_both_lists_and_neither_name(voting, state) -> None:
    ballot = state.ballots.get(KEY)
    for cast in "abska":
        asked, shown = ballot.question, question_html(ballot)
        assert not any(name in shown for name in ("simcse", "SimCSE", "promptbert", "PromptBERT", HOSTILE))
        first = TEXTS[asked.lists[0][0]].replace("<", "&lt;").replace(">", "&gt;")
        assert shown.index("<h3>A</h3>") < shown.index(first) < shown.index("<h3>B</h3>")
        change(ballot, cast)
    given = [answer.vote for answer in ballot.judgement.answers]
    assert given[2:4] == ["same", "skip"]
    sides = [answer.first for answer in ballot.judgement.answers]
    other = {"start": "result", "result": "start"}
    assert (given[0], given[1], given[4]) == (sides[0], other[sides[1]], sides[4])


def test_votes_count_once_are_taken_back_and_end_in_a_verdict_that_is_shown_again(voting, state) -> None:
    give, back, stop = map(voting.changing, ("a", "u", "end"))
    first = voting.reopen(KEY).mark
    early = stop(first, KEY)
    assert "needs a vote" in early.status
    assert early.question
    assert give(first, KEY).mark == first + 1
    assert give(first, KEY).mark == first + 1  # another tab showed an earlier question
    assert back(first + 1, KEY).mark == first
    for count in range(5):
        shown = give(first + count, KEY)
        assert shown.verdict == ""
    assert voting.reopen(KEY) == shown  # after a reload
    finished = give(first + 5, KEY)
    assert (finished.question, finished.mark) == ("", first + 6)
    assert verdict_html(state.ballots.get(KEY)) == finished.verdict
    assert back(first + 6, KEY).verdict == ""
    other = replace(state.ballots.get(KEY), number=state.ballots.get(KEY).number + 1)  # of another tab
    state.ballots.put(KEY, other)
    assert [each(first + 5, KEY).mark - other.mark for each in (give, back, stop)] == [0, 0, 0]
    sent = stop(other.mark - 1, KEY)  # while the last vote is on its way to the page
    assert sent.verdict.lstrip().startswith('<h3 class="cse-verdict">')
    assert LOST in give(first, OTHER).status


def test_the_verdict_says_in_one_sentence_what_the_votes_tell() -> None:
    def ended(start: int, result: int, same: int, skipped: int) -> str:
        votes = ["start"] * start + ["result"] * result + ["same"] * same + ["skip"] * skipped
        setup = Setup(Judged("simcse", None, "1a"), Judged(HOSTILE, None, "2b"), HOSTILE, None, None, "3c", 2000, 42)
        answers = [VoteAnswer(str(number), vote, "start", (), ()) for number, vote in enumerate(votes)]
        return verdict_html(Ballot(Judgement(setup, 20, answers=answers), (), {}, 0.75))

    shown = ended(3, 14, 2, 1)
    assert HOSTILE not in shown
    assert f"{HOSTILE.replace('<', '&lt;').replace('>', '&gt;')} is better: 14 of 17 votes, p = .013</h3>" in shown
    assert "82 %, interval 59 to 94 %" in shown
    assert '<h3 class="cse-verdict">Not distinguishable: 3 of 5 votes' in ended(2, 3, 0, 0)


def test_bad_input_is_refused_at_the_field_it_concerns(state) -> None:
    same = ["the dog is here"] * 60
    for texts, first, second, field, words in (
        (TEXTS[:9], "simcse", "promptbert", "The corpus", "only 9 different texts in it"),
        (same, "simcse", "promptbert", "The corpus", "all its texts are the same"),
        (TEXTS, "simcse", "simcse", SECOND, "Both models are SimCSE"),
        (TEXTS, "broken", "simcse", FIRST, "broken: "),
    ):
        with pytest.raises(FieldError, match=words) as caught:
            Judge(first, second).ballot(session(state, texts, None))
        assert caught.value.field == field
