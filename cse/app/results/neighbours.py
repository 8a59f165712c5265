"""Changes between two models: how many of a text's nearest texts they share, and the texts that change most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app.models.naming import title
from cse.app.result import Result, choice, records, whole
from cse.app.results.map import MAX_POINTS, MIN_POINTS, Map, by_models, near_of
from cse.app.validation import FieldError, one_of

if TYPE_CHECKING:
    from cse.app.session import Session

MAX_SHOWN = 12
BEFORE = " (before)"


@dataclass(frozen=True)
class Neighbours(Result):
    """The nearest texts of each text in two models, those that change most first."""

    key = "neighbours"
    title = "Changes"
    summary = (
        "How the neighbourhoods of texts change between two models: "
        '{"first": "simcse", "second": "conpvp", "shared": 0.4, "texts": [{"row": 3, "shared": 1, ...}]}.'
    )
    lane = "maps"
    separable = ships = False

    first: str = choice("First model", "", "The first model", "the name of a model, by default as on the page.", ())
    second: str = choice("Second model", "", "The second model", "the name of another one.", ())
    most: int = whole("Points at most", MAX_POINTS, "The most points", "as of the map.", MIN_POINTS, MAX_POINTS)

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each text, as `of_map`. Raises FieldError for an unknown model."""
        return self.of_map(Map(most=self.most).frame(session))

    def of_map(self, drawn: pd.DataFrame) -> pd.DataFrame:
        """Return row, text, the two lists of neighbours by position, how many both have, and how far the point moves.

        The texts that share least come first; of these, those whose points are farthest apart on the two maps.
        """
        models = by_models(drawn) if len(drawn) else {}
        first, second = pair_of(list(models), self.first, self.second)
        if not second:
            return pd.DataFrame()
        one, other = models[first], models[second]
        near = near_of(one), near_of(other)
        changed = pd.DataFrame({
            "first": first, "second": second, "position": one["position"], "row": one["row"], "text": one["text"],
            "shared": (near[0][:, :, None] == near[1][:, None, :]).any(axis=2).sum(axis=1), "of": near[0].shape[1],
            "moved": np.hypot(one["x"] - other["x"], one["y"] - other["y"]), "near_first": near[0].tolist(),
            "near_second": near[1].tolist(),
        })  # fmt: skip
        texts = one["text"].to_numpy()
        for side in ("first", "second"):
            changed[f"texts_{side}"] = [texts[positions].tolist() for positions in changed[f"near_{side}"]]
        return changed.sort_values(["shared", "moved"], ascending=[True, False], kind="stable").reset_index(drop=True)

    def says(self, frame: pd.DataFrame) -> str:
        """Return how much of the neighbourhoods the two models share."""
        line, none = frame.iloc[0], int((frame["shared"] == 0).sum())
        share = 1 - frame["shared"].mean() / max(1, line["of"])
        return (
            f"{title(line['first'])} and {title(line['second'])} differ in {100 * share:.0f} % of a text's "
            f"{line['of']} nearest texts; {none:,} of {len(frame):,} texts share none of them."
        )

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the histogram of the shared neighbours."""
        from cse.app.charts import chart

        encoding = {
            "x": {"field": "shared", "type": "ordinal", "title": "nearest texts in common"},
            "y": {"field": "texts", "type": "quantitative"},
        }
        counted = pd.DataFrame(self.bars(frame))
        return [chart(counted, "Texts by the nearest texts that both models have", mark="bar", encoding=encoding)]

    def bars(self, frame: pd.DataFrame) -> list[dict[str, int]]:
        """Return the number of texts for each number of shared neighbours."""
        counts = np.bincount(frame["shared"], minlength=int(frame["of"].iloc[0]) + 1).tolist()
        return [{"shared": shared, "texts": texts} for shared, texts in enumerate(counts)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the histogram and the texts that change most, each with both neighbourhoods."""
        bars = self.bars(frame)
        most = max(bar["texts"] for bar in bars)
        return {
            "first": frame["first"].iloc[0], "second": frame["second"].iloc[0], "of": int(frame["of"].iloc[0]),
            "bars": [{**bar, "height": bar["texts"] / most} for bar in bars],
            "changed": [
                {
                    "text": line["text"], "position": line["position"], "row": line["row"], "shared": line["shared"],
                    "sides": [
                        [
                            {"position": position, "text": text, "both": position in set(line[f"near_{other}"])}
                            for position, text in zip(line[f"near_{side}"], line[f"texts_{side}"], strict=True)
                        ]
                        for side, other in (("first", "second"), ("second", "first"))
                    ],
                }
                for line in frame.head(MAX_SHOWN).to_dict("records")
            ],
        }  # fmt: skip

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the two models, the mean share of common neighbours, and the texts."""
        if frame.empty:
            return {"texts": []}
        kept = frame[["row", "text", "shared", "texts_first", "texts_second"]]
        share = float(frame["shared"].mean()) / max(1, int(frame["of"].iloc[0]))
        return {
            "first": frame["first"].iloc[0], "second": frame["second"].iloc[0], "shared": share, "texts": records(kept)
        }  # fmt: skip


def pair_of(names: Sequence[str], first: str = "", second: str = "") -> tuple[str, str]:
    """Return the two models to compare: those named, or a model before and after its training, or the first two.

    The second is "" of fewer than two models. Raises FieldError for an unknown name, and for twice the same.
    """
    for name, field in ((first, "The first model"), (second, "The second model")):
        if name:
            one_of(name, field, names)
    trained = next((name for name in names if f"{name}{BEFORE}" in names), "")
    default = [f"{trained}{BEFORE}", trained] if trained else list(names)
    first = first or next((name for name in default if name != second), "")
    second = second or next((name for name in default if name != first), "")
    if second and first == second:
        raise FieldError("The second model", "The second model is the first one; choose another.")
    return first, second
