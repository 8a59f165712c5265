"""The endpoints of near-duplicates and of the comparison of two models on a corpus."""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cse.analysis.votes import RESULT, SAME, START, verdict
from cse.app import validation
from cse.app.choice.comparison import VOTES, compare
from cse.app.choice.record import MOST_COUNTED
from cse.app.corpus.chosen import chosen_corpus
from cse.app.duplicates.near_duplicates import DEFAULT, column_of, find, groups_of_all
from cse.app.state.app_state import AppState
from cse.app.state.ballots import MOST_ASKED
from cse.app.state.corpora import DEMO_KEY

GROUPS = 100  # of an answer
LEAST_QUESTIONS = 5


def own_text_endpoints(state: AppState) -> list[Callable[..., Any]]:
    """Return the endpoint functions, named with the suffix "_endpoint"."""

    def duplicates_endpoint(
        model: str, corpus: str = DEMO_KEY, nines: float = DEFAULT, keep: str = "first", page: int = 1, key: str = ""
    ) -> dict[str, Any]:
        """Near-duplicates: {"cosine": 0.9, "kept": 1190, "groups": 8, "page": [[{"row": 3, "kept": true, ...}]]}.

        A member of a group has its row in the corpus (from 0), the number of its row in the file of the texts (from 1),
        its text, whether it is kept, its cosine with the kept one, and the reason. "curve" has the numbers of all
        places of the slider, "advised" the nines that are recommended.

        Args:
            model: the name of a model of this app, as /models lists them.
            corpus: "demo", the name of a corpus the app was started with, or "own" with a key.
            nines: the percentile of unrelated pairs that a cosine has to reach, as nines, 3 to 7: 5 is 99.999.
            keep: the text of a group that is kept: first, longest or central.
            page: which hundred groups, from 1.
            key: the secret key of a visitor's own corpus.
        """
        chosen, column = chosen_corpus(state, corpus, key), column_of(state, model)
        number = validation.whole(page, "The page", 1, max(1, len(chosen.texts)))
        near = find(state, chosen, column)
        found = groups_of_all(state, chosen, column, nines, keep, number, GROUPS)
        numbers, texts = chosen.numbers, chosen.texts
        listed = [
            [{**asdict(each), "number": numbers[each.row], "text": texts[each.row]} for each in group]
            for group in found.groups
        ]
        return {
            **found.place._asdict(), "page": listed, "texts": len(chosen.texts), "advised": near.advised,
            "curve": [place._asdict() for place in near.places],
        }  # fmt: skip

    def judge_endpoint(
        first: str, second: str, corpus: str = DEMO_KEY, questions: int = VOTES, key: str = ""
    ) -> dict[str, Any]:
        """Two models on a corpus: {"compared": 1200, "differing": 0.9, "models": [...], "scores": {...}, "questions"}.

        A question is a text on whose neighbours the models differ most, with the five nearest texts of the "first" and
        of the "second"; "differing" is the share of texts whose five nearest differ. "scores" are those of labels, null
        without labels.

        Args:
            first: the name of a model, "untrained (mean)" or "untrained (cls)".
            second: the name of another one.
            corpus: "demo", the name of a corpus the app was started with, or "own" with a key.
            questions: how many, 5 to 60.
            key: the secret key of a visitor's own corpus.
        """
        ballot = compare(state, chosen_corpus(state, corpus, key), first, second, questions, least=LEAST_QUESTIONS)
        judgement, texts = ballot.judgement, ballot.texts
        shown = [
            {"text": texts[each.row], "first": [texts[row] for row in each.start],
             "second": [texts[row] for row in each.result]}
            for each in ballot.questions[: min(MOST_ASKED, judgement.target)]
        ]  # fmt: skip
        scores = judgement.scores and {"first": judgement.scores[START], "second": judgement.scores[RESULT]}
        return {
            "compared": judgement.setup.compared, "differing": ballot.differing,
            "models": [asdict(facts) for facts in ballot.models], "scores": scores, "note": ballot.note,
            "questions": shown,
        }  # fmt: skip

    def verdict_endpoint(first: int, second: int, same: int = 0) -> dict[str, Any]:
        """The verdict of votes between two models: {"sentence": "...", "p": 0.01, "share": 0.8, "low": 0.6, ...}.

        "share" is that of the second model among the votes for one of the two, "low" and "high" its 95 % interval
        (Wilson), "p" that of the exact sign test.

        Args:
            first: votes for the first model.
            second: votes for the second model.
            same: votes for neither.
        """
        counts = [validation.whole(each, "The votes", 0, MOST_COUNTED) for each in (first, second, same)]
        found = verdict(vote for vote, count in zip((START, RESULT, SAME), counts, strict=True) for _ in range(count))
        measured = {"p": found.p, "share": found.share, "low": found.low, "high": found.high}
        return {"sentence": found.sentence("the first model", "the second model"), **measured}

    return [duplicates_endpoint, judge_endpoint, verdict_endpoint]
