"""What cosines, percentiles and movements of vectors say to the questions of lessons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cse.app.drawing.distribution import Placed, in_words
from cse.app.drawing.verdicts import UNHEARD, agreement, mean_of, percent, reaction, scales
from cse.app.lessons.lesson import NO, YES, Form, Measured, banded, by_model, count, of_model, two_digits
from cse.app.models.naming import title

if TYPE_CHECKING:
    import numpy as np

Moves = Mapping[str, tuple[float, ...]]


def percentiles_within(found: Mapping[str, Placed], bands: Mapping[str, float]) -> Measured:
    """Say in which band the percentiles of a pair lie."""
    places = {name: each.percentile for name, each in found.items()}
    return Measured(banded(places, bands), (f"Percentile among random pairs: {by_model(places, in_words)}.",))


def apart(values: Mapping[str, float], limit: float) -> Measured:
    """Say whether the models' cosines differ by more than `limit`."""
    width = max(values.values()) - min(values.values())
    numbers = (f"Cosine: {by_model(values)}.", f"Between the lowest and the highest lie {width:.2f}.")
    return Measured(YES if width > limit else NO, numbers)


def cosines_apart(found: Mapping[str, Placed], limit: float) -> Measured:
    """Say whether the cosines of a pair differ by more than `limit` between the models."""
    return apart({name: each.cosine for name, each in found.items()}, limit)


def highest_mean(found: Mapping[str, Placed]) -> Measured:
    """Say which model has the highest mean cosine of random pairs."""
    means = {name: mean_of(each.histogram) for name, each in found.items()}
    top = max(means, key=means.__getitem__)
    line = scales({name: each.histogram for name, each in found.items()})
    return Measured(top, tuple(filter(None, (f"Mean cosine of random pairs: {by_model(means)}.", line))), title(top))


def same_order(found: Mapping[str, Placed]) -> Measured:
    """Say whether the model with the highest cosine of a pair also has the highest percentile."""
    cosine, place = (max(found, key=lambda name: getattr(found[name], what)) for what in ("cosine", "percentile"))
    numbers = (
        f"Highest cosine: {title(cosine)}, {found[cosine].cosine:.2f}, at percentile "
        f"{in_words(found[cosine].percentile)}.",
        f"Highest percentile: {title(place)}, {in_words(found[place].percentile)}, at cosine "
        f"{found[place].cosine:.2f}.",
    )
    return Measured(YES if cosine == place else NO, numbers)


def lowest_percentile(found: Mapping[str, Placed]) -> Measured:
    """Say in which model a pair has the lowest percentile."""
    places = {name: each.percentile for name, each in found.items()}
    low = min(places, key=places.__getitem__)
    values = {name: each.cosine for name, each in found.items()}
    numbers = (f"Cosine: {by_model(values)}.", f"Percentile: {by_model(places, in_words)}.")
    return Measured(low, numbers, title(low))


def closer(
    found: Mapping[str, np.ndarray], first: tuple[int, int], second: tuple[int, int], names: tuple[str, str]
) -> Measured:
    """Say in how many models the `first` pair of a list is closer than the `second`.

    A pair is two places in the list; `names` are what the pairs are called.
    """
    return more({name: (float(cosines[first]), float(cosines[second])) for name, cosines in found.items()}, names)


def more(found: Moves, names: tuple[str, str], form: Form = two_digits) -> Measured:
    """Say in how many models the first of two values is larger; `names` are theirs."""
    sides = ({name: pair[place] for name, pair in found.items()} for place in (0, 1))
    numbers = tuple(f"{name}: {by_model(values, form)}." for name, values in zip(names, sides, strict=True))
    return Measured(count([one > other for one, other in found.values()]), numbers)


def same_best(found: Mapping[str, list[int]]) -> Measured:
    """Say whether the models name the same best sentence."""
    shown = {name: rows for name, rows in found.items() if rows}
    best = {rows[0] for rows in shown.values()}
    return Measured(YES if len(best) == 1 else NO, (agreement(shown),) if len(shown) > 1 else ())


def reacting(found: Moves, what: str) -> Measured:
    """Say how many models react to a change; `what` is its name."""
    moved = {name: share for name, (share,) in found.items()}
    numbers = (reaction(moved, what), f"The way to an unrelated sentence: {by_model(moved, percent)}.")
    return Measured(count([share >= UNHEARD for share in moved.values()]), numbers)


@of_model
def reaction_of(name: str, found: Moves) -> Measured:
    """Say whether one model reacts to a change."""
    (share,) = found[name]
    line = f"{title(name)} moves {percent(share)} of the way to an unrelated sentence."
    return Measured(YES if share >= UNHEARD else NO, (line,))


@of_model
def rank_of(name: str, found: Moves) -> Measured:
    """Say whether one model reacts most, least or neither."""
    moved = {model: share for model, (share,) in found.items()}
    place = sum(share > moved[name] for share in moved.values())
    answer = "most" if place == 0 else "least" if place == len(moved) - 1 else "between"
    return Measured(answer, (f"The way to an unrelated sentence: {by_model(moved, percent)}.",))
