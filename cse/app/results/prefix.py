"""What a trained prefix does: the attention that it gets in each layer, and the vector without it (DCPCSE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app.charts import chart, tips
from cse.app.drawing.verdicts import percent
from cse.app.models.naming import title
from cse.app.result import Result, text
from cse.app.results.tokens import SENTENCES, joined
from cse.app.validation import FieldError

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

OTHER = "A nurse looked after the sick man."
FIELD = "The layers"
MAX_LAYERS = 48
NONE, ALL = "none", "all"  # of the layers have lost their prefix


@dataclass(frozen=True)
class Prefix(Result):
    """Attention on the prefix by layer, and how far the vector moves without it."""

    key = "prefix"
    title = "What does the prefix do?"
    summary = (
        'Prefix by layer: {"dcpcse": [{"layers": "1", "attention": 0.2, "moved": 0.1, "cosine": 0.8, ...}, ...]}. '
        '"layers" are those without their prefix: "none", each, "all", and those in off. "attention" is the share that '
        'the token that is read gives to the prefix, "all_tokens" the mean of all, "even" a uniform share; "moved" is '
        'how far the vector goes, 1 as far as an unrelated sentence; "cosine" is that with the other sentence.'
    )
    button = "Switch off the prefix"
    words = ("prefix", "attention")
    live = False  # each layer without its prefix is a run of the model
    plots = 1
    separable = False

    sentence: str = text("Sentence", SENTENCES[0], "The sentence", "the text to analyse.")
    other: str = text(
        "Other sentence", OTHER, "The other sentence", "a sentence to compare it with; it may be empty.",
        may_be_empty=True,
    )  # fmt: skip
    off: str = text(
        "Layers to switch off together", "", FIELD, 'numbers of layers to switch off together: "1, 4".',
        may_be_empty=True, folded=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per ablation of the models that have a prefix; `layers` are those without their prefix."""
        from cse.analysis.calibration import displacement
        from cse.vectors import cosines

        chosen = layers_of(self.off)
        sentences = [self.sentence, *([self.other] if self.other else [])]

        def rows(column: Column, encoder: Encoder) -> pd.DataFrame | None:
            from cse.analysis.prefix_analysis import layer_count, prefix_attention, without_prefix
            from cse.models.loading import on_torch

            if not encoder.reading.prefix:
                return None
            random, inside = session.random_cosines(column, encoder), on_torch(encoder)
            seen, count = prefix_attention(inside, self.sentence), layer_count(inside)
            sets = {
                NONE: (),
                **{str(layer): (layer,) for layer in range(1, count + 1)},
                ALL: tuple(range(1, count + 1)),
            }
            if chosen:
                sets[", ".join(map(str, chosen))] = chosen
            own, found = inside.encode(sentences), []
            for name, layers in sets.items():
                vectors = without_prefix(inside, sentences, layers) if layers else own
                layer = layers[0] - 1 if len(layers) == 1 else None
                found.append({
                    "model": column.name, "layers": name,
                    "attention": None if layer is None else seen.read[layer],
                    "all_tokens": None if layer is None else seen.mean[layer], "even": seen.even,
                    "moved": displacement(float(cosines(own[:1], vectors[:1])[0]), random) if layers else 0.0,
                    "cosine": float(cosines(vectors[:1], vectors[1:])[0]) if self.other else None,
                })  # fmt: skip
            return pd.DataFrame(found).astype({"attention": float, "all_tokens": float, "cosine": float})

        answers = session.each(rows)
        if absent := [name for name, each in answers.items() if each is None]:
            session.notes.append(f"{joined(absent)} {'has' if len(absent) == 1 else 'have'} no prefix.")
        tables = [each for each in answers.values() if each is not None]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def says(self, frame: pd.DataFrame) -> str:
        """Return where the prefix draws most attention, and what the vector loses without it."""
        parts = []
        for name, rows in frame.groupby("model", sort=False):
            most, at = rows.loc[rows["attention"].idxmax()], rows.set_index("layers")
            parts.append(
                f"The prefix of {title(str(name))} draws most attention in layer {most['layers']}: "
                f"{percent(most['attention'])}, where evenly spread it would be {percent(most['even'])}. Without any "
                f"prefix the vector moves {percent(at['moved'][ALL])} of the way to an unrelated sentence."
            )
            if self.other:
                parts.append(f"The pair's cosine goes from {at['cosine'][NONE]:.3f} to {at['cosine'][ALL]:.3f}.")
        return " ".join(parts)

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return attention on the prefix and movement without it, by layer."""
        layers = frame[frame["attention"].notna()]
        measures = {"attention": "attention on the prefix", "moved": "vector moves without it"}
        shown = pd.concat([
            layers[["model", "layers"]].assign(what=what, share=layers[column]) for column, what in measures.items()
        ])  # fmt: skip
        colours = {"domain": list(measures.values()), "range": ["#2171b5", "#d9730d"]}
        several = {"title": None, "orient": "top"} if layers["model"].nunique() > 1 else None
        encoding = {
            "x": {"field": "layers", "type": "ordinal", "sort": None, "axis": {"title": "layer", "labelAngle": 0}},
            "y": {"field": "share", "type": "quantitative", "axis": {"title": None, "format": ".0%", "tickCount": 5}},
            "color": {
                "field": "what", "type": "nominal", "scale": colours, "legend": {"title": None, "orient": "top"}
            },
            "strokeDash": {"field": "model", "type": "nominal", "sort": None, "legend": several},
            "tooltip": tips(model="model", what="what", layers="layer", share="share#"),
        }  # fmt: skip
        mark = {"type": "line", "point": True}
        return [
            chart(shown, "Attention on the prefix, and movement without it, by layer", mark=mark, encoding=encoding)
        ]

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the ablations of each model."""
        off = ", ".join(map(str, layers_of(self.off)))
        tables = {name: rows.to_dict("records") for name, rows in frame.groupby("model", sort=False)}
        return {"tables": tables, "off": off, "read": self.sentence, "other": self.other}


def layers_of(numbers: str) -> tuple[int, ...]:
    """Return the layers of a text such as "1, 4", ascending and each once. Raises FieldError for anything else."""
    parts = numbers.replace(",", " ").split()
    if not all(part.isascii() and part.isdigit() and 1 <= int(part) <= MAX_LAYERS for part in parts[:MAX_LAYERS]):
        raise FieldError(FIELD, f'{FIELD} are numbers from 1 to {MAX_LAYERS}, as in "1, 4".')
    return tuple(sorted({int(part) for part in parts[:MAX_LAYERS]}))
