"""Pairs of sentences in every model: one among random pairs, all of a list, and those on which the models disagree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.analysis.calibration import BINS, normalised_ranks
from cse.app.charts import by_model, chart
from cse.app.html import printed
from cse.app.models.naming import BEFORE, title, with_starts
from cse.app.result import Result, by_models, choice, lines, listed, moved_by_training, stacked, text, titled
from cse.app.validation import LIST, PAIR, FieldError

if TYPE_CHECKING:
    from cse.app.models.models import Column
    from cse.app.state import Session
    from cse.encoder.encoder import Encoder

PAIRS: dict[str, tuple[str, str]] = {
    "paraphrase": ("A man is playing a guitar on stage.", "Someone plays the guitar for an audience."),
    "negation": ("The restaurant is open on Sundays.", "The restaurant is not open on Sundays."),
    "word order": ("The dog chased the cat.", "The cat chased the dog."),
    "unrelated": ("She planted tomatoes in the garden.", "The train to Berlin leaves at noon."),
}
LESSONS = {
    "paraphrase": "Other words, the same event: this should be closer than almost every random pair.",
    "negation": "One word reverses the meaning. A model that puts this pair high misses that word.",
    "word order": "The same words, another meaning. A model that puts this pair high ignores their order.",
    "unrelated": "Nothing in common: this pair should lie among the random pairs.",
}
TICKS = (-0.5, 0.0, 0.5, 1.0)
LEFT, STEP = -0.25, 0.25  # end of the axis of cosines, which goes on by steps where cosines are lower
ROOM = 0.7  # of a line in the figure, which the highest bar takes
HEIGHT = 26  # of the highest bar of a histogram, whose picture is 100 wide and 34 high
LEAST_SENTENCES, MAX_SENTENCES = 2, 40
MAX_WARNINGS = 4  # on how badly texts are read
SENTENCES = """A man is playing a guitar on stage.
Someone plays the guitar for an audience.
The restaurant is open on Sundays.
You can eat there on Sundays.
She planted tomatoes in the garden.
The train to Berlin leaves at noon."""
SAMPLED = 60  # texts whose nearest other one is looked up, spread over the corpus
LEAST_PAIRS, SHOWN_PAIRS = 3, 10


@dataclass(frozen=True)
class Similarity(Result):
    """The cosine of two sentences in every model, and the share of random pairs that are less alike."""

    key = "similarity"
    title = "Two sentences"
    summary = 'Cosine of two sentences by every model, 1 for the same direction: {"simcse": 0.83, ...}.'
    examples = PAIRS
    corpus_examples = 2

    s1: str = text(PAIR[0], PAIRS["paraphrase"][0], PAIR[0], "a sentence.", link="a")
    s2: str = text(PAIR[1], PAIRS["paraphrase"][1], PAIR[1], "the sentence to compare it with.", link="b")

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model: cosine, percentile, and the mean and the histogram of random pairs' cosines."""
        from cse.analysis.calibration import histogram, percentile
        from cse.vectors import cosines

        warned: dict[str, list[str]] = {}
        read = dict(zip(PAIR, (self.s1, self.s2), strict=True))

        def row(column: Column, encoder: Encoder, vectors: np.ndarray) -> dict[str, Any]:
            cosine, random = (
                float(cosines(vectors[:1], vectors[1:])[0]),
                session.reference.random_cosines(column, encoder),
            )
            warn(warned, column, encoder, read)
            return {
                "cosine": cosine, "percentile": percentile(cosine, random), "random_mean": float(random.mean()),
                "histogram": histogram(random),
            }  # fmt: skip

        rows = session.each_text([self.s1, self.s2], row)
        session.notes += warnings_of(warned, len(rows))
        return stacked(rows)

    def says(self, frame: pd.DataFrame) -> str:
        lesson = next((LESSONS[name] for name, pair in PAIRS.items() if pair == (self.s1, self.s2)), "")
        shares, means = (dict(zip(frame["model"], frame[name], strict=True)) for name in ("percentile", "random_mean"))
        models: dict[str, list[str]] = {}  # by what is shown of them, the least first
        for name in sorted(with_starts(shares), key=shares.__getitem__):
            models.setdefault(less_alike(shares[name]), []).append(name)
        first, *others = models
        noun = {"all": "all random pairs", "none": "no random pair"}.get(first, f"{first} of random pairs")
        in_model = [f"in {listed(names)}" for names in models.values()]
        if not others and len(with_starts(shares)) > 1:
            in_model = [f"in every {'trained ' * any(name.endswith(BEFORE) for name in shares)}model"]
        parts = [f"{shown} {where}" for shown, where in zip((noun, *others), in_model, strict=True)]
        where = f"{parts[0]} (the least) and {parts[-1]} (the most)" if len(parts) > 2 else ", ".join(parts)
        seen = f"{'It' if lesson else 'The pair'} is closer than {where}."
        moved = moved_by_training("mean cosine of random pairs", means, partial(printed, "%.2f"))
        return " ".join(part for part in (lesson, seen, moved) if part)

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        rows, left = {row["model"]: row for row in frame.to_dict("records")}, left_end(frame)
        for row in rows.values():
            row |= {"outline": outline(row["histogram"], left), "at": across(row["cosine"], left)}
            row |= {
                "mean": across(row["random_mean"], left),
                "spoken": among_random(row["percentile"]).replace(" %", "\N{NO-BREAK SPACE}%"),
            }
        return {
            "shown": [(rows[name], rows.get(start)) for name, start in with_starts(rows).items()],
            "ticks": {tick: across(tick, left) for tick in TICKS if tick >= left},
        }

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:  # for files alone: the page has them in its table
        names = list(frame["model"].unique())
        edges, rows, left = np.linspace(-1, 1, BINS + 1), [], left_end(frame)
        for line, (name, shares, cosine, place) in enumerate(
            frame[["model", "histogram", "cosine", "percentile"]].itertuples(index=False)
        ):
            highest = max(shares)
            rows += [
                {"model": name, "line": line, "cosine": middle, "top": line - ROOM * share / highest}
                for middle, share in zip((edges[:-1] + edges[1:]) / 2, shares, strict=True)
                if middle > left
            ]
            rows.append({"model": name, "line": line, "pair": cosine, "top": line - ROOM,
                         "said": f"{cosine:.2f}, {among_random(place)}"})  # fmt: skip
        titles = json.dumps([title(name) for name in names])
        axis = {"values": list(range(len(names))), "labelExpr": f"{titles}[datum.value]", "grid": False, "title": None}
        x = {"type": "quantitative", "title": "cosine", "scale": {"domain": [left, 1]}}
        down = {"domain": [len(names) - 0.9, -1], "nice": False}
        y = {"field": "top", "type": "quantitative", "axis": axis, "scale": down}
        colour = by_model(names, legend=False)
        layers = [
            {"transform": [{"filter": "isValid(datum.cosine)"}], "mark": {"type": "area", "opacity": 0.5},
             "encoding": {"x": {**x, "field": "cosine"}, "y": y, "y2": {"field": "line"}, "color": colour}},
            {"transform": [{"filter": "isValid(datum.pair)"}], "mark": {"type": "rule", "strokeWidth": 2},
             "encoding": {"x": {**x, "field": "pair"}, "y": y, "y2": {"field": "line"}}},
            {"transform": [{"filter": "isValid(datum.pair)"}],
             "mark": {"type": "text", "align": {"expr": "datum.pair > 0.6 ? 'right' : 'left'"}, "baseline": "bottom"},
             "encoding": {"x": {**x, "field": "pair"}, "y": y, "text": {"field": "said"}}},
        ]  # fmt: skip
        heading = "Cosines of random pairs, and of the two sentences"
        return [chart(pd.DataFrame(rows), heading, layer=layers, height=60 * len(names) + 30)]

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        names = {"percentile": "percentile among random pairs", "random_mean": "mean of random pairs"}
        told = frame["percentile"].map(among_random)
        return titled(frame.drop(columns="histogram").assign(percentile=told)).rename(columns=names)

    def answer(self, frame: pd.DataFrame) -> Any:
        return dict(zip(frame["model"], frame["cosine"].tolist(), strict=True)) if len(frame) else {}


