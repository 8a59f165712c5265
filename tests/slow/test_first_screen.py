"""The first screen in a browser: results above the fold, at 200 % zoom nothing is lost, and the page is light."""

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, TABS, look, open_tab, watched
from playwright.sync_api import expect

from cse.app.training.rules import OWN
from cse.app.training.trainings import Trainings
from cse.models.names import BUNDLED_NAMES

pytestmark = NEEDS_BROWSER
FIRST = {  # where the first result of each tab, or the line that stands for it, begins
    "Similarity": "#similarity table",
    "Search": "#hits table",
    "Tokens": "#tokens .cse-card",
    "Clusters": "#maps .cse-frame canvas",
    "Near-duplicates": "#duplicate-numbers .cse-count",
    "Probe": "#changes .cse-says",
    "Choose for my data": "#choose-status p",
    "Results": "#results .cse-chart",
    "Train": "#training p",
}
DESKTOP = (1280, 720)
SCREENS = {DESKTOP: 420, (390, 844): 480}  # pixels above which a result begins
ZOOMED = (640, 360)  # CSS pixels of the desktop at 200 %
# The visible texts of a tab without those of its charts, which a narrow screen draws with other ticks.
TEXTS = """() => {
  const shown = [...document.querySelectorAll('[role=tabpanel]')].find(each => each.checkVisibility());
  return [...shown.querySelectorAll('h2, h3, p, label, button, summary, th')].filter(each => each.checkVisibility())
    .map(each => each.innerText.replace(/\\s+/g, ' ').trim()).filter(Boolean);
}"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with serving(BUNDLED_NAMES, trainings=Trainings(OWN, tmp_path_factory.mktemp("trainings"))) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser, url):
    """One page for the tests that weigh nothing."""
    with watched(browser, url) as opened:
        yield opened


def test_the_first_tab_stop_skips_to_the_tabs(page):
    link = page.get_by_role("link", name="Skip to the tabs")
    before = page.locator("h1").bounding_box()
    page.keyboard.press("Tab")  # the first key of this page
    expect(link).to_be_focused()
    assert link.bounding_box()["width"] > 50  # it is seen now
    assert page.locator("h1").bounding_box() == before
    address = page.url
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Similarity")).to_be_focused()
    assert page.url == address


def test_the_first_result_of_every_tab_is_above_the_fold_and_all_is_there_at_200_percent(page):
    assert FIRST.keys() == set(TABS)
    texts = {}
    for size in (*SCREENS, ZOOMED):
        look(page, *size)
        for tab, result in FIRST.items():
            open_tab(page, tab)
            found = page.locator(result).first
            found.wait_for()
            if size in SCREENS:
                assert found.bounding_box()["y"] < SCREENS[size], (tab, size)
            texts[tab, size] = page.evaluate(TEXTS)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], (tab, size)
    assert all(texts[tab, DESKTOP] == texts[tab, ZOOMED] for tab in TABS), texts
