"""Everybody can tell the colours apart: twelve of topics in each scheme, and four of models, by any kind of vision."""

from itertools import combinations

import numpy as np
import pytest
from colour_vision import VISIONS, difference, lab

from cse.app.drawing.palette import DARK, LIGHT, MODELS, OWN
from cse.app.drawing.ramps import contrast
from cse.models.names import BUNDLED_NAMES

LEAST, MOST_ALIKE, LEAST_ALIKE = 12.0, 15.0, 9.0
GROUNDS = ("#ffffff", "#f8fafc", "#1e293b", "#0f172a")  # of pages and cards, light and dark
SHARMA = [  # Sharma, Wu and Dalal 2005, Table 1
    ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
    ((50, 3.1571, -77.2803), (50, 0, -82.7485), 2.8615),
    ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0),
    ((50, 0, 0), (50, -1, 2), 2.3669),
    ((50, 2.49, -0.001), (50, -2.49, 0.0009), 7.1792),
    ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
    ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
    ((50, 2.5, 0), (73, 25, -18), 27.1492),
    ((50, 2.5, 0), (61, -5, 29), 22.8977),
    ((50, 2.5, 0), (56, -27, -3), 31.9030),
    ((50, 2.5, 0), (58, 24, 15), 19.4535),
    ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ((63.0109, -31.0961, -5.8663), (62.8187, -29.7946, -4.0864), 1.2630),
    ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
    ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
    ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
]


@pytest.mark.parametrize(("first", "second", "expected"), SHARMA)
def test_the_difference_of_colours_is_the_published_one(first, second, expected):
    assert difference(first, second) == pytest.approx(expected, abs=5e-5)
    assert difference(second, first) == pytest.approx(expected, abs=5e-5)


def test_who_lacks_a_cone_sees_greys_as_they_are_and_confuses_what_is_known_to_be_confused():
    for vision in VISIONS:
        np.testing.assert_allclose(lab("#808080", vision), lab("#808080"), atol=0.05)
    red, green = "#b00000", "#556b00"
    assert difference(lab(red), lab(green)) > 40
    assert difference(lab(red, "deutan"), lab(green, "deutan")) < 15


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("vision", VISIONS)
def test_each_two_of_twelve_colours_differ_by_twelve(palette, vision):
    assert len(set(palette)) == 12
    seen = [lab(colour, vision) for colour in palette]
    closest = min(combinations(range(12), 2), key=lambda pair: difference(seen[pair[0]], seen[pair[1]]))
    assert difference(*(seen[place] for place in closest)) >= LEAST, [palette[place] for place in closest]


@pytest.mark.parametrize("vision", VISIONS)
def test_each_two_colours_of_models_differ_by_fifteen(vision):
    seen = [lab(colour, vision) for colour in MODELS.values()]
    assert min(difference(one, other) for one, other in combinations(seen, 2)) >= MOST_ALIKE


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_of_ones_own_models_differ_by_nine_from_each_other_and_from_those_of_the_bundled_ones(vision):
    seen = [lab(colour, vision) for colour in (*MODELS.values(), *OWN)]
    assert min(difference(one, other) for one, other in combinations(seen, 2)) >= LEAST_ALIKE


@pytest.mark.parametrize("ground", GROUNDS)
def test_colours_of_models_stand_out_from_the_backgrounds_of_both_schemes(ground):
    assert MODELS.keys() == set(BUNDLED_NAMES)
    for colour in (*MODELS.values(), *OWN):
        assert contrast(rgb(colour), rgb(ground)) >= 3, colour


def rgb(colour):
    return tuple(bytes.fromhex(colour[1:]))
