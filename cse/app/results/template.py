"""Every model under a template of the visitor's, and under its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app import validation
from cse.app.charts import by_model, chart, tips
from cse.app.models.naming import title
from cse.app.result import Result, text, whole
from cse.app.results.tokens import MAX_TOKENS, SENTENCES, filled, words
from cse.app.state.corpora import DEMO
from cse.methods.templates import MANUAL, MEANS, MEANS_OF

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

MAX_CHARACTERS = 300
FIELD = "The template"
TEMPLATES = ['"[X]" is a [MASK] one', MEANS.text, MEANS_OF.text, MANUAL.text, "[X] [MASK] ."]


@dataclass(frozen=True)
class Template(Result):
    """The score on graded pairs and the words at [MASK] under another template, beside those of each model's own."""

    key = "template"
    title = "What if a model read another template?"
    summary = (
        'Another template and each model\'s own: {"promptbert": {"own": {...}, "other": {...}, "gain": {...}}}. Each '
        'template is {"template": "...", "score": 71.2, "words": [["cat", 0.1], ...]}: Spearman x 100 of the demo\'s '
        'graded pairs, and the k likeliest denoised tokens. "gain" has the bounds of its 95 % bootstrap interval.'
    )
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

        def rows(column: Column, encoder: Encoder) -> pd.DataFrame:
            known = session.state.models.reader(encoder).encode
            tried = compare(encoder, template_of(encoder, self.template), question, known)
            return pd.DataFrame(
                [
                    (column.name, side, trial.template, trial.score, tried.gain.value, tried.gain.low, tried.gain.high,
                     rank, token, probability)
                    for side, trial in (("own", tried.own), ("other", tried.other))
                    for rank, (token, probability) in enumerate(trial.words, start=1)
                ],
                columns=[
                    "model", "side", "template", "score", "gain", "low", "high", "rank", "token", "probability"
                ],
            )  # fmt: skip

        answers = session.each(rows)
        return pd.concat(answers.values(), ignore_index=True) if answers else pd.DataFrame()

    def says(self, frame: pd.DataFrame) -> str:
        """Return in which models the other template changes the score, by more than chance."""
        gains = frame.drop_duplicates("model").set_index("model")
        sure = gains[(gains["low"] > 0) | (gains["high"] < 0)]
        parts = [
            f"{'gains' if gain > 0 else 'loses'} {abs(gain):.1f} points in {title(name)}"
            for name, gain in sure["gain"].items()
        ]
        rest = "in no model more than chance" if sure.empty else "elsewhere nothing beyond chance"
        return f"Your template {', '.join([*parts, rest] if len(sure) < len(gains) else parts)}."

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the gain over the own template with its 95 % interval."""
        gains = frame.drop_duplicates("model")[["model", "gain", "low", "high"]]
        names = gains["model"].tolist()
        at: dict[str, Any] = {"y": {"field": "model", "type": "nominal", "sort": None, "axis": {"title": None}},
              "color": by_model(names, legend=False),
              "tooltip": tips(model="model", gain="gain#", low="95 % from#", high="95 % to#")}  # fmt: skip
        x: dict[str, Any] = {"type": "quantitative", "axis": {"title": "points over the own template", "tickCount": 8}}
        layers = [
            {"mark": {"type": "rule", "aria": False, "strokeDash": [4, 4], "color": "#8391a7"},
             "encoding": {"x": {"datum": 0}}},
            {"mark": {"type": "rule", "strokeWidth": 2},
             "encoding": {**at, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "circle", "size": 90}, "encoding": {**at, "x": {**x, "field": "gain"}}},
        ]  # fmt: skip
        return [chart(gains, "Gain of your template over each model's own", layer=layers, height=40 + 24 * len(names))]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return a card per model with its two templates: score, words, and the sentence in them."""
        cards = []
        for name, rows in frame.groupby("model", sort=False):
            sides = [
                {
                    "heading": heading, "score": tokens["score"].iloc[0], "words": tokens.to_dict("records"),
                    "filled": filled(tokens["template"].iloc[0], self.sentence),
                }
                for heading, side in (("Its own", "own"), ("Yours", "other"))
                for tokens in [rows[rows["side"] == side]]
            ]  # fmt: skip
            gain = {key: rows[key].iloc[0] for key in ("gain", "low", "high")}
            cards.append((name, sides, gain, "[MASK]" in rows["template"].iloc[0]))
        return {"cards": cards, "top": frame["probability"].max()}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a line per model: both scores, the gain and its interval."""
        first = frame[frame["rank"] == 1].assign(model=frame["model"].map(title))
        scores = first.pivot(index="model", columns="side", values="score")[["own", "other"]]
        return scores.join(first.drop_duplicates("model").set_index("model")[["gain", "low", "high"]]).reset_index()

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return each model's two templates with their scores and words, and the gain of the other one."""
        answers = {}
        for name, rows in frame.groupby("model", sort=False) if len(frame) else ():
            first = rows.iloc[0]
            gain = {"value": float(first["gain"]), "low": float(first["low"]), "high": float(first["high"])}
            sides = {
                side: {
                    "template": each["template"].iloc[0],
                    "score": float(each["score"].iloc[0]),
                    "words": words(each),
                }
                for side, each in rows.groupby("side", sort=False)
            }
            answers[str(name)] = {**sides, "gain": gain}
        return answers
