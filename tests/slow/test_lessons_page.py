"""Lessons in a real browser: a walk by keys, links that survive reload and Back, the presenter's view, and axe-core."""

import re

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, open_tab, watched
from barriers import SKIPPED_LEVELS, settled, violations
from gradio_client import Client
from playwright.sync_api import expect

from cse.app.lessons.tours import LESSONS
from cse.models.names import BUNDLED_NAMES

pytestmark = NEEDS_BROWSER
SIZES = pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["desktop", "phone"])
NEGATION = next(lesson for lesson in LESSONS if lesson.name == "negation")
TOP = "document.querySelector('#similarity tbody').getBoundingClientRect().top"
# True if nothing of a result lies under the panel, and the page is no wider than the screen.
APART = """() => {
  const panel = document.querySelector('.cse-lesson').getBoundingClientRect();
  const page = document.querySelector('.contain').getBoundingClientRect();
  return page.right <= Math.max(panel.left, innerWidth * (panel.left === 0)) && document.body.scrollWidth <= innerWidth;
}"""


@pytest.fixture(scope="module")
def url():
    with serving(BUNDLED_NAMES) as address:
        Client(address, verbose=False).predict("a", "b", api_name="/similarity")  # opens the models before pages do
        yield address


def panel(page):
    return page.locator(".cse-lesson")


def at_step(page, number: int) -> None:
    """Wait until the panel and the address are at a step of the lesson on negation."""
    expect(panel(page).get_by_role("heading")).to_have_text(NEGATION.steps[number - 1].title)
    expect(page).to_have_url(re.compile(rf"[?&]lesson=negation&step={number}&"))


def key_to(page, name: str) -> None:
    """Move the focus forward by Tab to the button of a name, and press it."""
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == name:
            page.keyboard.press("Enter")
            return
    pytest.fail(f"no button {name}")


@SIZES
def test_keys_alone_lead_through_a_lesson_with_a_guess_at_every_question(browser, url, size):
    width, height = size
    with watched(browser, url, width=width, has_touch=width < 500) as page:
        page.set_viewport_size({"width": width, "height": height})
        page.get_by_role("button", name="Lessons").press("Enter")
        page.get_by_role("link", name=NEGATION.title).press("Enter")
        for number, step in enumerate(NEGATION.steps, start=1):
            at_step(page, number)
            expect(panel(page)).to_contain_text(f"Step {number} of {len(NEGATION.steps)}")
            assert page.evaluate("document.activeElement.textContent") == step.title
            field = "b" if step.tab == "similarity" else "sentence"
            label = {"b": "Sentence B", "sentence": "Sentence"}[field]
            shown = page.get_by_label(label, exact=True).locator("visible=true")
            expect(shown.first).to_have_value(step.values[field])
            result = page.locator(f"#{step.shows} table")
            if step.question:
                expect(result).to_be_hidden()
                key_to(page, next(iter(step.choices.values())).label)
                expect(panel(page).locator(".cse-lesson-outcome")).to_contain_text(re.compile("Right: |Measured: "))
                assert page.evaluate("document.activeElement.ariaPressed") == "true"  # the focus stays
            expect(result).to_be_visible()
            assert page.evaluate(APART)
            page.keyboard.press("ArrowRight")
        at_step(page, len(NEGATION.steps))  # the last one
        page.keyboard.press("ArrowLeft")
        at_step(page, len(NEGATION.steps) - 1)
        expect(panel(page).locator(".cse-lesson-outcome")).to_be_visible()  # answered before
        panel(page).get_by_role("button", name="Close the lesson").press("Enter")
        expect(panel(page)).to_be_hidden()
        assert "lesson=" not in page.url
        assert page.evaluate("document.activeElement.textContent") == "Lessons"


@SIZES
def test_the_button_of_the_lessons_moves_the_first_result_by_a_few_pixels_at_most(browser, url, size):
    width, height = size
    with watched(browser, url, width=width) as page:
        page.set_viewport_size({"width": width, "height": height})
        before = page.evaluate(TOP)
        page.evaluate("document.querySelector('.cse-lessons').remove()")
        assert before - page.evaluate(TOP) <= 6