def left_end(frame: pd.DataFrame) -> float:
    """Return where the axis of cosines begins, so that it has all pairs, the random ones and the two sentences."""
    first = min(next(bar for bar, share in enumerate(shares) if share) for shares in frame["histogram"])
    least = min(2 * first / BINS - 1, frame["cosine"].min())
    return float(min(LEFT, STEP * np.floor(least / STEP)))


def outline(shares: Sequence[float], left: float) -> str:
    """Return the corners of a histogram from the cosine `left` on as SVG has them; all are of one height."""
    highest, corners = max(shares), []
    for bar, share in enumerate(shares):
        edges = (across(2 * edge / BINS - 1, left) for edge in (bar, bar + 1))
        corners += [f"{edge:.2f},{30 - HEIGHT * share / highest:.2f}" for edge in edges]
    return " ".join(["0,30", *dict.fromkeys(corners), "100,30"])


def across(cosine: float, left: float) -> float:
    """Return where a cosine is on an axis from `left` to 1, as 0 to 100."""
    return round(100 * min(max((cosine - left) / (1 - left), 0), 1), 2)


def among_random(percentile: float) -> str:
    """Return a percentile among random pairs to the precision that a sample of them allows."""
    if percentile in (0, 100):
        return "above all random pairs" if percentile else "below all random pairs"
    if not 0.05 <= percentile < 99.95:
        return "above 99.9 %" if percentile > 50 else "below 0.1 %"
    return f"{percentile:.1f} %"


