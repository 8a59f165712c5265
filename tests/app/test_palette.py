"""Everybody can tell the colours apart: twelve of topics in each scheme, and four of models, by any kind of vision."""

from itertools import combinations

import pytest
from colour_vision import VISIONS, contrast, difference, lab

from cse.app.html import DARK, LIGHT, MODELS, OWN, UNTRAINED, colour_of
from cse.app.results.adaptation import COLOURS
from cse.methods.catalogue import UNTRAINED as READINGS
from cse.models.names import BUNDLED_NAMES

LEAST, MOST_ALIKE, LEAST_ALIKE = 12.0, 15.0, 9.0
GROUNDS = ("#ffffff", "#f8fafc", "#1e293b", "#0f172a")  # of pages and cards, light and dark


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
    assert UNTRAINED.keys() <= {f"untrained ({name})" for name in READINGS}
    assert colour_of("clsx") == ""  # a visitor's model
    for colour in (*MODELS.values(), *UNTRAINED.values(), *OWN, *COLOURS.values()):
        assert contrast(rgb(colour), rgb(ground)) >= 3, colour


def test_the_dials_axes_have_colours_of_no_model():
    seen, models = ([lab(colour) for colour in colours] for colours in (COLOURS.values(), (*MODELS.values(), *OWN)))
    assert min(difference(one, other) for one in seen for other in models) >= MOST_ALIKE
    for vision in VISIONS:
        assert difference(*(lab(colour, vision) for colour in COLOURS.values())) >= MOST_ALIKE


def rgb(colour):
    return tuple(bytes.fromhex(colour[1:]))
