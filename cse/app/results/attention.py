"""Where the token that a vector is read from looks, by layer and head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.app.drawing.verdicts import percent
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, text, whole
from cse.app.results.tokens import SENTENCES

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

MAX_LAYERS, MAX_HEADS = 24, 16
MEAN = "the mean of all tokens"
DECIMALS = 5


@dataclass(frozen=True)
class Attention(Result):
    """The attention of the token that a vector is read from, on every other token, by layer and head."""

    key = "attention"
    title = "Where does the token that is read look?"
    summary = (
        'Attention by layer and head: {"dcpcse": {"read": null, "tokens": [...], "prefix": 4, "shares": [[[0.1]]]}}. '
        '"shares" are those of the token that is read ("read" is null if the vector is the mean of all tokens, whose '
        'mean they are then) on each of "tokens", of which the first "prefix" are learned: layers, heads, tokens.'
    )
    button = "Show attention"
    words = ("attention",)
    reads_corpus = False
    live = False  # a fold that is closed costs nothing

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "what the models read.")
    layer: int = whole(
        "Layer (the last of a model with fewer)", 6, "The layer", "the layer that the page shows; the answer has all.",
        1, MAX_LAYERS,
    )  # fmt: skip
    head: int = whole(
        "Head (0: mean of all)", 0, "The head", "the head that the page shows; the answer has all.", 0, MAX_HEADS
    )

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
            return pd.DataFrame(
                {
                    "model": column.name, "layer": layer + 1, "head": head + 1, "place": place + 1,
                    "token": list(measured.tokens) * (layers * heads), "share": measured.shares.ravel().round(DECIMALS),
                    "on_prefix": place < measured.prefix, "read": measured.read or "",
                }
            )  # fmt: skip

        answers = session.each(rows)
        return pd.concat(answers.values(), ignore_index=True) if answers else pd.DataFrame()

    def says(self, frame: pd.DataFrame) -> str:
        """Return which token each model looks at most in the chosen layer and head."""
        parts = []
        for name, rows in frame.groupby("model", sort=False):
            shown = self.chosen(rows)
            most = shown.loc[shown["share"].idxmax()]
            on_prefix = shown.loc[shown["on_prefix"], "share"].sum()
            prefix = f", {percent(on_prefix)} of it at the prefix" if on_prefix else ""
            parts.append(f"{title(str(name))} at {most['token']} ({percent(most['share'])}{prefix})")
        return f"Most attention: {'; '.join(parts)}. Attention does not tell which token matters."

    def chosen(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a model's tokens with their shares in the chosen layer, of the chosen head or the mean of all."""
        of_layer = rows[rows["layer"] == min(self.layer, rows["layer"].max())]
        if self.head:
            return of_layer[of_layer["head"] == min(self.head, rows["head"].max())]
        return of_layer.groupby(["place", "token", "on_prefix"], as_index=False)["share"].mean()

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return a card per model: its tokens with the share of the chosen head and of all, and a square per head.

        A head's square is its share on the prefix, or on the token that it looks at most without a prefix.
        """
        cards = []
        starts = with_starts(frame["model"].unique())
        for name in filter(None, (each for pair in starts.items() for each in reversed(pair))):
            rows = frame[frame["model"] == name]
            layers, heads = int(rows["layer"].max()), int(rows["head"].max())
            shares = rows["share"].to_numpy().reshape(layers, heads, -1)
            layer, learned = (
                min(self.layer, layers),
                int(rows.loc[:, ["place", "on_prefix"]].drop_duplicates()["on_prefix"].sum()),
            )
            tokens = self.chosen(rows).to_dict("records")
            for token, by_head in zip(tokens, (shares[layer - 1] / shares[layer - 1].max()).T, strict=True):
                token["by_head"] = by_head.round(2).tolist()
            squares = shares[:, :, :learned].sum(2) if learned else shares.max(2)
            cards.append({
                "name": name, "layer": layer, "head": min(self.head, heads), "tokens": tokens, "learned": learned,
                "read": rows["read"].iloc[0] or MEAN, "squares": squares.tolist(),
                "largest": max(token["share"] for token in tokens),
            })  # fmt: skip
        return {"cards": cards}

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return each model's tokens and shares by layer and head."""
        answers = {}
        for name, rows in frame.groupby("model", sort=False) if len(frame) else ():
            shape = int(rows["layer"].max()), int(rows["head"].max()), -1
            first = rows[(rows["layer"] == 1) & (rows["head"] == 1)]
            answers[str(name)] = {
                "read": first["read"].iloc[0] or None, "tokens": first["token"].tolist(),
                "prefix": int(first["on_prefix"].sum()),
                "shares": rows["share"].to_numpy(np.float64).round(DECIMALS).reshape(shape).tolist(),
            }  # fmt: skip
        return answers
