"""The place Tokens and the lessons in a real browser: words while one types, the fold, a walk by keys, and axe-core."""

import re
from contextlib import ExitStack

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, STILL, look, open_tab, unfold, watched
from barriers import COLOURS, violations
from clients import app_client
from playwright.sync_api import expect

from cse.app.lessons import LESSONS
from cse.models.names import BUNDLED_NAMES

pytestmark = NEEDS_BROWSER
MASK = LESSONS["mask"].steps
# True if nothing of the page lies under the panel, and the page is no wider than the screen.
APART = """() => {
  const panel = document.querySelector('.cse-lesson').getBoundingClientRect();
  const page = document.querySelector('.contain').getBoundingClientRect();
  return page.right <= Math.max(panel.left, innerWidth * (panel.left === 0)) && document.body.scrollWidth <= innerWidth;
}"""


@pytest.fixture(scope="module")
def url():
    with serving(BUNDLED_NAMES) as address:
        client = app_client(address)
        for key in ("tokens", "prefix"):  # opens the models before pages do
            client.predict("a dog", models=["promptbert (before)", *BUNDLED_NAMES], api_name=f"/{key}")
        yield address


@pytest.fixture
def opened(browser, url):
    """What opens an address; whatever goes wrong on it fails the test."""
    with ExitStack() as pages:

        def go(address: str = "?tab=tokens", width: int = 1280, height: int = 720):
            return pages.enter_context(watched(browser, f"{url}{address}", width, height, reduced_motion="reduce"))

        yield go


def panel(page):
    return page.locator(".cse-lesson")


def at_step(page, number: int) -> None:
    expect(panel(page).get_by_role("heading")).to_have_text(MASK[number - 1].title)
    expect(page).to_have_url(re.compile(rf"[?&]lesson=mask&step={number}&"))


def test_a_link_opens_the_fold_of_a_field_that_it_names(opened) -> None:
    page = opened("?tab=tokens&layer=2")
    expect(page.get_by_label("number input for Layer").first).to_have_value("2")
    expect(page.get_by_role("button", name="What if a model read another template?")).not_to_have_class(
        re.compile("open")
    )


def test_words_follow_the_sentence_and_the_fold_reads_the_same_one(opened) -> None:
    page = opened()
    words = page.locator("#tokens .cse-token")
    expect(words.first).to_have_text("hospital")
    page.get_by_role("button", name="What if a model read another template?").click()
    expect(page.locator("#template")).to_contain_text("Its own")
    page.get_by_label("Sentence", exact=True).fill("He is not rich.")  # no button
    expect(words.first).to_have_text("rich")
    expect(page.locator("#template")).to_be_empty()  # its answer was for another sentence
    page.get_by_role("button", name="Inside").click()
    page.get_by_role("button", name="Show attention").click()
    expect(page.locator("#attention tbody").first).to_contain_text("rich")
    page.get_by_role("button", name="Switch off the prefix").click()
    expect(page.locator("#prefix")).to_contain_text("For “He is not rich.”")
    for width, height in ((390, 844), (1280, 720)):
        look(page, width, height)
        assert page.evaluate("document.body.scrollWidth <= innerWidth"), width


def test_keys_lead_through_a_lesson_that_asks_before_it_tells(opened) -> None:
    page = opened("?tab=similarity&a=One+dog.&b=Two+dogs.&models=simcse,conpvp")
    page.get_by_role("button", name="Learn").press("Enter")
    page.get_by_role("link", name=LESSONS["mask"].title).press("Enter")
    at_step(page, 1)
    assert page.evaluate("document.activeElement.textContent") == MASK[0].title
    expect(page.locator("#tokens .cse-card").first).to_be_hidden()
    panel(page).get_by_role("button", name="hospital").press("Enter")
    expect(panel(page).locator(".cse-lesson-outcome")).to_have_text("You guessed: hospital. Measured: that.")
    expect(page.locator("#tokens .cse-card")).to_have_count(1)  # the next step asks what training makes of it
    for size in ((390, 844), (1280, 720)):
        look(page, *size)
        assert page.evaluate(APART), size
    page.keyboard.press("ArrowRight")
    at_step(page, 2)
    open_tab(page, "Similarity")
    expect(page.locator("#similarity table")).to_be_visible()  # the step asks nothing about it
    open_tab(page, "Tokens")
    expect(page.locator("#tokens .cse-card").first).to_be_hidden()
    panel(page).get_by_role("heading").press("ArrowLeft")
    at_step(page, 1)
    expect(panel(page).locator(".cse-lesson-outcome")).to_be_visible()  # answered before
    panel(page).get_by_role("button", name="Close the lesson").press("Enter")
    expect(panel(page)).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?tab=similarity&a=One\+dog\.&b=Two\+dogs\.&models=simcse,conpvp"))
    assert page.evaluate("document.activeElement.textContent") == "Learn"
    expect(page.get_by_label("Sentence A")).to_have_value("One dog.")  # as before the lesson, with its models
    expect(page.locator("#similarity tbody th")).to_have_text(["SimCSE", "ConPVP"])
    open_tab(page, "Tokens")
    expect(page.locator("#tokens .cse-card h3")).to_contain_text(["ConPVP"])  # SimCSE has no template
    expect(page.locator("#tokens")).not_to_contain_text("PromptBERT")


