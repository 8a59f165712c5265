"""How different two colours look, also to who lacks a kind of cone: CIEDE2000, and Machado et al. 2009, severity 1."""

import numpy as np

VISIONS = {  # of linear sRGB
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1, 1.08883])  # D65


def lab(colour: str, vision: str = "normal") -> np.ndarray:
    """CIELAB of "#rrggbb" as somebody with this vision sees it."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    x, y, z = XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / WHITE
    f = [np.cbrt(t) if t > (6 / 29) ** 3 else t / (3 * (6 / 29) ** 2) + 4 / 29 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(first: np.ndarray, second: np.ndarray) -> float:
    """CIEDE2000 of two CIELAB colours, by Sharma, Wu and Dalal 2005, equations 2 to 22."""
    (light, a, b), (other_light, other_a, other_b) = first, second
    mean = (np.hypot(a, b) + np.hypot(other_a, other_b)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean**7 / (mean**7 + 25**7))
    chromas = [np.hypot(stretch * red, blue) for red, blue in ((a, b), (other_a, other_b))]
    hues = [np.degrees(np.arctan2(blue, stretch * red)) % 360 for red, blue in ((a, b), (other_a, other_b))]
    turn, hue = (hues[1] - hues[0] + 180) % 360 - 180, sum(hues) / 2
    if abs(hues[0] - hues[1]) > 180:
        hue += 180 if hue < 180 else -180
    if not chromas[0] * chromas[1]:
        turn, hue = 0.0, sum(hues)
    lightness, chroma = (light + other_light) / 2, sum(chromas) / 2
    waves = ((-0.17, -30, 1), (0.24, 0, 2), (0.32, 6, 3), (-0.20, -63, 4))
    t = 1 + sum(size * np.cos(np.radians(times * hue + shift)) for size, shift, times in waves)
    s_light = 1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2)
    rotation = np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    parts = (
        (other_light - light) / s_light,
        (chromas[1] - chromas[0]) / (1 + 0.045 * chroma),
        2 * np.sqrt(chromas[0] * chromas[1]) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * t),
    )
    crossed = -2 * np.sqrt(chroma**7 / (chroma**7 + 25**7)) * rotation * parts[1] * parts[2]
    return float(np.sqrt(sum(part**2 for part in parts) + crossed))


def contrast(first, second) -> float:
    """WCAG 2's contrast ratio of two colours, of three numbers from 0 to 255 each: 1 to 21."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour) -> float:
    """WCAG 2's relative luminance of a colour, 0 to 1."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
