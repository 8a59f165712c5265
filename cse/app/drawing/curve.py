"""A line of values by step, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT = 320, 130
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 10, 20  # of the axes, in the units of the picture
MOST_POINTS = 200

Point = tuple[int, float]


def curve_svg(name: str, points: Sequence[Point], steps: int, level: tuple[str, float] | None = None) -> str:
    """Return an SVG of values by step, 0 to `steps`, with a dashed line at a `level` (its name and value).

    Its names are constants, not texts of a visitor. Of many points a part is drawn, the last one always.
    """
    drawn = thinned(points)
    values = [value for _, value in drawn] + ([level[1]] if level else [])
    low, high = padded(min(values), max(values))
    last = max(steps, drawn[-1][0], 1)

    def place(step: float, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * step / last
        y = TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)
        return f"{x:.1f},{y:.1f}"

    line = " ".join(place(*point) for point in drawn)
    end = place(*drawn[-1]).split(",")
    dashed = level_svg(*level, place(0, level[1]), place(last, level[1])) if level else ""
    spoken = f"{name}: {drawn[-1][1]:.4g} at step {drawn[-1][0]} of {last}"
    return (
        f'<figure class="cse-course"><figcaption>{name} <b>{drawn[-1][1]:.4g}</b></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{spoken}">{axes(low, high, last)}{dashed}'
        f'<polyline points="{line}"/><circle cx="{end[0]}" cy="{end[1]}" r="3"/></svg></figure>'
    )


def thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most `MOST_POINTS` points, the last one among them."""
    every = -(-len(points) // MOST_POINTS)
    return [*points[:-1:every], points[-1]]


def padded(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis that shows values from `low` to `high`; it is below 0 only if a value is."""
    room = 0.05 * (high - low) or max(abs(high), 1.0) * 0.05
    return (low - room if low < 0 else max(0.0, low - room)), high + room


def axes(low: float, high: float, last: int) -> str:
    """Return the axes with the values at their ends."""
    bottom = HEIGHT - BOTTOM
    return (
        f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end">{high:.3g}</text>'
        f'<text x="{LEFT - 4}" y="{bottom}" text-anchor="end">{low:.3g}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 5}">0</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">step {last:,}</text>'
    )


def level_svg(name: str, value: float, first: str, last: str) -> str:
    """Return a dashed horizontal line with its name above it."""
    (x1, y1), (x2, y2) = (point.split(",") for point in (first, last))
    above = max(float(y1) - 4, TOP + 2)
    return (
        f'<line class="cse-level" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
        f'<text x="{x2}" y="{above:.1f}" text-anchor="end">{name} {value:.4g}</text>'
    )
