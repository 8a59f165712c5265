"""Lessons in a real browser: a walk by keys, links that survive reload and Back, the presenter's view, and axe-core."""

import re

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, look, open_tab, watched
from barriers import COLOURS, RULES, SKIPPED_LEVELS, settled, violations
from clients import app_client
from playwright.sync_api import expect

from cse.app.lessons.lesson import address
from cse.app.lessons.tours import LESSONS
from cse.models.names import BUNDLED_NAMES

pytestmark = NEEDS_BROWSER
SIZES = ((1280, 720), (390, 844))
NAMED = {lesson.name: lesson for lesson in LESSONS}
NEGATION = NAMED["negation"]
# True if nothing of a result lies under the panel, and the page is no wider than the screen.
APART = """() => {
  const panel = document.querySelector('.cse-lesson').getBoundingClientRect();
  const page = document.querySelector('.contain').getBoundingClientRect();
  return page.right <= Math.max(panel.left, innerWidth * (panel.left === 0)) && document.body.scrollWidth <= innerWidth;
}"""


@pytest.fixture(scope="module")
def url():
    with serving(BUNDLED_NAMES) as address:
        app_client(address).predict("a", "b", api_name="/similarity")  # opens the models before pages do
        yield address


@pytest.fixture(scope="module")
def page(browser, url):
    """One page for the tests that open no address."""
    with watched(browser, url) as opened:
        yield opened


def panel(page):
    return page.locator(".cse-lesson")


def start(page, name):
    """Open a lesson by the list."""
    page.get_by_role("button", name="Lessons").press("Enter")
    page.get_by_role("link", name=NAMED[name].title).press("Enter")


def back_to(page, address):
    """Go back to an address that this page showed."""
    page.evaluate("address => { history.pushState(null, '', address); history.pushState(null, '', '?'); }", address)
    page.go_back()


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


def test_keys_alone_lead_through_a_lesson_with_a_guess_at_every_question_beside_the_page_on_any_screen(page):
    look(page, *SIZES[0])
    start(page, "negation")
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
        for size in reversed(SIZES):
            look(page, *size)
            expect(result).to_be_visible()
            assert page.evaluate(APART), size
        page.keyboard.press("ArrowRight")
    at_step(page, len(NEGATION.steps))  # the last one
    page.keyboard.press("ArrowLeft")
    at_step(page, len(NEGATION.steps) - 1)
    expect(panel(page).locator(".cse-lesson-outcome")).to_be_visible()  # answered before
    panel(page).get_by_role("button", name="Close the lesson").press("Enter")
    expect(panel(page)).to_be_hidden()
    assert "lesson=" not in page.url
    assert page.evaluate("document.activeElement.textContent") == "Lessons"


def test_a_link_opens_a_step_and_survives_reload_and_back_and_so_does_the_presenters_view(browser, url):
    with watched(browser, f"{url}?lesson=negation&step=2", leaves_page=True) as page:
        at_step(page, 2)
        assert "tab=probe" in page.url
        expect(page.locator("#changes table")).to_be_hidden()
        panel(page).get_by_role("button", name="None of them").click()
        expect(panel(page).locator(".cse-says")).to_have_text(NEGATION.steps[1].choices["none"].conclusion)
        expect(page.locator("#changes")).to_contain_text("The medicine is not safe for children.")
        panel(page).get_by_role("button", name="Next").click()
        at_step(page, 3)
        panel(page).get_by_role("button", name="Present").click()
        expect(page).to_have_url(re.compile("present=1"))
        settled(page)  # a request that a reload cuts off is an error on the console
        page.reload()
        page.wait_for_function("window.cseOpened")
        at_step(page, 3)
        assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "20px"  # 125 %
        expect(page.locator("#changes")).to_contain_text("The mdeicine is safe for children.")
        page.go_back()
        at_step(page, 2)
        page.go_forward()
        at_step(page, 3)


def test_what_a_visitor_tries_during_a_lesson_stays_in_its_address(page):
    look(page)
    back_to(page, f"{address(NEGATION, 1)}&present=1")
    at_step(page, 1)
    field = page.get_by_label("Sentence B")
    expect(field).to_have_value("The museum is not open today.")
    field.fill("The soup is hot.")
    field.press("ArrowRight")  # moves the cursor, not the lesson
    at_step(page, 1)
    field.press("Enter")
    expect(page).to_have_url(re.compile(r"b=The\+soup\+is\+hot\.&.*lesson=negation&step=1&present=1"))
    open_tab(page, "Search")
    expect(page).to_have_url(re.compile(r"tab=search&.*lesson=negation&step=1&present=1"))
    page.keyboard.press("ArrowRight")  # moves between the tabs
    at_step(page, 1)
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    at_step(page, 2)
    expect(page.get_by_role("tab", name="Probe")).to_have_attribute("aria-selected", "true")
    back_to(page, "?lesson=nothing&step=2")  # no such lesson
    expect(panel(page)).to_be_hidden()


def test_axe_finds_nothing_in_a_lesson(page):
    def found(part, what, wide=True):
        for width, media, rules in (
            (390, {"color_scheme": "dark"}, RULES),
            (1280, {"forced_colors": "active"}, COLOURS),
            (1280, {}, RULES),
        )[: 3 if wide else 2]:
            look(page, width, **media)
            assert violations(page, part, rules=rules) == [], (what, width, media)

    start(page, "mask")
    panel(page).get_by_role("button", name="Next").click()
    expect(panel(page)).to_contain_text("Step 2 of")
    page.locator("#tokens .cse-card").first.wait_for(state="attached")
    found(panel(page), "before the guess", wide=False)
    look(page, 1280)
    assert violations(page) == [], "before the guess, and the page beside it"
    assert page.evaluate(SKIPPED_LEVELS) == []
    panel(page).get_by_role("button", name="That depends on the model").click()
    expect(panel(page).locator(".cse-lesson-outcome")).to_contain_text("Measured: ")
    found(panel(page), "after the guess")
    panel(page).get_by_role("button", name="Present").click()
    found(panel(page), "presenting")
    panel(page).get_by_role("button", name="Close the lesson").click()
    page.get_by_role("button", name="Lessons").click()
    found(page.get_by_role("dialog", name="Lessons"), "the list")
