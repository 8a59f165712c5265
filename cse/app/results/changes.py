"""How far small changes of a sentence, generated or typed, move its vector in every model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.analysis.attribution import PERTURBATIONS
from cse.app.drawing.verdicts import UNHEARD, percent, reaction
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, lines, plain, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from cse.app.models.models import Column
    from cse.app.session import Session
    from cse.encoder.encoder import Encoder

MAX_VARIANTS = 20
SENTENCES = [
    "Anna will not meet Peter in Rome on 12 May.",
    "The dog chased the cat through the garden.",
    "The new phone is cheaper than the old one.",
]
ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # of the bars
MEANS = {True: "where the meaning is kept", False: "where the meaning is changed"}


@dataclass(frozen=True)
class Changes(Result):
    """How far each change of a sentence moves its vector, as a share of the way to an unrelated sentence."""

    key = "changes"
    title = "What changes the vector?"
    summary = (
        'Displacement by small changes: {"changes": [{"name", "keeps", "changed", "moved": {"simcse": 0.1}}]}. "keeps" '
        "is true if the change keeps the meaning, null for your variants, which come first; 1 is as far away as an "
        'unrelated sentence. "errors" has the reasons of failures by model.'
    )
    examples = {sentence: (sentence,) for sentence in SENTENCES}  # noqa: RUF012

    sentence: str = text(
        "Sentence", SENTENCES[0], "The sentence", "the text to change: a word less, a negation, and so on.",
        link="sentence",
    )  # fmt: skip
    variants: str = lines(
        f"Your variants, one per line (at most {MAX_VARIANTS})", "", "Your list of variants",
        "up to 20 variants of your own, separated by newlines.", 1, MAX_VARIANTS, folded=True, may_be_empty=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model and change: its name, whether it keeps the meaning, the changed text, cosine, moved.

        `keeps` is missing for a variant of the visitor's; these come first. `moved` is 1 for the distance of the median
        random pair.
        """
        from cse.analysis.calibration import displacement
        from cse.vectors import cosines

        own = [(f"variant {number}", None, line) for number, line in enumerate(self.variants.splitlines(), start=1)]
        made = [(kind.name, kind.keeps, kind.apply(self.sentence)) for kind in PERTURBATIONS]
        changes = [*own, *((name, keeps, changed) for name, keeps, changed in made if changed)]
        if not changes:
            session.notes.append("No change applies to this sentence; write a longer one.")
            return pd.DataFrame()

        def rows(column: Column, encoder: Encoder, vectors: np.ndarray) -> pd.DataFrame:
            table = pd.DataFrame(changes, columns=["name", "keeps", "changed"]).astype({"keeps": object})
            table.insert(0, "model", column.name)
            table["cosine"] = cosines(vectors[:1].repeat(len(changes), axis=0), vectors[1:])
            random = session.random_cosines(column, encoder)
            return table.assign(moved=[displacement(cosine, random) for cosine in table["cosine"]])

        tables = session.each_text([self.sentence, *(changed for *_, changed in changes)], rows)
        return pd.concat(tables.values(), ignore_index=True) if tables else pd.DataFrame()

    def says(self, frame: pd.DataFrame) -> str:
        """Return which models react to the visitor's variants and to the negation."""
        trained = list(with_starts(frame["model"].unique()))
        said = []
        for name, rows in frame[frame["model"].isin(trained)].groupby("name", sort=False):
            if rows["keeps"].isna().all() or name == "negated":
                moved = dict(zip(rows["model"], rows["moved"], strict=True))
                said.append(reaction(moved, "the negation" if name == "negated" else str(name)))
        return " ".join(said)

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return a line per change with each model's share and that of its start, and the means."""
        wide = frame.pivot(index="name", columns="model", values="moved").to_dict("index")
        starts = with_starts(frame["model"].unique())
        end = next((end for end in ENDS if end >= frame["moved"].max()), ENDS[-1])
        first = frame[frame["model"] == frame["model"].iloc[0]]
        shown = [
            (row.name, meaning(row.keeps), row.changed, wide[row.name])
            for row in first.drop(columns="model").itertuples(index=False, name="Change")
        ]
        means = frame.dropna(subset="keeps").groupby(["keeps", "model"])["moved"].mean()
        shown += [
            ("mean", "", what, means[keeps].to_dict())
            for keeps, what in MEANS.items()
            if keeps in means.index.get_level_values("keeps")
        ]
        mark = UNHEARD / end if end > UNHEARD else None
        return {"shown": shown, "starts": starts, "end": end, "mark": mark, "unheard": percent(UNHEARD)}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a line per change with every model's share of the way to an unrelated sentence."""
        named = frame.assign(model=frame["model"].map(title))
        wide = named.pivot(index="name", columns="model", values="moved")
        return wide.loc[frame["name"].unique(), named["model"].unique()].reset_index()

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the changes with every model's displacement, and the models that failed."""
        changes = [
            {
                "name": name, "keeps": plain(rows["keeps"].iloc[0]), "changed": rows["changed"].iloc[0],
                "moved": dict(zip(rows["model"], rows["moved"].tolist(), strict=True)),
            }
            for name, rows in (frame.groupby("name", sort=False) if len(frame) else ())
        ]  # fmt: skip
        return {"changes": changes, "errors": {}}

    def with_failures(self, answer: Any, failed: Mapping[str, str]) -> Any:
        """Return the answer with the reasons of the models that failed."""
        return {**answer, "errors": dict(failed)}


def meaning(keeps: bool | None) -> str:
    """Return what a change does to the meaning."""
    if keeps is None or keeps != keeps:
        return "yours"
    return "keeps the meaning" if keeps else "changes the meaning"
