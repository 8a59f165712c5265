"""Colours of the maps' points: by group, by a column of the corpus, by length, and by what two maps disagree on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cse.app.html import DARK, LIGHT, TINTS
from cse.app.result import plain

MOST_DIFFERENT = 0.75  # of the cells of a column that colours
MOSTLY, FIFTHS = 0.95, 5  # of a column's cells: numbers or dates, which are coloured by so many parts
ISO_DATE = r"\d{4}-\d\d(-\d\d)?([T ].*)?"
DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})\b.*", re.DOTALL)
SHAPES = ("circle", "square", "triangle-up", "diamond")  # in turn
HOLLOW = {  # for the second use of a hue, with their paths in a figure: the hole runs the other way round
    "hollow circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0ZM.6,0A.6,.6,0,1,0,-.6,0A.6,.6,0,1,0,.6,0Z",
    "hollow square": "M-.9,-.9H.9V.9H-.9ZM-.54,-.54V.54H.54V-.54Z",
    "hollow triangle-up": "M0,-1.1L1.1,.8H-1.1ZM0,-.5L-.6,.5H.6Z",
    "hollow diamond": "M0,-1.2L1.2,0L0,1.2L-1.2,0ZM0,-.7L-.7,0L0,.7L.7,0Z",
}
MARKS = (*SHAPES, *HOLLOW)
NONE = np.zeros(0, int)
MAP_WORDS = 2  # of a group's name on a map, where they tell it from the others
HUES = {"light": LIGHT, "dark": DARK}


class Colouring(NamedTuple):
    """The names of its entries and the (N,) number `of` each text's; `missing` is the entry of texts without a cell.

    The entries of an `ordered` one have tints, from least to most; those of another one hues and shapes, by the numbers
    of `marks` if it has any. Other entries beyond the hues are grey. On a map an entry has its `short` name, if any.
    """

    title: str
    names: list[str]
    of: np.ndarray
    missing: int = -1
    ordered: bool = False
    marks: Sequence[tuple[int, int]] = ()
    short: Sequence[str] = ()

    @property
    def on_maps(self) -> Sequence[str]:
        """The names of the entries on a map."""
        return self.short or self.names

    def looks(self, scheme: str = "light") -> list[tuple[str, str]]:
        """Return the colour of each entry in a colour scheme, and its shape."""
        hues = HUES[scheme]
        if self.marks:
            return [(hues[hue], MARKS[shape]) for hue, shape in self.marks]
        last, made = len(self.names) - (2 if self.missing > 0 else 1), []
        for entry in range(len(self.names)):
            known = entry != self.missing
            if known and entry < len(hues) and not self.ordered:
                colour = hues[entry]
            else:
                at = 2 * entry / max(1, last) if self.ordered and known else 0
                tint = [np.interp(at, (0, 1, 2), part) for part in zip(*TINTS[scheme], strict=True)]
                colour = "#" + "".join(f"{round(part):02x}" for part in tint)
            made.append((colour, SHAPES[int(not known) if self.ordered else entry % len(SHAPES)]))
        return made

    def drawn(self) -> dict[str, Any]:
        """Return what static/map.js draws of it, without the entries of the texts."""
        colours = {scheme: [colour for colour, _ in self.looks(scheme)] for scheme in HUES}
        shapes = [shape for _, shape in self.looks()]
        return {"title": self.title, "names": self.names, "missing": self.missing, "named": not self.ordered,
                "short": self.on_maps, "shapes": shapes, **colours}  # fmt: skip


def colourings(texts: pd.DataFrame, columns: Mapping[str, pd.Series]) -> list[Colouring]:
    """Return the colourings of a map's texts, by label, by those of the corpus's `columns` that repeat, and by length.

    Cells of ids and titles do not repeat. Labels that are a column have its name.
    """
    shown, labels = {name.strip(): as_texts(cells) for name, cells in columns.items()}, texts["label"]
    named = {"Label": labels} if labels.notna().any() and not is_column(labels, shown.values()) else {}
    made = []
    for name, cells in {**named, **shown}.items():
        filled, ordered = cells[cells != ""], by_fifths(name, cells)
        if ordered or filled.nunique() <= MOST_DIFFERENT * len(filled) > 0:
            made.append(ordered or by_frequency(name, cells.tolist()))
    lengths = by_fifths("Length", texts["text"].str.len().astype(str))
    return [*made, lengths] if lengths else made


def as_texts(cells: pd.Series) -> pd.Series:
    """Return the cells of a column as texts, "" for what is missing."""
    return cells.map(lambda cell: "" if plain(cell) is None else str(cell).strip())


def is_column(labels: pd.Series, columns: Iterable[pd.Series]) -> bool:
    """True if one of the columns of a corpus, as texts, has its labels."""
    return any(map(as_texts(labels).equals, columns))


def by_frequency(title: str, labels: Sequence[str]) -> Colouring:
    """Return a colouring with at most as many names as there are colours.

    Of more labels the most frequent have a name, and another name stands for the others. The label "" is none: its
    name is one more, the last.
    """
    counts = Counter(filter(None, labels))
    names = list(counts)
    if len(names) > len(LIGHT):
        names = [name for name, _ in counts.most_common(len(LIGHT) - 1)]
    numbers, others = {name: number for number, name in enumerate(names)}, len(names)
    if len(counts) > len(names):
        names.append(f"{len(counts) - len(names):,} others")
    missing = len(names) if counts.total() < len(labels) else -1
    if missing >= 0:
        names.append(f"no {title.lower()}")
    of = np.array([numbers.get(label, others) if label else missing for label in labels])
    return Colouring(title, names, of, missing)


def by_fifths(title: str, cells: pd.Series) -> Colouring | None:
    """Return a colouring of numbers or dates by fifths of their cells, in which equal ones stay together.

    Up to five numbers are an entry each. None for other columns, for few dates and for six to a dozen numbers.
    """
    texts = cells[cells != ""]
    keys = pd.to_numeric(texts.str.replace(",", "."), errors="coerce").dropna()
    few = 1 < keys.nunique() <= FIFTHS
    if len(keys) < MOSTLY * len(texts):
        days = texts.str.replace(DAY_FIRST, lambda day: f"{day[3]}-{day[2]:0>2}-{day[1]:0>2}", regex=True)
        keys, few = days[days.str.fullmatch(ISO_DATE)].str[:10], False
    if len(keys) < MOSTLY * len(texts) or (keys.nunique() <= len(LIGHT) and not few):
        return None
    order = keys.sort_values(kind="stable")
    ranked = order.to_numpy()
    ends = np.unique(ranked if few else [ranked[-(-step * len(ranked) // FIFTHS) - 1] for step in range(1, FIFTHS + 1)])
    numbers = np.searchsorted(ends, ranked)
    rows = [texts[order.index[numbers == number]] for number in range(len(ends))]
    names = [" to ".join(dict.fromkeys(cell[:10] for cell in (part.iloc[0], part.iloc[-1]))) for part in rows]
    of = pd.Series(len(ends), cells.index)
    of[order.index] = numbers
    missing = len(ends) if len(keys) < len(cells) else -1
    return Colouring(
        title, names + ([f"no {title.lower()}"] if missing >= 0 else []), of.to_numpy(), missing, ordered=True
    )


def by_group(frame: pd.DataFrame) -> Colouring:
    """Return the colouring of a map's table by its groups, whose numbers differ from map to map."""
    names = frame.groupby("group")["name"].first()
    known = [names.get(number, "") for number in range(1, names.index.max() + 1)]
    first = [" ".join(name.split()[:MAP_WORDS]) for name in known]
    short = [words if first.count(words) == 1 else name for name, words in zip(known, first, strict=True)]
    return Colouring("Group", known, NONE, marks=[*looks_of(frame).values()], short=short)


def by_disagreement(most: int, lost: np.ndarray = NONE) -> Colouring:
    """Return the colouring by how many of a text's `most` nearest texts two maps do not share, of their share (N,)."""
    names = [f"{number} of {most} nearest differ" for number in range(most + 1)]
    return Colouring("Disagreement", names, (lost * most).round().astype(int), ordered=True)


def looks_of(frame: pd.DataFrame) -> dict[int, tuple[int, int]]:
    """Return the numbers of the hue and of the shape of each group of a map's table, counted from 1.

    No two groups of a model have one hue while there are others; of those of several models that share one every second
    is hollow, and they have other shapes while there are others.
    """
    models = frame.groupby("group")["model"].agg(set)
    looks: dict[int, tuple[int, int]] = {}
    for group in range(1, int(models.index.max()) + 1):
        beside = models.get(group, set())
        taken = {hue for other, (hue, _) in looks.items() if beside & models.get(other, set())}
        turns = [(group - 1 + step) % len(LIGHT) for step in range(len(LIGHT))]
        hue = next((hue for hue in turns if hue not in taken), turns[0])
        again = sum(known == hue for known, _ in looks.values())
        looks[group] = hue, (hue + again // 2) % len(SHAPES) + again % 2 * len(SHAPES)
    return looks