def less_alike(percentile: float) -> str:
    """Return the same as the share of random pairs that are less alike."""
    if percentile in (0, 100):
        return "all" if percentile else "none"
    return among_random(percentile).replace("above", "over").replace("below", "under")


@dataclass(frozen=True)
class Pairs(Result):
    """The cosine and the percentile of every two sentences of a list, in every model."""

    key = "pairs"
    title = "All pairs of a list"

    lines: str = lines(
        f"Sentences, one per line ({LEAST_SENTENCES} to {MAX_SENTENCES})", SENTENCES, LIST,
        "2 to 40 sentences, separated by newlines.", LEAST_SENTENCES, MAX_SENTENCES, link="list",
    )  # fmt: skip
    measure: str = choice(
        "Show", "cosine", "The value", "what the page shows, cosine or percentile; the answer has both.",
        (("Cosine", "cosine"), ("Percentile", "percentile")), link="value",
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model and pair: the sentences with their numbers from 1, the cosine and the percentile."""
        from cse.analysis.calibration import percentiles
        from cse.vectors import unit_rows

        sentences = self.lines.splitlines()
        one, other = np.triu_indices(len(sentences), 1)
        warned: dict[str, list[str]] = {}

        def rows(column: Column, encoder: Encoder, vectors: np.ndarray) -> pd.DataFrame:
            warn(warned, column, encoder, {f"Sentence {number}": text for number, text in enumerate(sentences, 1)})
            unit = unit_rows(vectors)
            cosines = (unit @ unit.T)[one, other].astype(np.float64)
            return pd.DataFrame({
                "first": one + 1, "second": other + 1, "s1": [sentences[row] for row in one],
                "s2": [sentences[row] for row in other], "cosine": cosines,
                "percentile": percentiles(cosines, session.reference.random_cosines(column, encoder)),
            })  # fmt: skip

        answers = session.each_text(sentences, rows)
        session.notes += warnings_of(warned, len(answers))
        return stacked(answers)

    def says(self, frame: pd.DataFrame) -> str:
        trained = frame[frame["model"].isin(list(with_starts(frame["model"].unique())))]
        closest = trained.loc[trained.groupby("model", sort=False)["cosine"].idxmax()]
        said = f"Most alike: {by_answer({row.model: f'{row.first} and {row.second}' for row in closest.itertuples()})}."
        shares = trained.pivot(index=["first", "second"], columns="model", values="percentile")
        if shares.shape[1] < 2 or len(shares) < 2:
            return said
        spread = shares.max(axis=1) - shares.min(axis=1)
        if spread.max() < 0.05:  # percentiles are shown with one digit
            return f"{said} The models agree on the percentile of every pair."
        pair = spread.idxmax()
        of_pair, models = shares.loc[pair], "trained models" if len(trained) < len(frame) else "models"
        return (
            f"{said} The {models} differ most on {pair[0]} and {pair[1]}: percentile {of_pair.min():.1f} in "
            f"{title(of_pair.idxmin())}, {of_pair.max():.1f} in {title(of_pair.idxmax())}."
        )

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        sentences = self.lines.splitlines()
        alone = {"cosine": 1.0, "percentile": 100.0}  # of a sentence with itself
        squares = {}
        for name, rows in by_models(frame).items():
            pairs = {(pair["first"], pair["second"]): pair for pair in rows.to_dict("records")}
            numbers = range(1, len(sentences) + 1)
            squares[name] = [
                [self.cell(row, column, pairs.get((min(row, column), max(row, column)), alone)) for column in numbers]
                for row in numbers
            ]
        return {"sentences": sentences, "squares": squares, "quantity": self.measure.capitalize()}

    def cell(self, row: int, column: int, pair: Mapping[str, float]) -> tuple[str, int, str]:
        """Return what a cell shows, its tint from 0 to 100, and what it tells."""
        cosine, share = pair["cosine"], pair["percentile"]
        told = f"{row} and {column}: cosine {cosine:.3f}, percentile {share:.1f}"
        if self.measure == "percentile":
            return f"{share:.0f}", round(share), told
        shown = f"{cosine:.2f}".replace("0.", ".", 1).replace("-.00", ".00").replace("-", "\N{MINUS SIGN}")
        return shown, round(100 * max(cosine, 0)), told


def warn(warned: dict[str, list[str]], column: Column, encoder: Encoder, texts: Mapping[str, str]) -> None:
    """Add why a model's vector may represent a text badly, by the name of the text, with the model's title."""
    from cse.analysis.calibration import input_notes

    for name, sentence in texts.items():
        for note in input_notes(encoder, sentence):
            warned.setdefault(f"{name}: {note}", []).append(title(column.name))


def warnings_of(warned: Mapping[str, Sequence[str]], models: int) -> list[str]:
    """Return the first warnings as sentences, with the models that they concern where these are not all."""
    said = [f"{note}." if len(names) == models else f"{note} ({', '.join(names)})." for note, names in warned.items()]
    more = len(said) - MAX_WARNINGS
    return [*said[:MAX_WARNINGS], *([f"{more} more such notes."] if more > 0 else [])]


def by_answer(answers: Mapping[str, str]) -> str:
    """Return which models give which answer: "dog in SimCSE and ConPVP; cat in DCPCSE"."""
    if len(set(answers.values())) == 1 and len(answers) > 1:
        return f"{next(iter(answers.values()))} in every model"
    groups = {answer: [name for name in answers if answers[name] == answer] for answer in answers.values()}
    return "; ".join(f"{answer} in {listed(names)}" for answer, names in groups.items())


@dataclass(frozen=True)
class Disagreements(Result):
    """Near pairs of texts of the corpus by how differently the models rank them."""

    key = "disagreements"
    title = "Where do the models disagree?"
    live = False  # a model may have to encode the corpus first

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row per model and pair: its number, its texts and their rows in the file, the cosine, its place.

        The pairs are texts spread over the corpus with their nearest others in each model; the place is the rank of
        the cosine among all pairs, from 0 to 1.
        """
        from cse.vectors import cosines, cosines_to_others

        corpus = session.corpus
        texts, numbers = corpus.texts, corpus.numbers
        rows = np.unique(np.linspace(0, len(texts) - 1, SAMPLED).astype(int))
        vectors = session.each(corpus.vectors) if len(texts) > 1 else {}
        pairs: dict[tuple[int, int], None] = {}
        for of_model in vectors.values():
            nearest = np.nanargmax(cosines_to_others(of_model, rows), axis=1)
            pairs |= dict.fromkeys((min(pair), max(pair)) for pair in zip(rows.tolist(), nearest.tolist(), strict=True))
        different = [pair for pair in pairs if texts[pair[0]] != texts[pair[1]]]
        if len(different) < LEAST_PAIRS and not session.failed:
            reason = f"{corpus.label} has too few different texts; {LEAST_PAIRS} pairs are needed."
            raise FieldError("The corpus", reason)
        one, other = ([pair[side] for pair in different] for side in (0, 1))
        shared = {
            "pair": range(1, len(different) + 1), "s1": [texts[row] for row in one],
            "s2": [texts[row] for row in other], "row1": [numbers[row] for row in one],
            "row2": [numbers[row] for row in other],
        }  # fmt: skip
        tables = {}
        for name, of_model in vectors.items():
            values = cosines(of_model[one], of_model[other])
            tables[name] = pd.DataFrame({**shared, "cosine": values, "place": normalised_ranks(values)})
        return stacked(tables)

    def says(self, frame: pd.DataFrame) -> str:
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
        return {"shown": ranked(frame)[:SHOWN_PAIRS], "starts": with_starts(frame["model"].unique())}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        pairs = [(pair.pop("places"), pair) for pair in ranked(frame)]
        return pd.DataFrame(
            {**pair, **{title(name): value for name, value in places.items()}} for places, pair in pairs
        )


def ranked(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the pairs, those whose places differ most first: texts, their rows, and the places by model."""
    names = list(frame["model"].unique())
    places = frame.pivot(index="pair", columns="model", values="place")[names]
    compared = places[list(with_starts(names))]
    order = (compared.min(axis=1) - compared.max(axis=1)).sort_values(kind="stable").index
    texts = frame[frame["model"] == names[0]].set_index("pair").drop(columns=["model", "cosine", "place"])
    pairs = zip(texts.loc[order].to_dict("records"), places.loc[order].to_dict("records"), strict=True)
    return [{**pair, "places": of_pair} for pair, of_pair in pairs]
