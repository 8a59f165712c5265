"""What the maps show beside them: the groups of each model, and how neighbourhoods change between two models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app.html import DARK, LIGHT
from cse.app.models.naming import title
from cse.app.result import Result, by_models, choice, fields_of, further_columns, percent, records, whole
from cse.app.results.colourings import looks_of
from cse.app.results.map import GROUPS, MAX_GROUPS, MAX_POINTS, MIN_POINTS, Map, near_of, pair_of
from cse.app.results.map import OWN_COLUMNS as MAP_COLUMNS
from cse.app.validation import one_of

if TYPE_CHECKING:
    from cse.app.state import Session

SIGNS = "●■▲◆○□△◇"  # the shapes of the points on the maps
MAX_TEXTS, MAX_ELSEWHERE = 5, 3  # typical texts and odd ones; groups of another model
MAX_SHOWN = 6  # texts that change most
OWN_COLUMNS = (  # of the changes
    "first", "second", "position", "row", "text", "shared", "of", "moved", "near_first", "near_second", "texts_first",
    "texts_second",
)  # fmt: skip


@dataclass(frozen=True)
class Groups(Result):
    """The k-means groups of the texts in one model, and what the other models do with each."""

    key = "groups"
    title = "Groups"
    lane = "maps"
    ships = False

    model: str = choice("Model", "", "The model", "the model to list, by default all.", ())
    groups: int = whole("Groups", GROUPS, "The number of groups", "how many groups.", 1, MAX_GROUPS)
    most: int = whole("Points at most", MAX_POINTS, "The most points", "as of the map.", MIN_POINTS, MAX_POINTS)

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each model and group: name, words, size, label, typical and odd texts."""
        drawn = Map(groups=self.groups, most=self.most).frame(session)
        if self.model:
            one_of(self.model, "The model", [column.name for column in session.columns])
        return self.of_map(drawn)

    def of_map(self, drawn: pd.DataFrame) -> pd.DataFrame:
        """Return the groups of a map's table: size, main label, its share and that of no label, typical and odd texts.

        `elsewhere` are, by other model, the groups there that have most of its texts, each with their number.
        """
        from cse.analysis.topics import majority

        if drawn.empty:  # no model has answered
            return drawn
        models, lines = by_models(drawn), []
        for name, rows in models.items():
            if self.model not in ("", name):
                continue
            others = {other: there for other, there in models.items() if other != name}
            for group, members in rows.groupby("group"):
                labels = members["label"].fillna("").tolist()
                label, share = majority(labels) or (None, None)
                ranked = members.sort_values("typicality", ascending=False, kind="stable")
                different = ranked.drop_duplicates("text")
                typical, odd = different.head(MAX_TEXTS), different.iloc[MAX_TEXTS:].tail(MAX_TEXTS)[::-1]
                lines.append({
                    "model": name, "group": group, "name": members["name"].iloc[0], "words": members["words"].iloc[0],
                    "size": len(members), "label": label, "share": share, "unlabelled": labels.count("") / len(labels),
                    "typical": typical["position"].tolist(), "odd": odd["position"].tolist(),
                    "elsewhere": {other: elsewhere(there.loc[members.index]) for other, there in others.items()},
                    "typical_texts": typical["text"].tolist(), "odd_texts": odd["text"].tolist(),
                })  # fmt: skip
        groups = pd.DataFrame(lines)
        groups.attrs["looks"] = looks_of(drawn)
        return groups

    def says(self, frame: pd.DataFrame) -> str:
        kept = [
            np.mean([there[0]["count"] / size for there in others.values()]) if others else np.nan
            for others, size in zip(frame["elsewhere"], frame["size"], strict=True)
        ]
        large = pd.Series(kept)[frame["size"].to_numpy() >= 2 * MAX_TEXTS].dropna()
        if large.empty or large.idxmin() == large.idxmax():
            return ""
        split, together = frame.iloc[large.idxmin()], frame.iloc[large.idxmax()]
        several = len(split["elsewhere"]) > 1
        return (
            f"{'Other models break' if several else 'The other model breaks'} up “{split['name']}” most: "
            f"{'on average ' * several}{percent(large.min())} of its texts stay together; of “{together['name']}” "
            f"{percent(large.max())} do."
        )

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        model, shown = next(iter(by_models(frame).items()))
        groups = []
        for line in shown.to_dict("records"):
            hue, sign = frame.attrs["looks"][line["group"]]
            groups.append({**line, "light": LIGHT[hue], "dark": DARK[hue], "sign": SIGNS[sign]})
        return {"model": model, "shown": groups}


