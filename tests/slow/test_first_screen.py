"""The first screen in a browser: results above the fold, at 200 % zoom nothing is lost, and the page is light."""

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, TABS, open_tab, watched
from playwright.sync_api import expect

from cse.app.training.rules import OWN
from cse.app.training.trainings import Trainings
from cse.models.names import BUNDLED_NAMES
from tests.bench.page import visit

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
SCREENS = {(1280, 720): 420, (390, 844): 480}  # pixels above which a result begins
HEAVIEST = 400_000  # bytes of the page beside Gradio's own
ZOOMED = (640, 360)  # CSS pixels of 1280 x 720 at 200 %
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


@pytest.mark.parametrize("size", SCREENS, ids=str)
def test_the_first_result_of_every_tab_is_above_the_fold(browser, url, size):
    assert FIRST.keys() == set(TABS)
    with watched(browser, url, *size) as page:
        tops = {}
        for tab, result in FIRST.items():
            open_tab(page, tab)
            found = page.locator(result).first
            found.wait_for()
            tops[tab] = round(found.bounding_box()["y"])
        assert {tab: top for tab, top in tops.items() if top >= SCREENS[size]} == {}


def test_at_200_percent_everything_is_there_without_scrolling_sideways(browser, url):
    shown = []
    for size in ((1280, 720), ZOOMED):
        with watched(browser, url, *size) as page:
            texts = {}
            for tab in TABS:
                open_tab(page, tab)
                page.locator(FIRST[tab]).first.wait_for()
                texts[tab] = page.evaluate(TEXTS)
                assert page.evaluate("document.documentElement.scrollWidth") <= size[0], tab
            shown.append(texts)
    assert shown[0] == shown[1]


def test_the_first_tab_stop_skips_to_the_tabs(browser, url):
    with watched(browser, url) as page:
        link = page.get_by_role("link", name="Skip to the tabs")
        before = page.locator("h1").bounding_box()
        page.keyboard.press("Tab")
        expect(link).to_be_focused()
        assert link.bounding_box()["width"] > 50  # it is seen now
        assert page.locator("h1").bounding_box() == before
        address = page.url
        page.keyboard.press("Enter")
        expect(page.get_by_role("tab", name="Similarity")).to_be_focused()
        assert page.url == address


def test_cards_that_follow_the_pointer_have_an_edge_in_forced_colours(browser, url):
    with watched(browser, url, forced_colors="active") as page:
        open_tab(page, "Clusters")
        canvas = page.locator("#maps .cse-frame canvas").first
        canvas.wait_for()
        card, box = page.locator("#maps .cse-tip"), canvas.bounding_box()
        for across in range(20, int(box["width"]), 12):
            page.mouse.move(box["x"] + across, box["y"] + box["height"] / 2)
            if card.is_visible():
                break
        assert card.evaluate("card => getComputedStyle(card).borderTopStyle") == "solid"


def test_the_page_is_light_beside_what_gradio_sends(browser, url):
    found = visit(browser, url)
    assert 50_000 < found.page < HEAVIEST
    assert found.gradio > 100_000
