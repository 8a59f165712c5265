"""The rows of a corpus nearest to a query, in every model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.analysis.calibration import overlap
from cse.app.charts import by_model, chart, tips
from cse.app.models.naming import title
from cse.app.result import Result, by_models, further_columns, number, plain, stacked, text, whole, wide
from cse.app.validation import FieldError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cse.app.models.models import Column
    from cse.app.state import Session
    from cse.encoder.encoder import Encoder

MAX_RANK = 50  # ranks looked up, so that a row found by one model has its rank in the others
MAX_LINE_CHARACTERS = 60  # of a text in the chart
QUERIES = [
    "The orchestra played a slow symphony.",
    "I want to save more money every month.",
    "The flight was delayed for three hours.",
]
MAX_LEVEL = 4  # models whose names stand beside each other in a figure
OWN_COLUMNS = ("model", "rank", "found", "row", "position", "cosine", "percentile", "text", "index", "recall")


@dataclass(frozen=True)
class Search(Result):
    """The rows of a corpus nearest to a query, in every model."""

    key = "search"
    title = "The nearest texts of the corpus"
    summary = 'The k texts of a corpus nearest to a query: {"simcse": [{"rank": 1, "score": 0.7, "text": "..."}]}.'
    words = ("percentile",)
    examples = {query: (query,) for query in QUERIES}  # noqa: RUF012
    corpus_examples = 1
    plots = 1
    chart_fold = "Ranks joined between the models"

    query: str = text("Query", QUERIES[0], "The query", "what to look for.", link="q")
    k: int = whole("Results per model", 5, "k", "how many texts, 1 to 50.", 1, MAX_RANK, folded=True)
    threshold: float = number(
        "Minimum percentile", 0.0, "The minimum percentile",
        "the percentile among random pairs of the corpus, 0 to 100, that a text has to reach.",
        0, 100, 0.5, folded=True,
    )  # fmt: skip
    where: str = text(
        "Only rows where (a condition on columns)", "", "The condition",
        "an SQL condition on the columns of the corpus, such as label = 'billing' and price > 10; \"\" for all.",
        folded=True, may_be_empty=True, such_as="column = 'value' and \"other column\" > 10",
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return the union of the models' results, a row for each model and text, with the columns of the corpus.

        `found` says that the text is among the model's own k; the others are there to compare ranks up to 50. `row` is
        its number in the file, `position` that among the texts. A column of the corpus that has a name of ours ends
        with a blank.
        """
        from cse.analysis.calibration import cosine_at, percentiles

        corpus, met = session.corpus, None
        if self.where:
            try:
                met = corpus.rows_where(self.where, lambda line: session.notes.append(f"{line[:1].upper()}{line[1:]}."))
            except ValueError as error:
                raise FieldError("The condition", str(error)) from error
            if len(met):
                session.notes.append(f"{len(met):,} row{'s meet' if len(met) > 1 else ' meets'} the condition.")
        if corpus.note:
            session.notes.append(corpus.note)

        def rows(column: Column, encoder: Encoder, vectors: np.ndarray) -> pd.DataFrame:
            nearest = corpus.nearest(column, encoder, vectors[0], max(self.k, MAX_RANK), self.where)
            if not self.where and (short := corpus.shortfall(column, encoder, len(nearest.hits), self.k)):
                session.notes.append(f"{title(column.name)}: {short}.")
            random = session.reference.random_cosines(column, encoder)
            least = cosine_at(self.threshold, random) if self.threshold else -1.0
            hits = pd.DataFrame(
                {
                    "rank": [hit.rank for hit in nearest.hits],
                    "found": [hit.rank <= self.k and hit.score >= least for hit in nearest.hits],
                    "row": [hit.row for hit in nearest.hits], "position": [hit.position for hit in nearest.hits],
                    "cosine": [hit.score for hit in nearest.hits],
                    "percentile": percentiles(np.array([hit.score for hit in nearest.hits]), random),
                    "text": [hit.text for hit in nearest.hits], "index": nearest.factory, "recall": nearest.recall,
                }
            )  # fmt: skip
            fields = pd.DataFrame([hit.fields for hit in nearest.hits], index=hits.index, dtype=object)
            return hits.join(fields.rename(columns=lambda name: f"{name} " if name in OWN_COLUMNS else name))

        answers = session.each_text([self.query], rows, corpus.query_prompt)
        if not answers:
            return pd.DataFrame()
        hits = stacked(answers)
        hits = hits[hits["position"].isin(hits.loc[hits["found"], "position"])].reset_index(drop=True)
        if met is not None and not len(met):
            session.notes.insert(0, "No row meets the condition.")
        elif hits.empty and self.threshold:
            session.notes.append("No text reaches the minimum percentile; lower it.")
        return hits

    def says(self, frame: pd.DataFrame) -> str:
        return agreement({name: rows["position"].tolist() for name, rows in by_models(frame[frame["found"]]).items()})

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        names = list(frame["model"].unique())
        if len(names) < 2:
            return []
        shown = frame.loc[frame["rank"] <= 2 * self.k, ["model", "rank", "position", "text", "cosine"]]
        shown = shown.assign(text=shown["text"].str.slice(0, MAX_LINE_CHARACTERS))
        # Lines join neighbouring models alone: one past a model that lacks the text would run through others' points.
        column = shown["model"].map(names.index)
        shown["line"] = column - column.groupby(shown["position"]).cumcount()
        models: dict[str, Any] = {"title": None, "labelAngle": 0, "orient": "top"}
        room = 0  # for the further lines of the names
        if len(names) > MAX_LEVEL:
            room = 12 * (max(len(title(name).split()) for name in names) - 1)
            models |= {"labelExpr": "split(datum.label, ' ')", "labelPadding": 2 + room}
        most = f", up to {2 * self.k}" if len(shown) < len(frame) else ""
        at = {
            "x": {"field": "model", "type": "nominal", "sort": None, "axis": models},
            "y": {
                "field": "rank", "type": "quantitative",
                "axis": {"tickMinStep": 1, "format": "d", "grid": False, "title": f"rank{most}"},
                "scale": {"reverse": True, "domain": [1, max(2, int(shown["rank"].max()))], "nice": False},
            },
        }  # fmt: skip
        told = tips(text="text", model="model", rank="rank", cosine="cosine#")
        pointed = {"type": "point", "fields": ["position"], "on": "pointerover", "clear": "pointerout"}
        lit = {"condition": {"param": "text", "value": 1, "empty": True}, "value": 0.15}
        layers = [
            {"mark": {"type": "line", "strokeWidth": 1.5, "color": "#8391a7"},
             "encoding": {**at, "detail": [{"field": "position"}, {"field": "line"}], "opacity": lit}},
            {"params": [{"name": "text", "select": pointed}], "mark": {"type": "circle", "size": 90},
             "encoding": {**at, "color": by_model(names, legend=False), "opacity": lit, "tooltip": told}},
        ]  # fmt: skip
        about, height = "Ranks of the texts found, joined between the models", 40 + 22 * self.k + room
        return [chart(shown, about, layer=layers, height=height)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        names, further = list(frame["model"].unique()), further_columns(frame, OWN_COLUMNS)
        by_position, rows = dict(iter(frame.groupby("position"))), []
        for position in by_rank(frame):
            hits = {hit["model"]: hit for hit in by_position[position].to_dict("records")}
            finders = [name for name in names if name in hits and hits[name]["found"]]
            first = next(iter(hits.values()))
            rows.append({
                "text": first["text"], "row": first["row"], "position": position,
                "fields": {name.strip(): plain(first[name]) for name in further},
                "hits": [hits.get(name) for name in names],
                "alone": finders[0] if len(finders) == 1 and len(names) > 1 else "",
            })  # fmt: skip
        models = frame.groupby("model", sort=False)
        return {
            "names": names, "hits": rows, "indexes": models[["index", "recall"]].first().to_dict("index"),
            "kept": models["found"].sum().to_dict(), "k": self.k, "threshold": self.threshold, "beyond": MAX_RANK,
            "dotted": any(None in row["hits"] for row in rows),
        }  # fmt: skip

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        order = frame.set_index("position").loc[by_rank(frame)].reset_index()
        order["cell"] = [f"{rank} ({cosine:.3f})" for rank, cosine in zip(order["rank"], order["cosine"], strict=True)]
        return wide(order, ["row", "text"], "cell")

    def facts(self, frame: pd.DataFrame) -> list[str]:
        return [f"Each model's rank (cosine); – beyond rank {max(self.k, MAX_RANK)}."]

    def answer(self, frame: pd.DataFrame) -> Any:
        further = further_columns(frame, OWN_COLUMNS)
        return {
            name: [
                {
                    "rank": hit["rank"], "score": hit["cosine"], "text": hit["text"], "row": hit["row"],
                    "fields": {key.strip(): hit[key] for key in further},
                }
                for hit in rows[rows["found"]].to_dict("records")
            ]
            for name, rows in by_models(frame).items()
        }  # fmt: skip


def by_rank(frame: pd.DataFrame) -> list[int]:
    """Return the positions of the texts by their mean rank, where those beyond the last one looked up count as next."""
    ranks = frame.pivot(index="position", columns="model", values="rank").fillna(MAX_RANK + 1).mean(axis=1)
    return ranks.sort_values(kind="stable").index.tolist()


def agreement(lists: Mapping[str, Sequence[int]]) -> str:
    """Return how far the models' results for a query agree; `lists` are rows of a corpus, best first."""
    shown = {name: rows for name, rows in lists.items() if rows}
    if len(shown) < 2:
        return ""
    count, common = max(map(len, shown.values())), set.intersection(*map(set, shown.values()))
    best = len({rows[0] for rows in shown.values()})
    first = "The models agree on the best text" if best == 1 else f"The models name {best} different best texts"
    if len(common) == count:
        return f"{first}; all models have the same {'result' if count == 1 else f'{count} results'}."
    shared = {pair: overlap(shown[pair[0]], shown[pair[1]]) for pair in combinations(shown, 2)}
    least = min(shared.values())
    fewest = [f"{title(one)} and {title(other)}" for (one, other), number in shared.items() if number == least]
    said = f"{first}; {len(common)} of {count} results are common to all."
    return f"{said} {fewest[0]} have fewest in common, {least}." if len(fewest) == 1 < len(shared) else said
