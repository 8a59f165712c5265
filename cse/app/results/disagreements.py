"""The pairs of texts on which the models disagree most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.analysis.calibration import normalised_ranks
from cse.app.models.naming import title, with_starts
from cse.app.result import Result, choice, lines
from cse.app.state.corpora import DEMO
from cse.app.validation import FieldError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cse.app.session import Session

SAMPLED = 60  # texts whose nearest other one is looked up, spread over the corpus
LEAST_PAIRS, MAX_PAIRS, SHOWN = 3, 200, 10
LIST = "Your list of pairs"
SOURCES = (("Near pairs of the corpus", "corpus"), ("The demo's graded pairs", "graded"), ("Your pairs", "lines"))
PAIRS = """The shop is open. | The shop is closed.
The dog bites the man. | The man bites the dog.
He arrived before noon. | He came in the morning.
She bought two tickets. | She bought three tickets.
The film was not bad. | The film was good."""


@dataclass(frozen=True)
class Disagreements(Result):
    """Pairs of texts by how differently the models rank them."""

    key = "disagreements"
    title = "Where do the models disagree?"
    summary = (
        'Pairs by the models\' disagreement on rank: {"pairs": [{"s1", "s2", "places": {"simcse": 0.1}}]}. '
        "A place is 0 (least alike of all pairs) to 1 (most alike)."
    )
    button = "Compare"
    live = False  # a model may have to encode the corpus first

    source: str = choice(
        "Pairs", "corpus", "The source",
        '"corpus", near pairs of the corpus; "graded", the demo\'s; or "lines", yours.', SOURCES, link="pairs",
    )  # fmt: skip
    lines: str = lines(
        f"Your pairs, one per line: first | second ({LEAST_PAIRS} to {MAX_PAIRS})", PAIRS, LIST,
        'for "lines" your pairs, "first | second" a line.', LEAST_PAIRS, MAX_PAIRS, may_be_empty=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model and pair: its number, its sentences, the cosine, its place from 0 to 1, the rows.

        The place is the rank of the cosine among all pairs. Pairs of the corpus have the numbers of their rows in the
        file.
        """
        if self.source == "corpus":
            pairs, cosines = near_pairs(session)
        else:
            pairs, cosines = self.typed(session)
        tables = [
            pd.DataFrame({"model": name, **pairs, "cosine": values, "place": normalised_ranks(values)})
            for name, values in cosines.items()
        ]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def typed(self, session: Session) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the graded or the typed pairs, and each model's cosines. Raises FieldError for a wrong line."""
        from cse.corpus.supervised import scored_pairs
        from cse.vectors import cosines

        if self.source == "graded":
            pairs = [(first, second) for _, first, second in scored_pairs(DEMO / "pairs.tsv")]
        else:
            pairs = [pair_of(line) for line in (self.lines or PAIRS).splitlines()]
        texts = [text for pair in pairs for text in pair]
        values = session.each_text(texts, lambda column, encoder, vectors: cosines(vectors[::2], vectors[1::2]))
        return {"pair": range(1, len(pairs) + 1), "s1": texts[::2], "s2": texts[1::2]}, values

    def says(self, frame: pd.DataFrame) -> str:
        """Return the places of the pair on which the models differ most, in the two models that do."""
        pairs = ranked(frame)
        places = {name: pairs[0]["places"][name] for name in with_starts(frame["model"].unique())}
        if len(places) < 2:
            return ""
        low, high = min(places, key=places.__getitem__), max(places, key=places.__getitem__)
        return (
            f"The models differ most on the first pair: {100 * places[low]:.0f} % of the {len(pairs)} pairs are less "
            f"alike in {title(low)}, {100 * places[high]:.0f} % in {title(high)}."
        )

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the pairs on which the models differ most, with each model's place."""
        return {"shown": ranked(frame)[:SHOWN], "starts": with_starts(frame["model"].unique())}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a line per pair with its place in every model."""
        return pd.DataFrame(
            {**pair, **{title(name): value for name, value in pair.pop("places").items()}} for pair in ranked(frame)
        )

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the pairs with every model's place, those on which the models differ most first."""
        pairs = [{name: pair[name] for name in ("s1", "s2", "places")} for pair in ranked(frame)]
        return {"pairs": pairs, "errors": {}}

    def with_failures(self, answer: Any, failed: Mapping[str, str]) -> Any:
        """Return the answer with the reasons of the models that failed."""
        return {**answer, "errors": dict(failed)}


def ranked(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the pairs, those whose places differ most first: sentences, rows if they have some, places by model.

    A model before its training counts where it stands alone.
    """
    if frame.empty:
        return []
    names = list(frame["model"].unique())
    places = frame.pivot(index="pair", columns="model", values="place")[names]
    compared = places[list(with_starts(names))]
    order = (compared.min(axis=1) - compared.max(axis=1)).sort_values(kind="stable").index
    texts = frame[frame["model"] == names[0]].set_index("pair").drop(columns=["model", "cosine", "place"])
    pairs = zip(texts.loc[order].to_dict("records"), places.loc[order].to_dict("records"), strict=True)
    return [{**text, "places": of_pair} for text, of_pair in pairs]


def pair_of(line: str) -> tuple[str, str]:
    """Return the two sentences of a line, which a "|" or a tab separates. Raises FieldError for another number."""
    parts = [part.strip() for part in line.replace("\t", "|").split("|")]
    if len(parts) != 2 or not all(parts):
        raise FieldError(LIST, f'"{line[:60]}" is not a pair; write two sentences with | between them.')
    return parts[0], parts[1]


def near_pairs(session: Session) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return pairs of different texts of the corpus, and each model's cosines of them.

    They are texts spread over the corpus with their nearest others in each model.
    """
    from cse.vectors import cosines, cosines_to_others

    corpus = session.corpus
    texts, numbers = corpus.texts, corpus.numbers
    rows = np.unique(np.linspace(0, len(texts) - 1, SAMPLED).astype(int))
    vectors = session.each(session.vectors) if len(texts) > 1 else {}
    pairs: dict[tuple[int, int], None] = {}
    for of_model in vectors.values():
        nearest = np.nanargmax(cosines_to_others(of_model, rows), axis=1)
        pairs |= dict.fromkeys((min(pair), max(pair)) for pair in zip(rows.tolist(), nearest.tolist(), strict=True))
    chosen = [pair for pair in pairs if texts[pair[0]] != texts[pair[1]]]
    if len(chosen) < LEAST_PAIRS and not session.failed:
        raise FieldError("The corpus", f"{corpus.label} has too few different texts; {LEAST_PAIRS} pairs are needed.")
    one, other = ([pair[side] for pair in chosen] for side in (0, 1))
    columns = {
        "pair": range(1, len(chosen) + 1), "s1": [texts[row] for row in one], "s2": [texts[row] for row in other],
        "row1": [numbers[row] for row in one], "row2": [numbers[row] for row in other],
    }  # fmt: skip
    return columns, {name: cosines(of_model[one], of_model[other]) for name, of_model in vectors.items()}
