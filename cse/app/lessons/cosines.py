"""What cosines, percentiles and movements of vectors say to the questions of lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cse.app.drawing.distribution import Placed, in_words
from cse.app.drawing.verdicts import UNHEARD, agreement, mean_of, percent, reaction, scales
from cse.app.lessons.judging import NO, YES, Form, absent, banded, by_model, count, two_digits
from cse.app.lessons.lesson import Measured
from cse.app.models.naming import title

if TYPE_CHECKING:
    import numpy as np

Moves = Mapping[str, tuple[float, ...]]


def percentiles_within(bands: Mapping[str, float]) -> Callable[[Mapping[str, Placed]], Measured]:
    """Return a judge that says in which band the percentiles of a pair lie."""

    def judge(found: Mapping[str, Placed]) -> Measured:
        places = {name: each.percentile for name, each in found.items()}
        return Measured(banded(places, bands), (f"Percentile among random pairs: {by_model(places, in_words)}.",))

    return judge


def apart(limit: float) -> Callable[[Mapping[str, float]], Measured]:
    """Return a judge that says whether the models' cosines differ by more than `limit`."""

    def judge(values: Mapping[str, float]) -> Measured:
        width = max(values.values()) - min(values.values())
        numbers = (f"Cosine: {by_model(values)}.", f"Between the lowest and the highest lie {width:.2f}.")
        return Measured(YES if width > limit else NO, numbers)

    return judge


def cosines_apart(limit: float) -> Callable[[Mapping[str, Placed]], Measured]:
    """Return a judge that says whether the cosines of a pair differ by more than `limit` between the models."""

    def judge(found: Mapping[str, Placed]) -> Measured:
        return apart(limit)({name: each.cosine for name, each in found.items()})

    return judge


def highest_mean(found: Mapping[str, Placed]) -> Measured:
    """Say which model has the highest mean cosine of random pairs."""
    means = {name: mean_of(each.histogram) for name, each in found.items()}
    top = max(means, key=means.__getitem__)
    said = scales({name: each.histogram for name, each in found.items()})
    return Measured(top, tuple(filter(None, (f"Mean cosine of random pairs: {by_model(means)}.", said))), title(top))


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


def closer(first: tuple[int, int], second: tuple[int, int], names: tuple[str, str]) -> Callable[..., Measured]:
    """Return a judge that says in how many models the `first` pair of a list is closer than the `second`.

    A pair is two places in the list; `names` are what the pairs are called.
    """

    def judge(found: Mapping[str, np.ndarray]) -> Measured:
        one, other = ({name: float(cosines[pair]) for name, cosines in found.items()} for pair in (first, second))
        return more(names)({name: (one[name], other[name]) for name in found})

    return judge


def more(names: tuple[str, str], form: Form = two_digits) -> Callable[[Moves], Measured]:
    """Return a judge that says in how many models the first of two values is larger; `names` are theirs."""

    def judge(found: Moves) -> Measured:
        sides = ({name: pair[place] for name, pair in found.items()} for place in (0, 1))
        numbers = tuple(f"{name}: {by_model(values, form)}." for name, values in zip(names, sides, strict=True))
        return Measured(count([one > other for one, other in found.values()]), numbers)

    return judge


def same_best(found: Mapping[str, list[int]]) -> Measured:
    """Say whether the models name the same best sentence."""
    shown = {name: rows for name, rows in found.items() if rows}
    best = {rows[0] for rows in shown.values()}
    return Measured(YES if len(best) == 1 else NO, (agreement(shown),) if len(shown) > 1 else ())


def reacting(what: str) -> Callable[[Moves], Measured]:
    """Return a judge that says how many models react to a change; `what` is its name."""

    def judge(found: Moves) -> Measured:
        moved = {name: share for name, (share,) in found.items()}
        numbers = (reaction(moved, what), f"The way to an unrelated sentence: {by_model(moved, percent)}.")
        return Measured(count([share >= UNHEARD for share in moved.values()]), numbers)

    return judge


def reaction_of(name: str) -> Callable[[Moves], Measured]:
    """Return a judge that says whether one model reacts to a change."""

    def judge(found: Moves) -> Measured:
        if name not in found:
            return absent(name)
        return Measured(
            YES if found[name][0] >= UNHEARD else NO,
            (f"{title(name)} moves {percent(found[name][0])} of the way to an unrelated sentence.",),
        )

    return judge


def rank_of(name: str) -> Callable[[Moves], Measured]:
    """Return a judge that says whether one model reacts most, least or neither."""

    def judge(found: Moves) -> Measured:
        if name not in found:
            return absent(name)
        moved = {model: share for model, (share,) in found.items()}
        place = sum(share > moved[name] for share in moved.values())
        answer = "most" if place == 0 else "least" if place == len(moved) - 1 else "between"
        return Measured(answer, (f"The way to an unrelated sentence: {by_model(moved, percent)}.",))

    return judge
