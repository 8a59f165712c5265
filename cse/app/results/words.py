"""What moves a vector: each word of a pair, and small changes of a sentence, generated or typed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.analysis.attribution import PERTURBATIONS
from cse.app.models.naming import with_starts
from cse.app.result import Result, by_models, lines, listed, percent, stacked, text, wide
from cse.app.results.similarity import PAIRS, by_answer
from cse.app.validation import PAIR, FieldError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from cse.app.models.models import Column
    from cse.app.state import Session
    from cse.encoder.encoder import Encoder

MAX_VARIANTS = 20
SENTENCES = [
    "Anna will not meet Peter in Rome on 12 May.",
    "The dog chased the cat through the garden.",
    "The new phone is cheaper than the old one.",
]
ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # of the bars
MEANINGS = {True: "keeps the meaning", False: "changes the meaning"}
MEANS = {True: "where the meaning is kept", False: "where the meaning is changed"}
MINUS = "\N{MINUS SIGN}"
UNHEARD = 0.1  # of the way to an unrelated sentence


@dataclass(frozen=True)
class Words(Result):
    """How much the cosine of two sentences falls without each of their words, in every model."""

    key = "words"
    title = "Which words matter?"
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

        texts, spans = (self.s1, self.s2), []
        for field, sentence in zip(PAIR, texts, strict=True):
            try:
                spans.append(words_within(sentence, field))
            except ValueError as error:
                raise FieldError(field, str(error)) from error

        def rows(column: Column, encoder: Encoder) -> list[dict[str, Any]]:
            attribution = attribute(partial(session.state.models.encode, encoder), *texts)
            return [
                {
                    "sentence": side + 1, "from": start, "to": end, "word": texts[side][start:end],
                    "value": float(value), "cosine": attribution.cosine, "error": attribution.errors[side],
                }
                for side in (0, 1)
                for (start, end), value in zip(spans[side], attribution.values[side], strict=True)
            ]  # fmt: skip

        return stacked(session.each(rows))

    def says(self, frame: pd.DataFrame) -> str:
        trained = frame[frame["model"].isin(list(with_starts(frame["model"].unique())))]
        first = trained.loc[trained.groupby("model", sort=False)["value"].idxmax()]
        words = {row.model: f"“{row.word}”" if row.value > 0 else "no word" for row in first.itertuples()}
        return f"What draws the two together most: {by_answer(words)}."

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        from cse.corpus.words import word_notes

        largest, texts = frame["value"].abs().max() or 1.0, (self.s1, self.s2)
        cards = {
            name: ([pieces(texts[side - 1], words, largest) for side, words in rows.groupby("sentence")],
                   rows["cosine"].iloc[0])
            for name, rows in by_models(frame).items()
        }  # fmt: skip
        return {"cards": cards, "word_notes": word_notes(texts, texts)}


def pieces(text: str, words: pd.DataFrame, largest: float) -> list[tuple[str, str, int]]:
    """Return a text cut at its words: text, the value of a word as +.05 or "", and its tint from -100 to 100."""
    parts, end = [], 0
    for word in words.to_dict("records"):
        size = f"{abs(word['value']):.2f}".removeprefix("0")
        shown = "0" if size == ".00" else f"{'+' if word['value'] > 0 else MINUS}{size}"
        parts.append((text[end : word["from"]], "", 0))
        parts.append((word["word"], shown, round(100 * word["value"] / largest)))
        end = word["to"]
    return [*parts, (text[end:], "", 0)]


@dataclass(frozen=True)
class Changes(Result):
    """How far each change of a sentence moves its vector, as a share of the way to an unrelated sentence."""

    key = "changes"
    title = "What changes the vector?"
    examples = {sentence: (sentence,) for sentence in SENTENCES}  # noqa: RUF012
    corpus_examples = 1

    sentence: str = text(
        "Sentence", SENTENCES[0], "The sentence", "the text to change: a word less, a negation, and so on.",
        link="sentence",
    )  # fmt: skip
    variants: str = lines(
        f"Your variants, one per line (at most {MAX_VARIANTS})", "", "Your list of variants",
        "up to 20 variants of your own, separated by newlines.", 1, MAX_VARIANTS, folded=True, may_be_empty=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model and change: its name, whether it keeps the meaning, the changed text, cosine, moved.

        `keeps` is missing for a variant of the visitor's; these come first. `moved` is 1 for the distance of the median
        random pair.
        """
        from cse.analysis.calibration import displacement
        from cse.vectors import cosines

        own = [(f"variant {number}", None, line) for number, line in enumerate(self.variants.splitlines(), start=1)]
        made = [(kind.name, kind.keeps, kind.apply(self.sentence)) for kind in PERTURBATIONS]
        changes = [*own, *((name, keeps, changed) for name, keeps, changed in made if changed)]
        if not changes:
            session.notes.append("No change applies to this sentence; write a longer one.")
            return pd.DataFrame()

        def rows(column: Column, encoder: Encoder, vectors: np.ndarray) -> pd.DataFrame:
            table = pd.DataFrame(changes, columns=["name", "keeps", "changed"]).astype({"keeps": object})
            table["cosine"] = cosines(vectors[:1].repeat(len(changes), axis=0), vectors[1:])
            random = session.reference.random_cosines(column, encoder)
            return table.assign(moved=[displacement(cosine, random) for cosine in table["cosine"]])

        return stacked(session.each_text([self.sentence, *(changed for *_, changed in changes)], rows))

    def says(self, frame: pd.DataFrame) -> str:
        trained = list(with_starts(frame["model"].unique()))
        said = []
        for name, rows in frame[frame["model"].isin(trained)].groupby("name", sort=False):
            if rows["keeps"].isna().all() or name == "negated":
                moved = dict(zip(rows["model"], rows["moved"], strict=True))
                said.append(reaction(moved, "the negation" if name == "negated" else str(name)))
        return " ".join(said)

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        shares = frame.pivot(index="name", columns="model", values="moved").to_dict("index")
        end = next((end for end in ENDS if end >= frame["moved"].max()), ENDS[-1])
        shown = [
            (row.name, MEANINGS.get(row.keeps, "yours"), row.changed, shares[row.name])
            for row in frame.drop_duplicates("name").drop(columns="model").itertuples(index=False, name="Change")
        ]
        for keeps, rows in frame.dropna(subset="keeps").groupby("keeps", sort=False):
            shown.append(("mean", "", MEANS[keeps], rows.groupby("model")["moved"].mean().to_dict()))
        return {
            "shown": shown, "starts": with_starts(frame["model"].unique()), "end": end,
            "mark": UNHEARD / end if end > UNHEARD else None, "unheard": percent(UNHEARD),
        }  # fmt: skip

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        return wide(frame, "name", "moved")


def reaction(moved: Mapping[str, float], what: str) -> str:
    """Return which models `what` moves little; `moved` is the share of the way to an unrelated sentence by model."""
    deaf = [name for name, share in moved.items() if share < UNHEARD]
    least, most = (f"{max(0, round(100 * end(moved.values())))}" for end in (min, max))
    share = least if least == most else f"{least} to {most}"
    said = f"{what} moves the vector {share} % of the way to an unrelated sentence"
    little = f", in {listed(deaf)} less than {percent(UNHEARD)}" if 0 < len(deaf) < len(moved) else ""
    return f"{said[:1].upper()}{said[1:]}{little}."
