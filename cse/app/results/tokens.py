"""The words at [MASK] in every model: before and after denoising, and under a template of the visitor's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app import validation
from cse.app.charts import by_model, chart, intervals, tips
from cse.app.corpus.corpora import DEMO
from cse.app.html import likely
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, by_models, listed, number, stacked, text, titled, whole
from cse.methods.templates import MANUAL, MEANS, MEANS_OF

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.state import Session
    from cse.encoder.encoder import Encoder

MAX_TOKENS = 30
SENTENCES = [
    "The doctor treated the patient in hospital.",
    "She planted tomatoes behind the house.",
    "The bank raised its interest rates.",
]
LISTS = {"sentence": "Sentence", "template": "Template alone", "denoised": "Denoised"}
FAINT = 0.01  # a probability of the likeliest word that tells nothing
MAX_CHARACTERS = 300  # of a template
FIELD = "The template"
TEMPLATES = ['"[X]" is a [MASK] one', MEANS.text, MEANS_OF.text, MANUAL.text, "[X] [MASK] ."]


@dataclass(frozen=True)
class Tokens(Result):
    """The likeliest words at [MASK] of a sentence, of the template alone, and of their difference."""

    key = "tokens"
    title = "What each model says at [MASK]"
    summary = (
        'The k likeliest tokens at [MASK]: {"simcse": {"sentence": [["cat", 0.1]], "template": [], "denoised": []}}. '
        '"sentence" is for the sentence in the template, "template" for that alone, "denoised" for their difference.'
    )
    words = ("[MASK] template", "denoising")
    examples = {sentence: (sentence,) for sentence in SENTENCES}  # noqa: RUF012
    corpus_examples = 1
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
        template only if that is its `own`. The page has no denoised list if the share to subtract is 0.
        """

        def rows(column: Column, encoder: Encoder) -> pd.DataFrame:
            spoken, alone = encoder.mask_logits(self.sentence)
            logits = {"sentence": spoken, "template": alone, "denoised": spoken - self.share * alone}
            likeliest = pd.DataFrame(
                [
                    (name, rank, token, probability)
                    for name, of_list in logits.items()
                    for rank, (token, probability) in enumerate(encoder.likeliest(of_list, self.k), start=1)
                ],
                columns=["list", "rank", "token", "probability"],
            )
            return likeliest.assign(
                of_template=likeliest["token"].isin(likeliest.loc[likeliest["list"] == "template", "token"]),
                template=encoder.prompt_template.text,
                own=encoder.prompt_template == encoder.reading.template,
            )

        return stacked(session.each(rows))

    def says(self, frame: pd.DataFrame) -> str:
        readers = frame[frame["own"]]
        counts = readers.groupby(["list", "model"])["of_template"].sum()
        parts = [
            f"{counts['sentence', name]} of {self.k} in {title(name)}"
            + (f", {counts['denoised', name]} after denoising" if self.share else "")
            for name in readers["model"].unique()
        ]
        return f"Words that the template says without the sentence, too: {'; '.join(parts)}." if parts else ""

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        lists = {key: heading for key, heading in LISTS.items() if self.share or key != "denoised"}
        readings = {
            name: {
                "lists": {heading: rows[rows["list"] == key].to_dict("records") for key, heading in lists.items()},
                "filled": filled(rows["template"].iloc[0], self.sentence), "own": rows["own"].iloc[0],
                "said": doubts(rows.loc[rows["list"] == "denoised", "probability"].max()) if self.share else "",
            }
            for name, rows in by_models(frame).items()
        }  # fmt: skip
        cards: dict[bool, list[tuple[str, list[tuple[str, str, dict[str, Any]]]]]] = {True: [], False: []}
        for name, start in with_starts(readings).items():
            phases = [("", name, readings[name])]
            if start:
                phases = [("Before training", start, readings[start]), ("After training", name, readings[name])]
            cards[readings[name]["own"]].append((name, phases))
        return {
            "readers": cards[True], "others": cards[False], "other_names": listed(name for name, _ in cards[False]),
            "top": frame["probability"].max(), "denoised": bool(self.share),
            "parts": frame["token"].str.startswith("##").any(),
        }  # fmt: skip

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        words = titled(frame).groupby(["model", "list"], sort=False)["token"]
        return words.agg(", ".join).unstack(sort=False)[list(LISTS)].rename(columns=LISTS).reset_index()

    def answer(self, frame: pd.DataFrame) -> Any:
        return {
            name: {
                key: list(map(list, zip(words["token"].tolist(), words["probability"].tolist(), strict=True)))
                for key in LISTS
                for words in [rows[rows["list"] == key]]
            }
            for name, rows in by_models(frame).items()
        }


def doubts(after: float) -> str:
    """Return what speaks against the likeliest words after denoising, if the first has too low a probability."""
    if after >= FAINT:
        return ""
    return f"No word stands out after denoising: the likeliest has {likely(after)}."