def elsewhere(there: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the groups of another model that have most of these rows."""
    numbers, first, counts = np.unique(there["group"], return_index=True, return_counts=True)
    best = np.argsort(-counts, kind="stable")[:MAX_ELSEWHERE]
    names = there["name"].to_numpy()
    return [{"group": int(numbers[at]), "name": names[first[at]], "count": int(counts[at])} for at in best]


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
    ships = False

    first: str = choice("First model", "", "The first model", "the name of a model, by default as on the page.", ())
    second: str = choice("Second model", "", "The second model", "the name of another one.", ())
    most: int = whole("Points at most", MAX_POINTS, "The most points", "as of the map.", MIN_POINTS, MAX_POINTS)

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each text, as `of_map`. Raises FieldError for an unknown model."""
        return self.of_map(Map(most=self.most).frame(session))

    def of_map(self, drawn: pd.DataFrame) -> pd.DataFrame:
        """Return row, text, the two lists of neighbours by position, how many both have, and how far the point moves.

        The texts that share least come first; of these, those whose points are farthest apart on the two maps. The
        columns of the corpus are the last; one that has a name of ours ends with a blank.
        """
        models = by_models(drawn)
        first, second = pair_of(list(models), self.first, self.second)
        if not second:
            return pd.DataFrame()
        one, other = models[first], models[second]
        near, texts = (near_of(one), near_of(other)), one["text"].to_numpy()
        changed = pd.DataFrame({
            "first": first, "second": second, "position": one["position"], "row": one["row"], "text": one["text"],
            "shared": (near[0][:, :, None] == near[1][:, None, :]).any(axis=2).sum(axis=1), "of": near[0].shape[1],
            "moved": np.hypot(one["x"] - other["x"], one["y"] - other["y"]), "near_first": near[0].tolist(),
            "near_second": near[1].tolist(), "texts_first": texts[near[0]].tolist(),
            "texts_second": texts[near[1]].tolist(),
        })  # fmt: skip
        cells = one[further_columns(one, MAP_COLUMNS)].rename(columns=str.strip)
        changed = changed.join(cells.rename(columns=lambda name: f"{name} " if name in OWN_COLUMNS else name))
        return changed.sort_values(["shared", "moved"], ascending=[True, False], kind="stable").reset_index(drop=True)

    def says(self, frame: pd.DataFrame) -> str:
        line, none = frame.iloc[0], int((frame["shared"] == 0).sum())
        share = 1 - frame["shared"].mean() / max(1, line["of"])
        return (
            f"{title(line['first'])} and {title(line['second'])} differ in {100 * share:.0f} % of a text's "
            f"{line['of']} nearest texts; {none:,} of {len(frame):,} texts share none of them."
        )

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        counts = np.bincount(frame["shared"], minlength=int(frame["of"].iloc[0]) + 1).tolist()
        bars = [{"shared": shared, "texts": texts} for shared, texts in enumerate(counts)]
        shown = frame.drop_duplicates("text").head(MAX_SHOWN)
        lines = shown.assign(fields=fields_of(shown, OWN_COLUMNS)).to_dict("records")
        for line in lines:
            both = set(line["near_first"]) & set(line["near_second"])
            line["sides"] = [
                [
                    {"position": position, "text": text, "both": position in both}
                    for position, text in zip(line[f"near_{side}"], line[f"texts_{side}"], strict=True)
                ]
                for side in ("first", "second")
            ]
        models = {name: lines[0][name] for name in ("first", "second", "of")}
        return {**models, "bars": bars, "most": max(counts), "changed": lines}

    def answer(self, frame: pd.DataFrame) -> Any:
        if frame.empty:
            return {"texts": []}
        line, fields = frame.iloc[0], fields_of(frame, OWN_COLUMNS)
        kept = frame[["row", "text", "shared", "texts_first", "texts_second"]].assign(fields=fields)
        share = float(frame["shared"].mean()) / max(1, int(line["of"]))
        return {"first": line["first"], "second": line["second"], "shared": share, "texts": records(kept)}
