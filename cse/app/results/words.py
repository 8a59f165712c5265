"""The words behind a pair's cosine: how much it falls without each of them, in every model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app.drawing.verdicts import by_answer
from cse.app.models.naming import with_starts
from cse.app.result import Result, text
from cse.app.results.similarity import PAIRS
from cse.app.validation import PAIR, FieldError

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Words(Result):
    """How much the cosine of two sentences falls without each of their words, in every model."""

    key = "words"
    title = "Which words matter?"
    summary = (
        'Cosine attribution to words: {"simcse": {"cosine": 0.8, "words": [[["cat", 0.1]], ...], "errors": [0, 0]}}. '
        "A word's number is the cosine minus the cosine without it; an error is the sum of a sentence's numbers minus "
        "what leaving out all of its words at once takes away."
    )
    button = "Leave out each word"
    live = False
    reads_corpus = False

    s1: str = text(PAIR[0], PAIRS["paraphrase"][0], PAIR[0], "a sentence of 1 to 64 words.")
    s2: str = text(PAIR[1], PAIRS["paraphrase"][1], PAIR[1], "the sentence to compare it with, of 1 to 64 words.")

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model and word: sentence (1 or 2), from, to, word, value, and the cosine of the pair.

        `error` is the completeness error of the sentence (`cse.analysis.attribution`).
        """
        from cse.analysis.attribution import attribute, words_within

        spans = []
        for field, sentence in zip(PAIR, (self.s1, self.s2), strict=True):
            try:
                spans.append(words_within(sentence, field))
            except ValueError as error:
                raise FieldError(field, str(error)) from error

        def rows(column: Column, encoder: Encoder) -> pd.DataFrame:
            attribution = attribute(session.state.models.reader(encoder).encode, self.s1, self.s2)
            return pd.DataFrame(
                [
                    {
                        "model": column.name, "sentence": side + 1, "from": start, "to": end,
                        "word": (self.s1, self.s2)[side][start:end], "value": float(value),
                        "cosine": attribution.cosine, "error": attribution.errors[side],
                    }
                    for side in (0, 1)
                    for (start, end), value in zip(spans[side], attribution.values[side], strict=True)
                ]
            )  # fmt: skip

        tables = session.each(rows)
        return pd.concat(tables.values(), ignore_index=True) if tables else pd.DataFrame()

    def says(self, frame: pd.DataFrame) -> str:
        """Return the word of each model that draws the sentences together most."""
        trained = frame[frame["model"].isin(list(with_starts(frame["model"].unique())))]
        first = trained.loc[trained.groupby("model", sort=False)["value"].idxmax()]
        words = {row.model: f"“{row.word}”" if row.value > 0 else "no word" for row in first.itertuples()}
        return f"What draws the two together most: {by_answer(words)}."

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return both sentences for each model, cut at the words, which have a value and a tint from -100 to 100."""
        from cse.corpus.words import word_notes

        largest = frame["value"].abs().max() or 1.0
        texts = (self.s1, self.s2)
        cards = {}
        for name, of_model in frame.groupby("model", sort=False):
            sides = [of_model[of_model["sentence"] == number] for number in (1, 2)]
            cut = [
                pieces(text, [(row["from"], row["to"], row["value"]) for row in rows.to_dict("records")], largest)
                for text, rows in zip(texts, sides, strict=True)
            ]
            cards[name] = cut, of_model["cosine"].iloc[0]
        return {"cards": cards, "word_notes": word_notes(texts, texts)}

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return each model's cosine, the values of the words of both sentences, and the completeness errors."""
        answers = {}
        for name, of_model in frame.groupby("model", sort=False) if len(frame) else ():
            sides = [rows for _, rows in of_model.groupby("sentence")]
            answers[name] = {
                "cosine": float(of_model["cosine"].iloc[0]), "errors": [float(rows["error"].iloc[0]) for rows in sides],
                "words": [rows[["word", "value"]].to_numpy().tolist() for rows in sides],
            }  # fmt: skip
        return answers


def pieces(text: str, values: list[tuple[int, int, float]], largest: float) -> list[tuple[str, str, int]]:
    """Return a text cut at its words: text, the value of a word as +.05 or "", and its tint from -100 to 100."""
    parts, end = [], 0
    for start, stop, value in values:
        parts.append((text[end:start], "", 0))
        parts.append((text[start:stop], signed(value), round(100 * value / largest)))
        end = stop
    return [*parts, (text[end:], "", 0)]


def signed(value: float) -> str:
    """Return a difference of cosines with its sign and two decimals: +.05, or 0."""
    shown = f"{abs(value):.2f}".removeprefix("0")
    return "0" if shown == ".00" else f"{'+' if value > 0 else MINUS}{shown}"
