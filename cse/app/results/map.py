"""Maps of a corpus, one for each model, aligned, with the groups of the texts and how far the models disagree."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from cse.app.charts import chart
from cse.app.models.models import fingerprint_of
from cse.app.models.naming import BEFORE, title
from cse.app.result import Result, by_models, further_columns, listed, moved_by_training, percent, plain, whole, wide
from cse.app.results.colourings import HOLLOW, Colouring, by_disagreement, by_group, colourings
from cse.app.validation import FieldError, counted, one_of
from cse.methods.settings import MAX_SEED
from cse.models.fitted_texts import fitted_count, fitted_note

if TYPE_CHECKING:
    from cse.analysis.topics import Names
    from cse.app.corpus.corpora import ChosenCorpus
    from cse.app.models.models import Column
    from cse.app.state import Session
    from cse.encoder.encoder import Encoder
    from cse.evaluation import Encode

MIN_POINTS, MAX_POINTS = 100, 10_000
GROUPS, MAX_GROUPS, SEED = 12, 100, 42  # number of groups, and the seed of k-means
NAME_WORDS, WORDS = 3, 8
SIDE, LETTER = 220, 7.5  # points of a map in a figure of 160 mm, and of the letters of its names
WIDTH, HEIGHT = 0.62, 1.2  # of a letter and of a line, as shares of their size
UPPER, OFFSETS = 0.1, (0, -1, 1, -2, 2)  # places of names, as in static/map.js
FEW, MARGIN = 20, 1.96  # texts of which too little follows about neighbours; standard errors in half of a 95 % interval
SCORES = ("trustworthiness", "continuity", "same_topic")  # of a map
OWN_COLUMNS = (
    "model", "position", "row", "text", "label", "group", "name", "words", "x", "y", "near", "lost", "typicality",
    "disagreement", *SCORES,
)  # fmt: skip
TEXT_COLUMNS = ["position", "row", "text", "label"]  # of these


class ModelMap(NamedTuple):
    """A model's map of N points: `xy` (N, 2) centred, its nearest texts `near` (N, k), and the scores of the map.

    `lost` (N,) is the share of a point's neighbours that the map does not show; a score is None if it is undefined.
    """

    xy: np.ndarray
    near: np.ndarray
    lost: np.ndarray
    trustworthiness: float | None
    continuity: float | None
    same_topic: float | None = None


@dataclass(frozen=True)
class Map(Result):
    """t-SNE maps of texts, one for each model, aligned with the first model's, and their k-means groups.

    A group has the number and the name of the group of an earlier model that has about its texts (`matched`), if any.
    """

    key = "map"
    title = "Maps"
    summary = (
        't-SNE maps: {"labels": [...], "texts": [...], "maps": {"simcse": {"xy": [[x, y]], "near": [[3]], ...}}}.\n\n'
        'Coordinates are between 0 and 1. "near" are the indices of the five texts with the nearest vectors (of copies '
        'the first), "lost" the share of the ten nearest that are not near on the map; "trustworthiness", '
        '"continuity", "same_topic" are null if they are undefined. "groups" are k-means groups of the vectors: "of" '
        'each text, the "words" of each group, and its most frequent label with its share in "labels"; equal numbers '
        "are matched."
    )
    lane = "maps"
    words = ("trustworthiness", "continuity", "label neighbours")

    most: int = whole(
        "Points at most", MAX_POINTS, "The most points", "how many texts of a corpus, sampled evenly.", MIN_POINTS,
        MAX_POINTS,
    )  # fmt: skip
    seed: int = whole("Seed", 0, "The seed", "the seed of t-SNE; the same seed gives the same map.", 0, MAX_SEED)
    groups: int = whole("Groups", GROUPS, "The number of groups", "how many groups.", 1, MAX_GROUPS)
    # What the page shows of the answer, which a figure repeats: the models of the maps, separated by commas, the
    # colouring, and the positions of the selected texts, if any, with the words and the entry that select them.
    maps: str = ""
    colour: str = ""
    points: Sequence[int] = ()
    sought: str = ""
    entry: str = ""

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each model and text, from `frames`."""
        *_, last = self.frames(session)
        return last

    def frames(self, session: Session) -> Iterator[pd.DataFrame]:
        """Yield the table of the maps so far, each time one is done; the columns are `OWN_COLUMNS` and the corpus's.

        A column of the corpus that has a name of ours ends with a blank.

        `near` are the positions of the nearest texts, `disagreement` the mean share of them that another model lacks,
        and `typicality` the cosine to the mean direction of the text's group.
        """
        from cse.analysis.maps import evenly
        from cse.analysis.topics import group_names
        from cse.analysis.votes import texts_digest

        known = session.state.frames.get(self.cache_key(session))
        if known is not None:
            frame, session.models, notes = known[0], dict(known[1]), known[2]
            session.notes[:] = dict.fromkeys([*session.notes, *notes])
            yield frame
            return
        points = evenly(len(session.corpus.texts), self.most)
        texts = texts_of(session.corpus, points)
        if len(texts) < len(session.corpus.texts):
            session.notes.append(f"{len(texts):,} of {len(session.corpus.texts):,} texts are drawn, sampled evenly.")
        labels = None if session.corpus.labels is None else texts["label"].tolist()
        digest, sentences = texts_digest(texts["text"]), texts["text"].str.strip().tolist()
        drawn: dict[str, tuple[ModelMap, np.ndarray, np.ndarray, Names]] = {}
        first: Hashable = None

        def read(column: Column, encoder: Encoder) -> tuple[Hashable, np.ndarray]:
            # Models of one fingerprint may have different tokenizers.
            return (column.opened_by, fingerprint_of(encoder)), session.corpus.vectors(column, encoder)[points]

        frame, count = pd.DataFrame(), len(session.columns)
        for number, column in enumerate(session.columns):
            session.report(number, count, f"drawing {title(column.name)}")
            answer = session.each(read, [column]).get(column.name)
            if answer is not None:  # drawn outside of the model's turn, for which other visitors wait
                model, vectors = answer
                if not drawn:
                    first, named_by = model, (vectors, word_encoder(session, column, vectors.shape[1]))
                reference = next(iter(drawn.values()))[0].xy if drawn else None
                made = one_map(session, (model, first, digest, self.seed), vectors, sentences, reference)
                made = made._replace(same_topic=label_neighbours(session, (model, digest), vectors, labels))
                groups = groups_of(session, (model, digest, self.groups), vectors, sentences, self.groups)
                drawn[column.name] = made, *groups, group_names(texts["text"].tolist(), groups[0], WORDS, *named_by)
                frame, said = table(texts, drawn)
                if number + 1 < count:
                    yield frame
        if drawn:
            fitted = fitted_counts(session, sentences) if labels else {}
            frame.attrs["fitted"] = list(fitted)
            too_good = "label neighbours are too good here; Results and Your model count those held out"
            session.notes.extend([*said, *fitted_notes(fitted, sentences, too_good)])
        if not session.failed:
            session.state.frames.put(self.cache_key(session), (frame, dict(session.models), tuple(session.notes)))
        yield frame

    def keep(self, session: Session, frame: pd.DataFrame, models: Mapping[str, str], notes: tuple[str, ...]) -> None:
        """Keep a table of the session's models, which have these fingerprints, and its maps, as if they were drawn."""
        from cse.analysis.votes import texts_digest

        session.state.frames.put(self.cache_key(session), (frame, dict(models), notes))
        opened = {column.name: (column.opened_by, models[column.name]) for column in session.columns}
        maps = by_models(frame)
        first, one = next(iter(maps.items()))
        digest = texts_digest(one["text"])
        for name, rows in maps.items():
            scores = (plain(rows[score].iloc[0]) for score in SCORES[:2])
            xy, near = rows[["x", "y"]].to_numpy(np.float64) - 0.5, near_of(rows).astype(np.int32)
            made = ModelMap(xy, near, rows["lost"].to_numpy(np.float32), *scores)
            session.state.maps.put((opened[name], opened[first], digest, self.seed), made)

    def cache_key(self, session: Session) -> tuple[Hashable, ...]:
        """Return the key of the table among those of other corpora, models and values, that of the corpus first."""
        columns = tuple((column.name, column.opened_by) for column in session.columns)
        corpus = (session.corpus.key, session.corpus.number, len(session.corpus.texts))
        return corpus, columns, self.most, self.seed, self.groups

    def shown(self, frame: pd.DataFrame) -> list[str]:
        """Return the models whose maps are shown, by default two."""
        models = list(by_models(frame))
        return [name for name in self.maps.split(",") if name in models] or [name for name in pair_of(models) if name]

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:  # no text is inside a file
        models = by_models(frame)
        maps = {name: models[name] for name in self.shown(frame)}
        colouring = next((one for one in colourings_of(frame, list(maps)) if one.title == self.colour), None)
        entries = [rows["group"] - 1 if colouring is None else colouring.of[rows["position"]] for rows in maps.values()]
        points = pd.concat(maps.values(), ignore_index=True)
        points = points.assign(entry=np.concatenate(entries), chosen=points["position"].isin(self.points))
        colouring = colouring or by_group(frame)
        used = sorted(set(points["entry"]))  # two entries may have one name, so that their numbers are the domain
        looks = {
            "field": "entry", "type": "nominal", "title": colouring.title.lower(),
            "legend": {"labelLimit": 0, "orient": "bottom", "labelExpr": f"{json.dumps(colouring.names)}[datum.value]"},
        }  # fmt: skip
        colours, shapes = zip(*(colouring.looks()[entry] for entry in used), strict=True)
        axis = {"axis": None, "type": "quantitative", "scale": {"domain": [0, 1]}}
        at = {"x": {"field": "x", **axis}, "y": {"field": "y", **axis, "scale": {"domain": [1, 0]}}}
        encoding = {
            **at, "color": {**looks, "scale": {"domain": used, "range": colours}},
            "shape": {**looks, "scale": {"domain": used, "range": [HOLLOW.get(shape, shape) for shape in shapes]}},
        }  # fmt: skip
        if points["chosen"].any():  # the others are faint, as on the page
            encoding["opacity"] = {"condition": {"test": "datum.chosen", "value": 0.9}, "value": 0.1}
        layers: list[dict[str, Any]] = [
            {"transform": [{"filter": "!isValid(datum.name)"}], "encoding": encoding,
             "mark": {"type": "point", "filled": True, "size": 12, "aria": False}}
        ]  # fmt: skip
        text: dict[str, Any] = {"type": "text", "baseline": "bottom", "fontSize": LETTER, "fontWeight": "bold"}
        for look in ({"stroke": "white", "strokeWidth": 3, "opacity": 0.8}, {}):  # points are seen around the letters
            layers.append({"transform": [{"filter": "isValid(datum.name)"}], "mark": {**text, **look},
                           "encoding": {**at, "text": {"field": "name"}}})  # fmt: skip
        shown = pd.concat([points[["model", "entry", "chosen", "x", "y"]], names_on(points, colouring)])
        facet = {"field": "model", "title": None, "sort": [title(name) for name in maps]}
        spec = {"width": SIDE, "height": SIDE, "layer": layers}
        return [chart(shown, "Maps of the texts", facet=facet, columns=2, spec=spec)]

    def facts(self, frame: pd.DataFrame) -> list[str]:
        chosen, by_what = "", ", ".join(filter(None, [self.sought and f"“{self.sought[:60]}”", self.entry]))
        if self.points:
            texts = f"{counted(len(self.points), 'selected text')}{f' ({by_what})' if by_what else ''}"
            chosen = f"; the {texts} {'are' if len(self.points) > 1 else 'is'} dark"
        shown, by = self.shown(frame), self.colour.strip() or "group"
        if by == "Disagreement":
            by = f"how many of a text's nearest texts {listed(shown[:2])} do not share"
        return [f"Maps of {listed(shown)}, coloured by {by}{chosen}."]

    def says(self, frame: pd.DataFrame) -> str:
        fitted = frame.attrs.get("fitted", ())  # whose neighbours are too good here
        shares = {name: rows["same_topic"].iloc[0] for name, rows in by_models(frame).items() if name not in fitted}
        moved = moved_by_training("label neighbours of all texts", shares, lambda share: f"{100 * share:.1f} %")
        several = frame["model"].nunique() > 2  # what two have in common stands in Changes
        return f"{moved} {neighbourhoods(disagreements(frame)) if several else ''}".strip()

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        terms = {"same_topic": "label neighbours", "trustworthiness": "trustworthiness", "continuity": "continuity"}
        scores = frame.groupby("model", sort=False)[list(terms)].first().rename(columns=terms)
        known = [name for name in scores if scores[name].notna().any()]
        return {"scores": scores[known].to_dict("index"), "known": known}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        return wide(frame[frame["model"].isin(self.shown(frame))], ["row", "text"], "name")

    def answer(self, frame: pd.DataFrame) -> Any:
        if frame.empty:
            return {"labels": None, "texts": [], "maps": {}}
        one = frame[frame["model"] == frame["model"].iloc[0]]
        labels = None if one["label"].isna().all() else one["label"].tolist()
        maps = {name: map_json(rows) for name, rows in by_models(frame).items()}
        return {"labels": labels, "texts": one["text"].tolist(), "maps": maps}

    def with_failures(self, answer: Any, failed: Mapping[str, str]) -> Any:
        return {**answer, "maps": super().with_failures(answer["maps"], failed)}


