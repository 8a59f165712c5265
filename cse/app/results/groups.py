"""Groups of texts in each model: their words and labels, typical and odd texts, and where other models put them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app.drawing.palette import DARK, LIGHT
from cse.app.models.naming import title
from cse.app.result import Result, choice, whole
from cse.app.results.map import GROUPS, MAX_GROUPS, MAX_POINTS, MIN_POINTS, Map, by_models
from cse.app.validation import one_of

if TYPE_CHECKING:
    from cse.app.session import Session

SIGNS, GREY = "●■▲◆", "#7a89a0"  # the shapes of the points on the maps, and the colour of groups beyond the hues
MAX_TEXTS, MAX_ELSEWHERE = 5, 3  # typical texts and odd ones; groups of another model


@dataclass(frozen=True)
class Groups(Result):
    """The k-means groups of the texts in one model, and what the other models do with each."""

    key = "groups"
    title = "Groups"
    summary = 'Groups of texts: {"simcse": [{"group": 1, "name": "dog cat", "size": 90, "typical": ["..."], ...}]}.'
    lane = "maps"
    separable = ships = False

    model: str = choice("Model", "", "The model", "the model to list, by default all.", ())
    groups: int = whole("Groups", GROUPS, "The number of groups", "how many groups.", 1, MAX_GROUPS)
    most: int = whole("Points at most", MAX_POINTS, "The most points", "as of the map.", MIN_POINTS, MAX_POINTS)

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each model and group, as `of_map`."""
        drawn = Map(groups=self.groups, most=self.most).frame(session)
        if self.model:
            one_of(self.model, "The model", [column.name for column in session.columns])
        return self.of_map(drawn)

    def of_map(self, drawn: pd.DataFrame) -> pd.DataFrame:
        """Return the groups of a map's table: size, most frequent label with its share, typical and odd positions.

        `elsewhere` are, by other model, the groups there that have most of its texts, each with their number.
        """
        from cse.analysis.topics import majority

        models = by_models(drawn) if len(drawn) else {}
        lines = []
        for name, rows in models.items():
            if self.model not in ("", name):
                continue
            for group, members in rows.groupby("group"):
                named = None if members["label"].isna().all() else majority(members["label"])
                ranked = members.sort_values("typicality", ascending=False, kind="stable")["position"].tolist()
                lines.append({
                    "model": name, "group": group, "name": members["name"].iloc[0], "words": members["words"].iloc[0],
                    "size": len(members), "label": named and named[0], "share": named and named[1],
                    "typical": ranked[:MAX_TEXTS], "odd": ranked[: max(MAX_TEXTS, len(ranked) - MAX_TEXTS) - 1 : -1],
                    "elsewhere": {
                        other: elsewhere(there.loc[members.index]) for other, there in models.items() if other != name
                    },
                })  # fmt: skip
        groups = pd.DataFrame(lines)
        texts = next(iter(models.values()))["text"].tolist() if models else []
        for role in ("typical", "odd") if len(groups) else ():
            groups[f"{role}_texts"] = [[texts[position] for position in positions] for positions in groups[role]]
        return groups

    def says(self, frame: pd.DataFrame) -> str:
        """Return the group that the other models keep together least."""
        kept = [
            np.mean([there[0]["count"] / size for there in others.values()]) if others else np.nan
            for others, size in zip(frame["elsewhere"], frame["size"], strict=True)
        ]
        large = pd.Series(kept)[frame["size"].to_numpy() >= 2 * MAX_TEXTS].dropna()
        if large.empty:
            return ""
        split, whole_ = frame.iloc[large.idxmin()], frame.iloc[large.idxmax()]
        if split.name == whole_.name:
            return ""
        return (
            f"Other models agree least on “{split['name']}” of {title(split['model'])}: their largest part of it has "
            f"{100 * large.min():.0f} % on average; of “{whole_['name']}” it has {100 * large.max():.0f} %."
        )

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the groups of the first model."""
        model = frame["model"].iloc[0]
        groups = [
            {**line, **{scheme: colour_of(line["group"], hues) for scheme, hues in (("light", LIGHT), ("dark", DARK))},
             "sign": SIGNS[(line["group"] - 1) % len(SIGNS)]}
            for line in frame[frame["model"] == model].to_dict("records")
        ]  # fmt: skip
        return {"model": model, "groups": groups}


def colour_of(group: int, hues: Sequence[str]) -> str:
    """Return the colour of a group's points on the maps (static/map.js)."""
    return hues[group - 1] if group <= len(hues) else GREY


def elsewhere(there: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the groups of another model that have most of these rows."""
    numbers, first, counts = np.unique(there["group"], return_index=True, return_counts=True)
    best = np.argsort(-counts, kind="stable")[:MAX_ELSEWHERE]
    names = there["name"].to_numpy()
    return [{"group": int(numbers[at]), "name": names[first[at]], "count": int(counts[at])} for at in best]
