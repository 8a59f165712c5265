"""Long sentences in lists, in a real browser without a server: three lines until they are opened; and map filters."""

from contextlib import contextmanager

import numpy as np
import pytest
from app_pages import NEEDS_BROWSER
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT
from playwright.sync_api import expect

from cse.app.drawing.canvas import SCRIPTS, canvas_value
from cse.app.drawing.components import script
from cse.app.drawing.palette import MODELS
from cse.app.models.naming import TITLES
from cse.app.state.groups import Groups
from cse.app.state.model_map import ModelMap

pytestmark = NEEDS_BROWSER
LONG = "<b>word</b> " * 600
SHORT = "The cat sleeps."
WIDTHS = pytest.mark.parametrize("width", [1400, 390])
STYLES = "".join((ROOT / "cse" / "app" / "static" / name).read_text() for name in ("style.css", "map/map.css"))
PAGE = f"""<!doctype html><html lang="en"><head><title>Lists</title><style>{STYLES}</style></head>
<body class="gradio-container" style="font: 16px/1.5 sans-serif; margin: 0"><main><h1>Lists</h1><h2>A list</h2>
CONTENT</main></body></html>"""
COMPONENT = """([value, scripts, place, ramps, titles, colours]) => {
  const element = document.querySelector('main'), props = {value, ramps, titles, colours};
  element.appendChild(document.createElement('div')).className = place;
  const sent = (event, data) => { window.sent = data; };
  new Function('element', 'props', 'watch', 'trigger', scripts)(element, props, () => {}, sent);
}"""


@contextmanager
def shown(browser, width, content=""):
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.set_content(PAGE.replace("CONTENT", content))
    yield page
    if width < 400:  # the rules are the same for every width
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}).response
        assert [rule["id"] for rule in found["violations"]] == []
    page.close()


def mount(page, value, place, *scripts, ramps=None):
    page.evaluate(COMPONENT, [value, script(*scripts), place, ramps, TITLES, MODELS])


def folded(page, place):
    """The long sentence of a place: three lines high; a key opens and closes it."""
    long = page.locator(f"{place} .cse-long summary span").first
    line = long.evaluate("span => parseFloat(getComputedStyle(span).lineHeight)")
    assert long.inner_text() == LONG.strip()
    assert long.bounding_box()["height"] <= 3 * line + 2
    summary = page.locator(f"{place} .cse-long summary").first
    summary.press("Enter")
    assert long.bounding_box()["height"] > 20 * line
    summary.click(position={"x": 5, "y": 5})
    assert long.bounding_box()["height"] <= 3 * line + 2


def drawn(seed, count):
    draw = np.random.default_rng(seed)
    near = np.array([[other for other in range(count) if other != place][:5] for place in range(count)])
    groups = Groups(np.zeros(count, np.uint8), [["dog"]], [None])
    return ModelMap(draw.random((count, 2), np.float32), near, draw.random(count), groups=groups)


def circle_all(page):
    page.get_by_role("button", name="Lasso").click()
    page.evaluate("document.querySelector('.cse-frame canvas').scrollIntoView()")
    box = page.locator(".cse-frame canvas").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    page.mouse.down()
    for across, below in ((0.999, 0.001), (0.999, 0.999), (0.001, 0.999)):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + below * box["height"])
    page.mouse.up()


def options(count, pin):
    return {"joined": False, "rows": [*range(count)], "note": f"{count} texts", "pin": pin, "request": 1}


ANSWER = """size => {
  const spread = {simcse: [[0, size]]}, labels = [['pets', size]];
  const selection = {size, words: ['dog'], typical: [0], odd: [1], labels, spread};
  window.dispatchEvent(new CustomEvent('cse-selection', {detail: {answers: window.sent.number, selection}}));
}"""


@WIDTHS
def test_the_maps_details_show_three_lines_and_a_long_sentence_is_pinned_from_there(browser, width):
    texts = [LONG, SHORT, *(f"A dog {number}." for number in range(4))]
    value = canvas_value(texts, ["pets"] * 6, {"simcse": drawn(0, 6)}, **options(6, 1))
    with shown(browser, width) as page:
        mount(page, value, "cse-maps", *SCRIPTS)
        folded(page, ".cse-texts")
        page.locator(".cse-texts summary").press("Enter")
        page.locator(".cse-texts").get_by_role("button", name="Pin it").click()
        folded(page, ".cse-quote")
        page.get_by_role("button", name="Unpin").click()
        circle_all(page)
        page.wait_for_function("window.sent && window.sent.points")
        assert page.evaluate("window.sent.points") == [*range(6)]
        page.evaluate(ANSWER, 6)
        expect(page.locator(".cse-marking")).to_have_text("dog")
        folded(page, ".cse-texts")


def test_filters_add_up_and_are_undone_one_by_one(browser):
    texts = [f"{animal} {number}" for animal in ("dog", "cat") for number in range(4)]
    value = canvas_value(texts, ["pets", "food"] * 4, {"simcse": drawn(0, 8)}, **options(8, -1))
    with shown(browser, 1400) as page:
        mount(page, value, "cse-maps", *SCRIPTS)
        said, words = page.locator(".cse-tools [role=status]"), page.get_by_role("searchbox")
        page.locator("select").select_option("label")
        words.fill("dog")
        expect(said).to_have_text("4 of 8: “dog”")
        words.press("Enter")
        page.get_by_role("button", name="pets").click()
        expect(said).to_have_text("2 of 8: “dog” + pets")
        words.fill("2")
        expect(said).to_have_text("1 of 8: “dog” + pets + “2”")
        circle_all(page)
        expect(said).to_have_text("1 of 8: “dog” + pets + “2” + lasso of 8")
        for left in ("1 of 8: “dog” + pets + “2”", "2 of 8: “dog” + pets", "4 of 8: “dog”", ""):
            page.get_by_role("button", name="Undo").click()
            expect(said).to_have_text(left)
        expect(page.get_by_role("button", name="Undo")).to_be_disabled()
        words.fill("nothing has this")
        expect(page.locator(".cse-details-part")).to_contain_text("No text passes all filters")
