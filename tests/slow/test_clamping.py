"""Long sentences in lists, in a real browser without a server: three lines until they are opened; and map filters."""

from contextlib import contextmanager

import pytest
from app_pages import NEEDS_BROWSER
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT

from cse.app.drawing.components import script
from cse.app.drawing.palette import MODELS
from cse.app.models.naming import TITLES

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