def word_encoder(session: Session, column: Column, width: int) -> Encode:
    """Return what encodes the candidates for names of groups by a model of this width, each once.

    All words are alike if the model fails now, so that their counts alone decide.
    """
    alike = np.ones(width, np.float32)
    known: dict[str, np.ndarray] = {}

    def encode(words: Sequence[str]) -> np.ndarray:
        if new := [word for word in words if word not in known]:
            for vectors in session.each(lambda _, encoder: encoder.encode(new), [column]).values():
                known.update(zip(new, vectors, strict=True))
        return np.stack([known.get(word, alike) for word in words])

    return encode


def one_map(
    session: Session,
    key: tuple[Any, ...],
    vectors: np.ndarray,
    texts: Sequence[str],
    reference: np.ndarray | None,
) -> ModelMap:
    """Return the map of vectors (N, d) of texts, aligned to the `reference` (N, 2); it is kept under the key.

    It has no label neighbours, as the same texts may have other labels.

    Copies of a text are no neighbours of each other, and one of a text's neighbours at most: which one is near is
    chance, and two models that agree would seem to differ.
    """
    from cse.analysis.maps import LOST_DEPTH, NEIGHBOURS, continuity, lost, place, trustworthiness
    from cse.analysis.maps import MIN_POINTS as MIN_SCORED
    from cse.evaluation.metrics import numbered
    from cse.vectors import nearest_others

    known = session.state.maps.get(key)
    if known is None:
        seed: int = key[-1]
        xy, count = place(vectors, seed, reference), len(vectors)
        text_of = numbered(texts)[1]
        rows = np.unique(text_of, return_index=True)[1]  # the first of each text
        near = nearest_others(np.asarray(vectors[rows], np.float32), LOST_DEPTH)
        missed = lost(near[:, : (len(rows) - 1) // 2], xy[rows]).astype(np.float32)[text_of]
        shown = rows[near[:, :NEIGHBOURS]].astype(np.int32)[text_of]
        scored = count >= MIN_SCORED
        scores = (trustworthiness(vectors, xy), continuity(vectors, xy)) if scored else (None, None)
        known = ModelMap(xy, shown, missed, *scores)
        session.state.maps.put(key, known)
    return known


def label_neighbours(
    session: Session, key: Hashable, vectors: np.ndarray, labels: Sequence[str] | None
) -> float | None:
    """Return the share of neighbours of the same label, kept under the key and the labels; None if it is undefined."""
    from cse.analysis.maps import MIN_POINTS as MIN_SCORED
    from cse.analysis.votes import texts_digest
    from cse.evaluation.clustering import neighbour_values

    if labels is None or len(labels) < MIN_SCORED:
        return None
    mark = key, texts_digest(labels)
    known = session.state.maps.get(mark)
    if known is None:
        labelled = [row for row, label in enumerate(labels) if label]
        gold = np.unique([labels[row] for row in labelled], return_inverse=True)[1]
        known = [float(neighbour_values(vectors[labelled], gold).mean()) if len(labelled) > 1 else None]
        session.state.maps.put(mark, known)
    return known[0]


def groups_of(
    session: Session, key: Hashable, vectors: np.ndarray, texts: Sequence[str], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (N,) groups of vectors (N, d) of texts, at most half as many as different texts, and (N,) typicalities."""
    from cse.analysis.topics import grouped, typicality

    known = session.state.groups.get(key)
    if known is None:
        groups = grouped(vectors, min(count, max(1, len(set(texts)) // 2)), SEED, texts)
        known = groups, typicality(vectors, groups)
        session.state.groups.put(key, known)
    return known


def fitted_counts(session: Session, texts: Sequence[str]) -> dict[str, int]:
    """Return the models that were fitted on some of these texts, each with their number; none before its training."""
    counts = {column.name: fitted_count(column.model, texts) for column in session.columns if not column.start}
    return {name: count for name, count in counts.items() if count}


def fitted_notes(counts: Mapping[str, int], texts: Sequence[str], too_good: str) -> list[str]:
    """Return how many of these texts models were fitted on, and what of theirs is therefore `too_good`."""
    names: dict[str, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(fitted_note(count, len(set(texts)), "different texts"), []).append(title(name))
    return [
        f"{listed(of)} {'were' if len(of) > 1 else 'was'} {note}, so {'their' if len(of) > 1 else 'its'} {too_good}."
        for note, of in names.items()
    ]


def texts_of(corpus: ChosenCorpus, rows: np.ndarray) -> pd.DataFrame:
    """Return the texts at these rows with their own columns: position, row, text and label, then the corpus's."""

    def some(values: Sequence[Any]) -> list[Any]:
        return [values[row] for row in rows.tolist()]

    columns = {"row": corpus.numbers, "text": corpus.texts, **({"label": corpus.labels} if corpus.labels else {})}
    own = {"position": range(len(rows)), "label": None, **{name: some(values) for name, values in columns.items()}}
    texts = pd.DataFrame({name: own[name] for name in TEXT_COLUMNS})
    return texts.join(corpus.further(rows.tolist(), OWN_COLUMNS)) if corpus.table is not None else texts


def table(
    texts: pd.DataFrame, drawn: Mapping[str, tuple[ModelMap, np.ndarray, np.ndarray, Names]]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of the maps, and notes on the words of the groups' names."""
    from cse.analysis.maps import squared, unshared
    from cse.analysis.topics import matched
    from cse.corpus.words import word_notes

    known, of, marking = np.zeros((0, len(texts)), bool), dict[str, np.ndarray](), list[list[str]]()
    for name, (_, groups, _, names) in drawn.items():  # a group has its name in the first model that has it
        of[name] = matched(groups, known)
        numbers = np.arange(len(known), of[name].max() + 1)
        if len(numbers):
            known = np.concatenate([known, numbers[:, None] == of[name]])
            marking += [names.words[groups[of[name] == number][0]] for number in numbers]
    words = np.array([" ".join(group) for group in marking], dtype=object)
    titles = np.array(titles_of(marking), dtype=object)
    square = squared({name: made.xy for name, (made, *_) in drawn.items()})
    parts = []
    for name, (made, _, typical, _) in drawn.items():
        others = [unshared(made.near, other.near) for model, (other, *_) in drawn.items() if model != name]
        parts.append(texts[TEXT_COLUMNS].assign(
            model=name, group=of[name] + 1, name=titles[of[name]], words=words[of[name]], x=square[name][:, 0],
            y=square[name][:, 1], near=made.near.tolist(), lost=made.lost, typicality=typical,
            disagreement=np.mean(others, axis=0) if others else np.nan, trustworthiness=made.trustworthiness,
            continuity=made.continuity, same_topic=made.same_topic,
        )[list(OWN_COLUMNS)].join(texts.drop(columns=TEXT_COLUMNS)))  # fmt: skip
    notes = word_notes(texts["text"].tolist(), (word for group in marking for word in group))
    names, *further = (names for *_, names in drawn.values())
    left_out = [word for word in names.left_out if all(word in each.left_out for each in further)]
    return pd.concat(parts, ignore_index=True), [*notes, *names._replace(left_out=left_out).notes(WORDS)]


def titles_of(marking: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each group from its first words, or its number; of equal ones the later have a further word."""
    names: list[str] = []
    for number, words in enumerate(marking, 1):
        first = " ".join(words[:NAME_WORDS]) or f"group {number}"
        longer = (f"{first} {word}" for word in words[NAME_WORDS:])
        names.append(next((name for name in (first, *longer) if name not in names), f"{first} ({number})"))
    return names


def near_of(rows: pd.DataFrame) -> np.ndarray:
    """Return the (N, k) positions of the nearest texts in a model's rows."""
    return np.stack(rows["near"].tolist()).astype(int)


def disagreements(frame: pd.DataFrame) -> dict[tuple[str, str], np.ndarray]:
    """Return, of each two models, the (N,) share of a text's five nearest texts that they do not share."""
    from cse.analysis.maps import unshared

    near = {name: near_of(rows) for name, rows in by_models(frame).items()}
    return {(one, other): unshared(near[one], near[other]) for one, other in combinations(near, 2)}


def neighbourhoods(unshared: Mapping[tuple[str, str], np.ndarray]) -> str:
    """Return which two models differ most in the texts' neighbours, if by more than chance; nothing of few texts.

    Two starts that are one backbone do not count as models that differ least.
    """
    unshared = {  # "A before training and B" can be read in one way alone
        (other, one) if other.endswith(BEFORE) else (one, other): shares
        for (one, other), shares in unshared.items() if len(unshared) == 1 or shares.any()
    }  # fmt: skip
    if not unshared or len(next(iter(unshared.values()))) < FEW:
        return ""
    means = {pair: float(shares.mean()) for pair, shares in unshared.items()}
    most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    lead, some = unshared[most] - unshared[least], f"in {percent(means[most])} of a text's five nearest texts"
    if len(means) == 1:
        return f"{listed(most)} differ {some}."
    if lead.mean() <= MARGIN * lead.std() / np.sqrt(len(lead)):
        return f"Each two models differ {some}, within noise."
    return f"{listed(most)} differ most: {some}. {listed(least)} differ least ({percent(means[least])})."


def colourings_of(frame: pd.DataFrame, shown: Sequence[str] = ()) -> list[Colouring]:
    """Return the colourings of a map's table beside that by group; by disagreement if two models are shown."""
    from cse.analysis.maps import unshared

    models = by_models(frame)
    one = next(iter(models.values()))
    made = colourings(one, {name: one[name] for name in further_columns(frame, OWN_COLUMNS)})
    if len(shown) > 1:
        first, second = (near_of(models[name]) for name in shown[:2])
        made.append(by_disagreement(first.shape[1], unshared(first, second)))
    return made


def names_on(points: pd.DataFrame, colouring: Colouring) -> pd.DataFrame:
    """Return the names of a colouring on the maps of a figure, above where most of their points lie, as static/map.js.

    A name that would overlap with others is moved, or left out.
    """
    rows: list[dict[str, Any]] = []
    for (model, entry), members in () if colouring.ordered else points.groupby(["model", "entry"], sort=False):
        if entry == colouring.missing:
            continue
        near = densest_half(members)
        name, x, top = colouring.on_maps[entry], near["x"].median(), near["y"].quantile(UPPER)
        across, down = len(name) * LETTER * WIDTH / SIDE, LETTER * HEIGHT / SIDE
        x = min(max(x, across / 2), max(1 - across / 2, across / 2))
        others = [row for row in rows if row["model"] == model and abs(x - row["x"]) < (across + row["across"]) / 2]
        free = (y for y in (top + step * down for step in OFFSETS) if all(abs(y - row["y"]) >= down for row in others))
        if (y := next(free, None)) is not None:
            rows.append({"model": model, "name": name, "x": x, "y": min(max(y, down), 1), "across": across})
    return pd.DataFrame(rows, columns=["model", "name", "x", "y"])


def densest_half(members: pd.DataFrame) -> pd.DataFrame:
    """Return the half of an entry's points around which most of them lie, as static/map.js does."""

    def closest(pool: pd.DataFrame, size: int) -> pd.DataFrame:
        away = ((pool[["x", "y"]] - near[["x", "y"]].median()) ** 2).sum(axis=1)
        return pool.loc[away.nsmallest(max(1, size)).index]

    near = members
    for part in (2, 4, 8):
        near = closest(near, len(members) // part)
    return closest(members, (len(members) + 1) // 2)


def map_json(rows: pd.DataFrame) -> dict[str, Any]:
    """Return a model's map as JSON values."""
    from cse.analysis.topics import majority

    groups, count = rows["group"].to_numpy() - 1, int(rows["group"].max())
    words: list[list[str]] = [[] for _ in range(count)]
    labels: list[list[Any] | None] = [None] * count
    for group, members in rows.groupby("group"):
        words[group - 1] = members["words"].iloc[0].split()
        named = majority(members["label"].fillna("").tolist())
        labels[group - 1] = list(named) if named else None
    scores = {name: plain(rows[name].iloc[0]) for name in SCORES}
    return {
        "xy": rows[["x", "y"]].to_numpy().tolist(), "near": near_of(rows).tolist(), "lost": rows["lost"].tolist(),
        **scores, "groups": {"of": groups.tolist(), "words": words, "labels": labels},
    }  # fmt: skip


def pair_of(names: Sequence[str], first: str = "", second: str = "") -> tuple[str, str]:
    """Return the two models to compare: those named, or the newest before and after its training, or the first two."""
    for name, field in ((first, "The first model"), (second, "The second model")):
        if name:
            one_of(name, field, names)
    trained = next((name for name in reversed(names) if f"{name}{BEFORE}" in names), "")
    default = [f"{trained}{BEFORE}", trained] if trained else list(names)
    first = first or next((name for name in default if name != second), "")
    second = second or next((name for name in default if name != first), "")
    if second and first == second:
        raise FieldError("The second model", "The second model is the first one; choose another.")
    return first, second
