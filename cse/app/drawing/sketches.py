"""Small line drawings as SVG, one per term of the glossary; `static/models.css` has their colours."""

from __future__ import annotations

from collections.abc import Iterable
from math import atan2, cos, pi, sin

WIDTH, HEIGHT = 240, 90
FULL, KEY, MARK, SOFT, DASHED = "full", "key", "mark", "soft", "dashed"  # filled, filled in blue, a blue line, pale
HEAD = 6.0  # length of an arrow's head
CENTRE = WIDTH / 2


def sketch(*shapes: str) -> str:
    """Return a drawing of shapes; screen readers skip it, the sentence below says the same."""
    inside = "".join(shapes)
    return f'<svg class="cse-sketch" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{inside}</svg>'


def dot(x: float, y: float, kind: str = FULL, radius: float = 4.5) -> str:
    """Return a circle; without a kind it is an outline."""
    return f'<circle{_of(kind)} cx="{x:.3g}" cy="{y:.3g}" r="{radius:g}"/>'


def dots(places: Iterable[tuple[float, float]], kind: str = FULL) -> str:
    """Return a circle at each place."""
    return "".join(dot(x, y, kind) for x, y in places)


def box(x: float, y: float, width: float, height: float, kind: str = "") -> str:
    """Return a rectangle; without a kind it is an outline."""
    return f'<rect{_of(kind)} x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2"/>'


def words(x: float, y: float, text: str) -> str:
    """Return a text around x, with its base line at y."""
    return f'<text x="{x:g}" y="{y:g}">{text}</text>'


def line(x: float, y: float, to_x: float, to_y: float, kind: str = "") -> str:
    """Return a straight line."""
    return path(f"M{x:.3g} {y:.3g}L{to_x:.3g} {to_y:.3g}", kind)


def path(drawn: str, kind: str = "") -> str:
    """Return a path from SVG commands."""
    return f'<path{_of(kind)} d="{drawn}"/>'


def arrow(x: float, y: float, to_x: float, to_y: float, kind: str = "") -> str:
    """Return a line with a head at its end."""
    back = atan2(y - to_y, x - to_x)
    sides = [(to_x + HEAD * cos(back + turn), to_y + HEAD * sin(back + turn)) for turn in (0.5, -0.5)]
    (left, up), (right, down) = sides
    head = f"M{left:.3g} {up:.3g}L{to_x:.3g} {to_y:.3g}L{right:.3g} {down:.3g}"
    return path(f"M{x:g} {y:g}L{to_x:.3g} {to_y:.3g}{head}", kind)


def fan(x: float, y: float, length: float, degrees: Iterable[float], kind: str = "") -> str:
    """Return an arrow from a point in each direction, in degrees from the right upwards."""
    turns = [degree * pi / 180 for degree in degrees]
    return "".join(arrow(x, y, x + length * cos(turn), y - length * sin(turn), kind) for turn in turns)


def around(x: float, y: float, radius: float, degrees: Iterable[float]) -> list[tuple[float, float]]:
    """Return the places on a circle in these directions."""
    return [(x + radius * cos(degree * pi / 180), y - radius * sin(degree * pi / 180)) for degree in degrees]


def bars(x: float, base: float, heights: Iterable[float], key: int) -> str:
    """Return upright bars side by side; that with the number `key` is blue."""
    return "".join(
        box(x + 18 * place, base - height, 13, height, KEY if place == key else FULL)
        for place, height in enumerate(heights)
    )


def joined(places: Iterable[tuple[float, float]], centre: tuple[float, float]) -> str:
    """Return a line from the centre to each place."""
    return "".join(line(*centre, *place, DASHED) for place in places)


def _of(kind: str) -> str:
    return f' class="cse-{kind}"' if kind else ""