def filled(template: str, sentence: str) -> tuple[str, str, str]:
    """Return what the template has before the sentence, the sentence, and what it has after it."""
    before, after = template.split("[X]")
    return before, sentence, after


@dataclass(frozen=True)
class Template(Result):
    """The score on graded pairs and the words at [MASK] under another template, beside those of each model's own."""

    key = "template"
    title = "What if a model read another template?"
    button = "Try template"
    words = ("[MASK] template", "Spearman", "significance")
    examples = {template: (template,) for template in TEMPLATES}  # noqa: RUF012
    reads_corpus = False
    live = False  # it encodes 60 pairs by every model
    plots = 1

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "the text that replaces [X].")
    template: str = text("Template", TEMPLATES[0], FIELD, "a text with one [X], for the sentence, and one [MASK].")
    k: int = whole("Words per list", 8, "k", "how many tokens, 1 to 30.", 1, MAX_TOKENS, folded=True)

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per token: model, side (own or other), template, score, gain, rank, token, probability.

        Raises FieldError for a template without exactly one [X] and one [MASK].
        """
        from cse.analysis.template_lab import Question, compare, template_of
        from cse.corpus.supervised import scored_pairs

        if len(self.template) > MAX_CHARACTERS:
            reason = f"The template has {len(self.template):,} characters; give at most {MAX_CHARACTERS}."
            raise validation.FieldError(FIELD, reason)
        if (self.template.count("[X]"), self.template.count("[MASK]")) != (1, 1):
            reason = f'The template "{self.template}" needs one [X], for the sentence, and one [MASK].'
            raise validation.FieldError(FIELD, reason)
        question = Question(scored_pairs(DEMO / "pairs.tsv"), self.sentence, self.k)

        def rows(column: Column, encoder: Encoder) -> list[dict[str, Any]]:
            known = partial(session.state.models.encode, encoder)
            tried = compare(encoder, template_of(encoder, self.template), question, known)
            return [
                {
                    "side": side, "template": trial.template, "score": trial.score, "gain": tried.gain.value,
                    "low": tried.gain.low, "high": tried.gain.high, "rank": rank, "token": token,
                    "probability": probability,
                }
                for side, trial in (("own", tried.own), ("other", tried.other))
                for rank, (token, probability) in enumerate(trial.words, start=1)
            ]  # fmt: skip

        return stacked(session.each(rows))

    def says(self, frame: pd.DataFrame) -> str:
        gains = frame.drop_duplicates("model").set_index("model")
        sure = gains[(gains["low"] > 0) | (gains["high"] < 0)]
        parts = [
            f"{'gains' if gain > 0 else 'loses'} {abs(gain):.1f} points in {title(name)}"
            for name, gain in sure["gain"].items()
        ]
        rest = "differs in no model by more than chance" if sure.empty else "elsewhere nothing beyond chance"
        return f"Your template {', '.join([*parts, rest] if len(sure) < len(gains) else parts)}."

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        gains = frame.drop_duplicates("model")[["model", "gain", "low", "high"]]
        names = gains["model"].tolist()
        across = {"y": {"field": "model", "type": "nominal", "sort": None, "title": None},
                  "color": by_model(names, legend=False)}  # fmt: skip
        told = tips(model="model", gain="gain#", low="95 % from#", high="95 % to#")
        zero = {"mark": {"type": "rule", "aria": False, "strokeDash": [4, 4], "color": "#8391a7"},
                "encoding": {"x": {"datum": 0}}}  # fmt: skip
        layers = [zero, *intervals(across, "gain", "points over the own template", told)]
        return [chart(gains, "Gain of your template over each model's own", layer=layers, height=40 + 24 * len(names))]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        cards = []
        for name, rows in by_models(frame).items():
            sides = [
                {
                    "heading": heading, "score": tokens["score"].iloc[0], "words": tokens.to_dict("records"),
                    "filled": filled(tokens["template"].iloc[0], self.sentence),
                }
                for heading, side in (("Its own", "own"), ("Yours", "other"))
                for tokens in [rows[rows["side"] == side]]
            ]  # fmt: skip
            cards.append((name, sides, rows.iloc[0], "[MASK]" in rows["template"].iloc[0]))
        return {"cards": cards, "top": frame["probability"].max()}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        first = titled(frame[frame["rank"] == 1])
        scores = first.pivot(index="model", columns="side", values="score").loc[first["model"].unique()]
        gains = first.drop_duplicates("model").set_index("model")[["gain", "low", "high"]]
        named = {"own": "own template", "other": "this template", "low": "from", "high": "to"}
        return scores[["own", "other"]].join(gains).rename(columns=named).reset_index()

    def facts(self, frame: pd.DataFrame) -> list[str]:
        scores = "Scores are Spearman × 100 on the demo's 60 graded pairs"
        return [f"{scores}; the gain has its 95 % interval, not corrected for several models."]