def test_a_short_link_opens_the_step_and_the_fold_that_it_shows(opened) -> None:
    page = opened("?lesson=prefix&step=2")
    expect(page).to_have_url(re.compile("tab=tokens"))
    expect(page.get_by_label("Other sentence")).to_have_value("The girl bought a cake from the baker.")
    panel(page).get_by_role("button", name="Less than 10 %").click()
    expect(panel(page).locator(".cse-lesson-outcome")).to_have_text("Right: Less than 10 %.")
    expect(page.locator("#prefix")).to_contain_text("For “The baker sold a cake to the girl.”")
    expect(page.locator("#prefix table")).to_be_visible()


@pytest.mark.parametrize(
    ("lesson", "step", "shown", "size"),
    [("negation", 2, "#changes", (390, 844)), ("prototypes", 1, "#prototypes", (1280, 720))],
)
def test_a_step_opens_the_fold_of_its_result_and_asks_for_it(opened, lesson, step, shown, size) -> None:
    page = opened(f"?lesson={lesson}&step={step}", *size)
    result = page.locator(shown)
    expect(result).to_be_in_viewport()  # with its place, while one guesses
    panel(page).get_by_role("button", name="Just show me").click()
    expect(panel(page).locator(".cse-lesson-outcome")).to_contain_text("Measured: ")
    expect(result.locator(".cse-says")).to_be_in_viewport(ratio=1)
    page.wait_for_function(STILL)
    says, sheet = result.locator(".cse-says").bounding_box(), panel(page).bounding_box()
    assert says["y"] + says["height"] <= sheet["y"] or says["x"] + says["width"] <= sheet["x"]
    assert violations(page, panel(page)) == []
    look(page, *size, color_scheme="dark")
    assert violations(page, panel(page), rules=COLOURS) == []


def test_the_words_after_training_stand_beside_those_before_in_present_too(opened) -> None:
    page = opened("?lesson=mask&step=2")
    panel(page).get_by_role("button", name="hospital").click()
    after = page.locator("#tokens .cse-phases > div", has_text="After training").locator(".cse-token").first
    for present in ("", "1"):
        if present:
            panel(page).get_by_role("button", name="Present").click()
        expect(after).to_have_text("hospital")
        expect(after).to_be_in_viewport(ratio=1)
    for size in ((1280, 720), (1920, 1080)):
        look(page, *size)
        assert page.evaluate(APART), size


@pytest.mark.parametrize("leave", ["Close the lesson", "Back"])
def test_places_that_a_lesson_filled_are_again_as_they_were_before_it(opened, leave) -> None:
    page, steps = opened("?tab=similarity&a=One+dog.&b=Two+dogs.&models=simcse,conpvp"), LESSONS["vector"].steps
    unfold(page, page.get_by_role("button", name="All pairs of a list"))
    fields = [page.get_by_label(label) for label in ("Sentence A", "Sentence B", "Sentences, one per line", "Query")]
    fields[0].fill("No dog.")  # no button
    expect(page).to_have_url(re.compile("a=No"))
    numbers = page.locator("#similarity .cse-number")
    page.wait_for_function(STILL)
    shown = numbers.all_inner_texts()
    open_tab(page, "Search")
    before = [field.input_value() for field in fields]
    page.get_by_role("button", name="Learn").click()
    page.get_by_role("link", name=LESSONS["vector"].title).click()
    for step in steps:
        expect(panel(page).get_by_role("heading")).to_have_text(step.title)
        page.keyboard.press("ArrowRight")
    expect(fields[3]).to_have_value(steps[-1].inputs["query"])
    if leave == "Back":
        page.evaluate(f"history.go(-{len(steps)})")
    else:
        panel(page).get_by_role("button", name=leave).click()
    expect(panel(page)).to_be_hidden()
    for field, value in zip(fields, before, strict=True):
        expect(field).to_have_value(value)
    open_tab(page, "Similarity")
    expect(numbers).to_have_text(shown)