def test_a_link_opens_a_step_and_survives_reload_and_back(browser, url):
    with watched(browser, f"{url}?lesson=negation&step=2", leaves_page=True) as page:
        at_step(page, 2)
        assert "tab=probe" in page.url
        expect(page.locator("#changes table")).to_be_hidden()
        panel(page).get_by_role("button", name="None of them").click()
        expect(panel(page).locator(".cse-says")).to_have_text(NEGATION.steps[1].choices["none"].conclusion)
        expect(page.locator("#changes")).to_contain_text("The medicine is not safe for children.")
        panel(page).get_by_role("button", name="Next").click()
        at_step(page, 3)
        settled(page)  # a request that a reload cuts off is an error on the console
        page.reload()
        page.wait_for_function("window.cseOpened")
        at_step(page, 3)
        expect(page.locator("#changes")).to_contain_text("The mdeicine is safe for children.")
        page.go_back()
        at_step(page, 2)
        page.go_forward()
        at_step(page, 3)
        settled(page)
        page.goto(f"{url}?lesson=nothing&step=2")  # no such lesson
        page.wait_for_function("window.cseOpened")
        expect(panel(page)).to_be_hidden()


def test_what_a_visitor_tries_during_a_lesson_stays_in_its_address(browser, url):
    with watched(browser, f"{url}?lesson=negation&step=6&present=1") as page:
        at_step(page, 6)
        field = page.get_by_label("Sentence", exact=True).locator("visible=true").first
        expect(field).to_have_value("The medicine is safe for children.")
        field.fill("The soup is hot.")
        field.press("ArrowLeft")  # moves the cursor, not the lesson
        at_step(page, 6)
        field.press("Enter")
        expect(page).to_have_url(re.compile(r"sentence=The\+soup\+is\+hot\.&.*lesson=negation&step=6&present=1"))
        open_tab(page, "Search")
        expect(page).to_have_url(re.compile(r"tab=search&.*lesson=negation&step=6&present=1"))
        page.keyboard.press("ArrowRight")  # moves between the tabs
        at_step(page, 6)
        page.locator("h1").click()
        page.keyboard.press("ArrowLeft")
        at_step(page, 5)
        expect(page.get_by_role("tab", name="Probe")).to_have_attribute("aria-selected", "true")


def test_the_presenters_view_is_large_and_escape_leaves_it(browser, url):
    with watched(browser, f"{url}?lesson=vector&step=1", leaves_page=True) as page:
        text = panel(page).locator(".cse-lesson-body > p").first
        expect(panel(page).locator(".cse-lesson-numbers")).to_contain_text("384 in every model")

        def sizes():
            return (
                text.evaluate("each => parseFloat(getComputedStyle(each).fontSize)"),
                page.locator("#models b").first.evaluate("each => parseFloat(getComputedStyle(each).fontSize)"),
                panel(page).bounding_box()["width"],
            )

        before = sizes()
        panel(page).get_by_role("button", name="Present").click()
        expect(page).to_have_url(re.compile("present=1"))
        larger = sizes()
        assert larger[0] >= 24  # pixels
        assert larger[1] >= 1.2 * before[1]
        assert larger[2] >= 1.3 * before[2]
        assert page.evaluate(APART)
        page.keyboard.press("ArrowRight")
        expect(panel(page)).to_contain_text("Step 2 of 5")
        assert "present=1" in page.url
        settled(page)
        page.reload()
        page.wait_for_function("window.cseOpened")
        expect(panel(page)).to_contain_text("Step 2 of 5")
        assert sizes()[0] == larger[0]
        page.keyboard.press("Escape")
        expect(page).not_to_have_url(re.compile("present="))
        assert sizes() == before
        page.set_viewport_size({"width": 390, "height": 844})
        panel(page).get_by_role("button", name="Present").click()
        expect(page).to_have_url(re.compile("present=1"))
        assert page.evaluate(APART)
        assert panel(page).locator(".cse-lesson-head").bounding_box()["height"] < 100  # of the 400 pixels of the sheet


@pytest.mark.parametrize(
    ("width", "options"),
    [
        (1280, {"color_scheme": "light"}),
        (1280, {"color_scheme": "dark"}),
        (390, {"color_scheme": "dark"}),
        (1280, {"forced_colors": "active"}),
    ],
)
def test_axe_finds_nothing_in_a_lesson(browser, url, width, options):
    with watched(browser, f"{url}?lesson=mask&step=2", width=width, **options) as page:
        page.locator("#tokens .cse-card").first.wait_for(state="attached")
        assert violations(page) == [], "before the guess"
        assert page.evaluate(SKIPPED_LEVELS) == []
        panel(page).get_by_role("button", name="That depends on the model").click()
        expect(panel(page).locator(".cse-lesson-outcome")).to_contain_text("Measured: ")
        assert violations(page) == [], "after the guess"
        panel(page).get_by_role("button", name="Present").click()
        assert violations(page) == [], "presenting"
        panel(page).get_by_role("button", name="Close the lesson").click()
        page.get_by_role("button", name="Lessons").click()
        page.get_by_role("dialog", name="Lessons").wait_for()
        assert violations(page) == [], "the list"
