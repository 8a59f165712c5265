"""What sizes, scores, prefixes and prototypes say to the questions of lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cse.app.drawing.naming import title
from cse.app.drawing.verdicts import percent
from cse.app.lessons.judging import MIXED, absent, banded, by_model
from cse.app.lessons.lesson import Measured
from cse.app.lessons.numbers import Score, Size

if TYPE_CHECKING:
    from cse.analysis.prefix import PrefixAttention
    from cse.analysis.prototypes import Prototype

ALIKE = 2.0  # points of STS within which two models are called level


def dimensions(found: Mapping[str, Size]) -> Measured:
    """Say how many numbers the vectors have."""
    sizes = {name: size.dimension for name, size in found.items()}
    return Measured("", (f"Numbers in a vector: {by_model(sizes, lambda size: f'{size:,}')}.",))


def times_trained(few: str, many: str, bands: Mapping[str, float]) -> Callable[[Mapping[str, Size]], Measured]:
    """Return a judge that says how many times as many numbers the model `many` trained as the model `few`."""

    def judge(found: Mapping[str, Size]) -> Measured:
        if not {few, many} <= found.keys() or not found[few].trained:
            return absent(few if few not in found else many)
        small, large = found[few].trained, found[many].trained
        said = f"{title(few)} trained {small:,} numbers, {title(many)} {large:,}: {large / small:,.0f} times as many."
        return Measured(banded({many: large / small}, bands), (said,))

    return judge


def score_against(name: str, other: str, called: str = "") -> Callable[[Mapping[str, Score]], Measured]:
    """Return a judge that compares the STS scores of two models; `called` is the name of the other in words."""

    def judge(found: Mapping[str, Score]) -> Measured:
        if not {name, other} <= found.keys():
            return absent(name)
        own, lead = found[name], found[name].after - found[other].after
        numbers = [f"STS: {title(name)} {own.after:.1f}, {called or title(other)} {found[other].after:.1f}."]
        if own.before is not None:
            numbers.append(f"Before its training {title(name)} had {own.before:.1f}.")
        return Measured("ahead" if lead > ALIKE else "behind" if lead < -ALIKE else "level", tuple(numbers))

    return judge


def most_attention(bands: Mapping[str, float]) -> Callable[[Mapping[str, PrefixAttention]], Measured]:
    """Return a judge that says how much attention the prefix gets in the layer where it gets most."""

    def judge(found: Mapping[str, PrefixAttention]) -> Measured:
        most = {name: max(each.read) for name, each in found.items()}
        numbers = tuple(
            f"{title(name)}: {percent(most[name])} in layer {each.read.index(most[name]) + 1}; evenly spread it would "
            f"be {percent(each.even)}."
            for name, each in found.items()
        )
        return Measured(banded(most, bands), numbers)

    return judge


def moved_within(bands: Mapping[str, float]) -> Callable[[Mapping[str, float]], Measured]:
    """Return a judge that says how far vectors move, as shares of the way to an unrelated sentence."""

    def judge(moved: Mapping[str, float]) -> Measured:
        return Measured(banded(moved, bands), (f"The way to an unrelated sentence: {by_model(moved, percent)}.",))

    return judge


def nearest_kind(found: Mapping[str, Sequence[Prototype]]) -> Measured:
    """Say whether the nearest prototype affirms or denies."""
    kinds = {name: "affirms" if each[0].positive else "denies" for name, each in found.items()}
    numbers = tuple(f"{title(name)}: {each[0].template}, cosine {each[0].cosine:.2f}." for name, each in found.items())
    return Measured(kinds[min(kinds)] if len(set(kinds.values())) == 1 else MIXED, numbers)


def gap_of_kinds(bands: Mapping[str, float]) -> Callable[[Mapping[str, Sequence[Prototype]]], Measured]:
    """Return a judge that says how far the mean cosines of affirming and denying prototypes are apart."""

    def judge(found: Mapping[str, Sequence[Prototype]]) -> Measured:
        gaps, numbers = {}, []
        for name, each in found.items():
            affirms, denies = (
                sum(one.cosine for one in kind) / len(kind)
                for kind in ([one for one in each if one.positive is side] for side in (True, False))
            )
            gaps[name] = affirms - denies
            numbers.append(
                f"{title(name)}: mean cosine {affirms:.2f} to those that affirm, {denies:.2f} to the others."
            )
        return Measured(banded(gaps, bands), tuple(numbers))

    return judge
