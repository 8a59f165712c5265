"""A sentence among templates that affirm and deny it (ConPVP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app.charts import chart, tips
from cse.app.models.naming import title
from cse.app.result import Result, text, whole
from cse.app.results.tokens import SENTENCES, joined

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

KINDS = {"affirms": "#2171b5", "denies": "#d9730d"}


@dataclass(frozen=True)
class Prototypes(Result):
    """The cosines of a sentence with its prototypes, the templates that affirm it and those that deny it."""

    key = "prototypes"
    title = "Which prototypes are near?"
    summary = (
        'Prototypes, nearest first: {"conpvp": [{"rank": 1, "template": "[X] means [MASK]", "kind": "affirms", '
        '"cosine": 0.9}, ...]}, of the models that were trained with prototypes.'
    )
    button = "Compare prototypes"
    words = ("prototype",)
    reads_corpus = False
    live = False  # a fold that is closed costs nothing
    plots = 1
    separable = False

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "the text to analyse.")
    near: int = whole(
        "Prototypes in the table", 20, "The number of prototypes", "how many the page's table has; the answer has all.",
        1, 40, folded=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per prototype, nearest first: model, rank, template, kind, cosine."""
        from cse.analysis.prefix_analysis import has_prototypes, prototypes

        def rows(column: Column, encoder: Encoder) -> list[dict[str, Any]]:
            near = prototypes(encoder, self.sentence) if has_prototypes(encoder) else []
            return [
                {
                    "model": column.name, "rank": rank, "template": each.template,
                    "kind": "affirms" if each.positive else "denies", "cosine": each.cosine,
                }
                for rank, each in enumerate(near, start=1)
            ]  # fmt: skip

        answers = session.each(rows)
        if absent := [name for name, each in answers.items() if not each]:
            were = "was" if len(absent) == 1 else "were"
            session.notes.append(f"{joined(absent)} {were} trained without prototypes.")
        return pd.DataFrame([row for each in answers.values() for row in each])

    def says(self, frame: pd.DataFrame) -> str:
        """Return the nearest prototype of each model, and its mean cosine with those that affirm and that deny."""
        means = frame.groupby(["model", "kind"])["cosine"].mean()
        parts = []
        for name, rows in frame.groupby("model", sort=False):
            by_kind = [f"{means[name, kind]:.2f} where it {kind}" for kind in KINDS if (name, kind) in means]
            first = rows.iloc[0]
            parts.append(f"The prototype nearest in {title(str(name))} {first['kind']}: “{first['template']}”.")
            parts.append(f"The mean cosine is {' and '.join(by_kind)}.")
        return " ".join(parts)

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the cosines of both kinds on one axis, a row per model."""
        scale = {"domain": list(KINDS), "range": list(KINDS.values())}
        encoding = {
            "x": {"field": "cosine", "type": "quantitative", "scale": {"zero": False}},
            "y": {"field": "model", "type": "nominal", "sort": None, "axis": {"title": None}},
            "yOffset": {"field": "kind", "type": "nominal"},
            "color": {"field": "kind", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "top"}},
            "shape": {"field": "kind", "type": "nominal", "scale": {"domain": list(KINDS)}},
            "tooltip": tips(template="template", kind="kind", cosine="cosine#"),
        }
        mark, height = {"type": "point", "filled": True, "size": 70}, 60 + 50 * frame["model"].nunique()
        return [chart(frame, "Cosines with the prototypes", height=height, mark=mark, encoding=encoding)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the nearest prototypes of each model."""
        near = frame[frame["rank"] <= self.near].groupby("model", sort=False)
        return {"tables": {name: rows.to_dict("records") for name, rows in near}, "read": self.sentence}
