"""What sizes, scores, prefixes and prototypes say to the questions of lessons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cse.app.drawing.verdicts import percent
from cse.app.lessons.lesson import Measured, absent, banded, by_model, of_model
from cse.app.lessons.numbers import Score, Size
from cse.app.models.naming import title

if TYPE_CHECKING:
    from cse.analysis.prefix_analysis import PrefixAttention, Prototype

ALIKE = 2.0  # points of STS within which two models are called level


def dimensions(found: Mapping[str, Size]) -> Measured:
    """Say how many numbers the vectors have."""
    sizes = {name: size.dimension for name, size in found.items()}
    return Measured("", (f"Numbers in a vector: {by_model(sizes, lambda size: f'{size:,}')}.",))


@of_model
def times_trained(few: str, found: Mapping[str, Size], many: str, bands: Mapping[str, float]) -> Measured:
    """Say how many times as many numbers the model `many` trained as the model `few`."""
    if many not in found or not found[few].trained:
        return absent(many)
    small, large = found[few].trained, found[many].trained
    line = f"{title(few)} trained {small:,} numbers, {title(many)} {large:,}: {large / small:,.0f} times as many."
    return Measured(banded({many: large / small}, bands), (line,))


@of_model
def score_against(name: str, found: Mapping[str, Score], other: str, called: str = "") -> Measured:
    """Compare the STS scores of two models; `called` is the name of the other in words."""
    if other not in found:
        return absent(name)
    own, lead = found[name], found[name].after - found[other].after
    numbers = [f"STS: {title(name)} {own.after:.1f}, {called or title(other)} {found[other].after:.1f}."]
    if own.before is not None:
        numbers.append(f"Before its training {title(name)} had {own.before:.1f}.")
    return Measured("ahead" if lead > ALIKE else "behind" if lead < -ALIKE else "level", tuple(numbers))


@of_model
def most_attention(name: str, found: Mapping[str, PrefixAttention], bands: Mapping[str, float]) -> Measured:
    """Say how much attention a model's prefix gets in the layer where it gets most."""
    read = found[name].read
    line = (
        f"{title(name)}: {percent(max(read))} in layer {read.index(max(read)) + 1}; evenly spread it would be "
        f"{percent(found[name].even)}."
    )
    return Measured(banded({name: max(read)}, bands), (line,))


@of_model
def moved_within(name: str, moved: Mapping[str, float], bands: Mapping[str, float]) -> Measured:
    """Say how far a model's vector moves, as a share of the way to an unrelated sentence."""
    own = {name: moved[name]}
    return Measured(banded(own, bands), (f"The way to an unrelated sentence: {by_model(own, percent)}.",))


@of_model
def nearest_kind(name: str, found: Mapping[str, Sequence[Prototype]]) -> Measured:
    """Say whether a model's nearest prototype affirms or denies."""
    near = found[name][0]
    line = f"{title(name)}: {near.template}, cosine {near.cosine:.2f}."
    return Measured("affirms" if near.positive else "denies", (line,))


@of_model
def gap_of_kinds(name: str, found: Mapping[str, Sequence[Prototype]], bands: Mapping[str, float]) -> Measured:
    """Say how far the mean cosines of affirming and denying prototypes are apart in a model."""
    affirms, denies = (
        sum(cosines) / len(cosines)
        for cosines in ([each.cosine for each in found[name] if each.positive is side] for side in (True, False))
    )
    line = f"{title(name)}: mean cosine {affirms:.2f} to those that affirm, {denies:.2f} to the others."
    return Measured(banded({name: affirms - denies}, bands), (line,))
