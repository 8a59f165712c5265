"""Inside the models: where the token that is read looks, what a trained prefix does, and which prototypes are near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app.charts import chart, tips
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, by_models, listed, percent, stacked, text, whole
from cse.app.results.tokens import SENTENCES

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.state import Session
    from cse.encoder.encoder import Encoder

MAX_LAYERS, MAX_HEADS = 24, 16
MEAN = "the mean of all tokens"
DECIMALS = 5
OTHER = "A nurse looked after the sick man."
NONE, ALL = "none", "all"  # of the layers have lost their prefix
KINDS = {"affirms": "#2171b5", "denies": "#d9730d"}
LEGEND = {"title": None, "orient": "top"}


@dataclass(frozen=True)
class Attention(Result):
    """The attention of the token that a vector is read from, on every other token, by layer and head."""

    key = "attention"
    title = "Where does the token that is read look?"
    button = "Show attention"
    words = ("attention",)
    reads_corpus = False
    live = False  # a fold that is closed costs nothing

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "what the models read.")
    layer: int = whole(
        "Layer", 6, "The layer", "the layer that the page shows, the last of a model with fewer; the answer has all.",
        1, MAX_LAYERS,
    )  # fmt: skip
    head: int = whole(
        "Head (0: mean)", 0, "The head", "the head that the page shows, 0 for their mean; the answer has all.",
        0, MAX_HEADS,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per layer, head and token: model, layer, head, place, token, share, on_prefix, read.

        `read` is the token whose attention it is, empty for the mean of all tokens.
        """

        def rows(column: Column, encoder: Encoder) -> pd.DataFrame:
            from cse.analysis.prefix_analysis import head_attention
            from cse.models.loading import on_torch

            measured = head_attention(on_torch(encoder), self.sentence)
            layers, heads, _ = measured.shares.shape
            layer, head, place = (axis.ravel() for axis in np.indices(measured.shares.shape))
            return pd.DataFrame({
                "layer": layer + 1, "head": head + 1, "place": place + 1,
                "token": list(measured.tokens) * (layers * heads), "share": measured.shares.ravel().round(DECIMALS),
                "on_prefix": place < measured.prefix, "read": measured.read or "",
            })  # fmt: skip

        return stacked(session.each(rows))

    def says(self, frame: pd.DataFrame) -> str:
        parts = []
        for name, rows in by_models(frame).items():
            shown = self.chosen(rows)
            most = shown.loc[shown["share"].idxmax()]
            on_prefix = shown.loc[shown["on_prefix"], "share"].sum()
            prefix = f"; at the prefix {percent(on_prefix)}" if on_prefix else ""
            parts.append(f"{title(name)} at {most['token']} ({percent(most['share'])}{prefix})")
        most = frame.groupby("model")[["layer", "head"]].max()
        beyond = [
            f" {'Not every' if asked <= most[name].max() else 'No'} model has a {name} {asked}: its last one is shown."
            for name, asked in (("layer", self.layer), ("head", self.head)) if asked > most[name].min()
        ]  # fmt: skip
        return f"Most attention: {', '.join(parts)}. Attention does not tell which token matters.{''.join(beyond)}"

    def chosen(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a model's tokens with their shares in the chosen layer, of the chosen head or the mean of all."""
        of_layer = rows[rows["layer"] == min(self.layer, rows["layer"].max())]
        if self.head:
            return of_layer[of_layer["head"] == min(self.head, rows["head"].max())]
        return of_layer.groupby(["place", "token", "on_prefix"], as_index=False)["share"].mean()

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        models, cards = by_models(frame), []
        for name in filter(None, (name for pair in with_starts(models).items() for name in reversed(pair))):
            rows = models[name]
            layer, heads = min(self.layer, int(rows["layer"].max())), int(rows["head"].max())
            shares = rows.loc[rows["layer"] == layer, "share"].to_numpy().reshape(heads, -1)
            tokens = self.chosen(rows).to_dict("records")
            for token, by_head in zip(tokens, (shares / shares.max()).T, strict=True):
                token["by_head"] = by_head.round(2).tolist()
            cards.append({
                "name": name, "layer": layer, "head": min(self.head, heads), "tokens": tokens,
                "read": rows["read"].iloc[0] or MEAN, "largest": max(token["share"] for token in tokens),
            })  # fmt: skip
        return {"cards": cards}


@dataclass(frozen=True)
class Prefix(Result):
    """Attention on the prefix by layer, and how far the vector moves without it."""

    key = "prefix"
    title = "What does the prefix do?"
    button = "Switch off the prefix"
    words = ("prefix", "attention")
    live = False  # each layer without its prefix is a run of the model
    plots = 1

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "the text to analyse.")
    other: str = text(
        "Other sentence", OTHER, "The other sentence", "a sentence to compare it with; it may be empty.",
        may_be_empty=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per ablation of the models that have a prefix; `layers` are those without their prefix.

        `attention` is that of the token that the vector is read from, or of all tokens where it is their mean.
        """
        from cse.analysis.calibration import displacement
        from cse.vectors import cosines

        sentences = [self.sentence, *([self.other] if self.other else [])]

        def rows(column: Column, encoder: Encoder) -> pd.DataFrame | None:
            from cse.analysis.prefix_analysis import layer_count, prefix_attention, without_prefix
            from cse.models.loading import on_torch

            if not encoder.reading.prefix:
                return None
            random, inside = session.reference.random_cosines(column, encoder), on_torch(encoder)
            seen, count = prefix_attention(inside, self.sentence), layer_count(inside)
            every = tuple(range(1, count + 1))
            own, ablations = inside.encode(sentences), []
            for layers in ((), *((layer,) for layer in every), every):
                vectors = without_prefix(inside, sentences, layers) if layers else own
                one = layers[0] - 1 if len(layers) == 1 else None
                ablations.append({
                    "layers": NONE if not layers else ALL if layers is every else str(layers[0]),
                    "attention": None if one is None else seen.read[one],
                    "all_tokens": None if one is None else seen.mean[one], "even": seen.even,
                    "moved": displacement(float(cosines(own[:1], vectors[:1])[0]), random) if layers else 0.0,
                    "cosine": float(cosines(vectors[:1], vectors[1:])[0]) if self.other else None,
                })  # fmt: skip
            return pd.DataFrame(ablations).astype({"attention": float, "all_tokens": float, "cosine": float})

        answers = session.each(rows)
        if absent := [name for name, table in answers.items() if table is None]:
            session.notes.append(f"{listed(absent)} {'has' if len(absent) == 1 else 'have'} no prefix.")
        return stacked({name: table for name, table in answers.items() if table is not None})

    def says(self, frame: pd.DataFrame) -> str:
        parts = []
        for name, rows in by_models(frame).items():
            most, at = rows.loc[rows["attention"].idxmax()], rows.set_index("layers")
            parts.append(
                f"The prefix of {title(name)} draws most attention in layer {most['layers']}: "
                f"{percent(most['attention'])}, where evenly spread it would be {percent(most['even'])}. Without any "
                f"prefix the vector moves {percent(at['moved'][ALL])} of the way to an unrelated sentence."
            )
            if self.other:
                parts.append(f"The pair's cosine goes from {at['cosine'][NONE]:.3f} to {at['cosine'][ALL]:.3f}.")
        return " ".join(parts)

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        layers = frame[frame["attention"].notna()]
        measures = {"attention": "attention on the prefix", "moved": "vector moves without it"}
        shown = pd.concat([
            layers[["model", "layers"]].assign(what=what, share=layers[column]) for column, what in measures.items()
        ])  # fmt: skip
        colours = {"domain": list(measures.values()), "range": list(KINDS.values())}
        encoding = {
            "x": {"field": "layers", "type": "ordinal", "sort": None, "axis": {"title": "layer", "labelAngle": 0}},
            "y": {"field": "share", "type": "quantitative", "axis": {"title": None, "format": ".0%", "tickCount": 5}},
            "color": {"field": "what", "type": "nominal", "scale": colours, "legend": LEGEND},
            "strokeDash": {
                "field": "model", "type": "nominal", "sort": None,
                "legend": LEGEND if layers["model"].nunique() > 1 else None,
            },
            "tooltip": tips(model="model", what="what", layers="layer", share="share#"),
        }  # fmt: skip
        mark = {"type": "line", "point": True}
        return [
            chart(shown, "Attention on the prefix, and movement without it, by layer", mark=mark, encoding=encoding)
        ]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        tables = {name: rows.to_dict("records") for name, rows in by_models(frame).items()}
        return {"tables": tables, "read": self.sentence, "other": self.other}


@dataclass(frozen=True)
class Prototypes(Result):
    """The cosines of a sentence with its prototypes, the templates that affirm it and those that deny it (ConPVP)."""

    key = "prototypes"
    title = "Which prototypes are near?"
    button = "Compare prototypes"
    words = ("prototype",)
    reads_corpus = False
    live = False  # a fold that is closed costs nothing
    plots = 1

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "the text to analyse.")

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per prototype, nearest first: model, rank, template, kind, cosine."""
        from cse.analysis.prefix_analysis import has_prototypes, prototypes

        def rows(column: Column, encoder: Encoder) -> list[dict[str, Any]]:
            near = prototypes(encoder, self.sentence) if has_prototypes(encoder) else []
            return [
                {
                    "rank": rank, "template": prototype.template,
                    "kind": "affirms" if prototype.positive else "denies", "cosine": prototype.cosine,
                }
                for rank, prototype in enumerate(near, start=1)
            ]  # fmt: skip

        answers = session.each(rows)
        if absent := [name for name, near in answers.items() if not near]:
            were = "was" if len(absent) == 1 else "were"
            session.notes.append(f"{listed(absent)} {were} trained without prototypes.")
        return stacked(answers)

    def says(self, frame: pd.DataFrame) -> str:
        means = frame.groupby(["model", "kind"])["cosine"].mean()
        parts = []
        for name, rows in by_models(frame).items():
            by_kind = [f"{means[name, kind]:.2f} where it {kind}" for kind in KINDS if (name, kind) in means]
            first = rows.iloc[0]
            parts.append(f"The prototype nearest in {title(name)} {first['kind']}: “{first['template']}”.")
            parts.append(f"The mean cosine is {' and '.join(by_kind)}.")
        return " ".join(parts)

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        scale = {"domain": list(KINDS), "range": list(KINDS.values())}
        encoding = {
            "x": {"field": "cosine", "type": "quantitative", "scale": {"zero": False}},
            "y": {"field": "model", "type": "nominal", "sort": None, "axis": {"title": None}},
            "yOffset": {"field": "kind", "type": "nominal"},
            "color": {"field": "kind", "type": "nominal", "scale": scale, "legend": LEGEND},
            "shape": {"field": "kind", "type": "nominal", "scale": {"domain": list(KINDS)}},
            "tooltip": tips(template="template", kind="kind", cosine="cosine#"),
        }
        mark, height = {"type": "point", "filled": True, "size": 70}, 60 + 50 * frame["model"].nunique()
        return [chart(frame, "Cosines with the prototypes", height=height, mark=mark, encoding=encoding)]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        tables = {name: rows.to_dict("records") for name, rows in by_models(frame).items()}
        return {"tables": tables, "read": self.sentence}
