"""Colour ramps from -1 to 1 for both colour schemes, with readable text colours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

STOPS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
BLACK, WHITE = (0, 0, 0), (255, 255, 255)  # one of the two has a contrast of 4.58 or more with any colour
STEPS = 40  # of a ramp given to scripts
MINUS = "\N{MINUS SIGN}"

Colour = tuple[int, ...]  # red, green, blue, each 0..255


class Ramp(NamedTuple):
    """Colours (5, 3) at `STOPS` in the light and in the dark scheme; 0 is the page's background."""

    light: np.ndarray
    dark: np.ndarray


# Two hues each that are distinct for every kind of colour vision: orange and blue, purple and green.
COSINES = Ramp(
    np.array([[153, 52, 4], [246, 163, 83], [247, 248, 250], [107, 174, 214], [8, 48, 107]], np.float64),
    np.array([[255, 196, 128], [178, 98, 42], [30, 41, 59], [52, 116, 178], [170, 212, 255]], np.float64),
)
DIFFERENCES = Ramp(
    np.array([[88, 24, 120], [186, 148, 208], [247, 248, 250], [128, 194, 138], [0, 76, 38]], np.float64),
    np.array([[228, 190, 255], [126, 76, 160], [30, 41, 59], [44, 124, 80], [172, 240, 190]], np.float64),
)


def tint(value: float, ramp: Ramp) -> str:
    """Return a value's background and text colours as CSS variables: --l and --m for light, --d and --e for dark."""
    colours = (*cell_colours(value, ramp.light), *cell_colours(value, ramp.dark))
    return ";".join(f"--{name}:#{bytes(colour).hex()}" for name, colour in zip("lmde", colours, strict=True))


def tints(ramp: Ramp) -> list[str]:
    """Return a ramp from -1 to 1 in `STEPS` equal steps, for JavaScript."""
    return [tint(float(value), ramp) for value in np.linspace(-1, 1, STEPS + 1)]


def cell_colours(value: float, colours: np.ndarray) -> tuple[Colour, Colour]:
    """Return the background of a value on a ramp's (5, 3) colours, and a readable text colour."""
    background = tuple(round(float(np.interp(value, STOPS, channel))) for channel in colours.T)
    return background, max((BLACK, WHITE), key=lambda text: contrast(text, background))


def signed(value: float) -> str:
    """Format a difference of cosines with its sign and two decimals: +.05, or 0."""
    shown = f"{abs(value):.2f}".removeprefix("0")
    return "0" if shown == ".00" else f"{'+' if value > 0 else MINUS}{shown}"


def contrast(first: Colour, second: Colour) -> float:
    """Return WCAG 2's contrast ratio of two colours, 1 to 21."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Colour) -> float:
    """Return WCAG 2's relative luminance of a colour, 0 to 1."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
