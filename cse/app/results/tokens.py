"""The likeliest words at [MASK], before and after denoising, in every model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app.drawing.verdicts import flat, still_said
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, number, text, whole

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

MAX_TOKENS = 30
SENTENCES = [
    "The doctor treated the patient in hospital.",
    "I am not happy.",
    "The orchestra played a slow symphony.",
    "The bank raised its interest rates.",
]
LISTS = {"before": "Sentence", "alone": "Template alone", "after": "Denoised"}


@dataclass(frozen=True)
class Tokens(Result):
    """The likeliest words at [MASK] of a sentence, of the template alone, and of their difference."""

    key = "tokens"
    title = "What each model says at [MASK]"
    summary = (
        'The k likeliest tokens at [MASK]: {"simcse": {"before": [["cat", 0.1], ...], "alone": [], "after": []}}. '
        '"before" is for the sentence in the template, "alone" for the template, "after" for their difference.'
    )
    words = ("[MASK] template", "denoising")
    examples = {sentence: (sentence,) for sentence in SENTENCES}  # noqa: RUF012
    reads_corpus = False

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "what the models read.")
    k: int = whole("Words per list", 8, "k", "how many tokens, 1 to 30.", 1, MAX_TOKENS, folded=True)
    share: float = number(
        "Share of the template to subtract", 1.0, "What is subtracted",
        "the share of the template's logits that is subtracted, 0 to 1.", 0, 1, 0.05, folded=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per token: model, list, rank, token, probability, of_template, template, own.

        A token `of_template` is among those of the template alone. A model's vectors are read at the [MASK] of the
        template only if that is its `own`.
        """

        def rows(column: Column, encoder: Encoder) -> pd.DataFrame:
            spoken, alone = encoder.mask_logits(self.sentence)
            logits = {"before": spoken, "alone": alone, "after": spoken - self.share * alone}
            likeliest = pd.DataFrame(
                [
                    (column.name, name, rank, token, probability)
                    for name, each in logits.items()
                    for rank, (token, probability) in enumerate(encoder.likeliest(each, self.k), start=1)
                ],
                columns=["model", "list", "rank", "token", "probability"],
            )
            return likeliest.assign(
                of_template=likeliest["token"].isin(likeliest.loc[likeliest["list"] == "alone", "token"]),
                template=encoder.prompt_template.text,
                own=encoder.prompt_template == encoder.reading.template,
            )

        answers = session.each(rows)
        return pd.concat(answers.values(), ignore_index=True) if answers else pd.DataFrame()

    def says(self, frame: pd.DataFrame) -> str:
        """Return how many of the sentence's words the template says alone, before and after denoising."""
        readers = frame[frame["own"]]
        counts = readers.groupby(["list", "model"])["of_template"].sum()
        parts = [
            f"{counts['before', name]} of {self.k} in {title(name)}, {counts['after', name]} after denoising"
            for name in readers["model"].unique()
        ]
        return f"Words for this sentence that the template says without it: {'; '.join(parts)}." if parts else ""

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the cards of the models that are read at [MASK], and of the others, each with its start."""
        readings = {name: self.reading(rows) for name, rows in frame.groupby("model", sort=False)}
        cards: dict[bool, list[Any]] = {True: [], False: []}
        for name, start in with_starts(readings).items():
            phases = [("", readings[name])]
            if start:
                phases = [("Before training", readings[start]), ("After training", readings[name])]
            cards[readings[name]["own"]].append((name, phases))
        return {
            "readers": cards[True], "others": cards[False], "other_names": joined(name for name, _ in cards[False]),
            "top": frame["probability"].max(),
        }  # fmt: skip

    def reading(self, rows: pd.DataFrame) -> dict[str, Any]:
        """Return a model's three lists, the sentence in its template, and what is said of them."""
        after = rows.loc[rows["list"] == "after", ["token", "probability"]]
        said = [flat(list(after.itertuples(index=False))), still_said(self.sentence, after["token"].tolist())]
        lists = {heading: rows[rows["list"] == name].to_dict("records") for name, heading in LISTS.items()}
        return {
            "lists": lists, "filled": filled(rows["template"].iloc[0], self.sentence),
            "own": rows["own"].iloc[0], "said": " ".join(filter(None, said)),
        }  # fmt: skip

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a line per model with the words of its three lists, as PromptBERT's Table 7 has them."""
        words = frame.assign(model=frame["model"].map(title)).groupby(["model", "list"], sort=False)["token"]
        return words.agg(", ".join).unstack(sort=False)[list(LISTS)].rename(columns=LISTS).reset_index()

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return each model's three lists of tokens with their probabilities."""
        return {
            name: {each: words(rows[rows["list"] == each]) for each in LISTS}
            for name, rows in (frame.groupby("model", sort=False) if len(frame) else ())
        }


def words(rows: pd.DataFrame) -> list[list[Any]]:
    """Return the tokens of a list with their probabilities, best first, as JSON values."""
    return [list(pair) for pair in zip(rows["token"].tolist(), rows["probability"].tolist(), strict=True)]


def filled(template: str, sentence: str) -> tuple[str, str, str]:
    """Return what the template has before the sentence, the sentence, and what it has after it."""
    before, after = template.split("[X]")
    return before, sentence, after


def joined(names: Iterable[str]) -> str:
    """Return the titles of models: "SimCSE, PromptBERT and DCPCSE"."""
    *others, last = [title(name) for name in names] or [""]
    return f"{', '.join(others)} and {last}" if others else last
