"""Near-duplicates and blind votes in a real browser: by keys, after a reload, and from a link."""

import json

import pytest
from app_models import GOOD, serving, write_model
from app_pages import NEEDS_BROWSER, open_tab, watched
from playwright.sync_api import expect

from cse.app.models.naming import title

PAUSE = 100  # milliseconds before a vote: Gradio drops a click while it ends the event before
pytestmark = NEEDS_BROWSER
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"
NOUNS = ("the dog", "a cat", "the sun", "a woman")
VERBS, PLACES = ("is happy", "was red", "is eating"), ("in the park", "in the rain", "here")


@pytest.fixture(scope="module")
def url(tmp_path_factory, bert_folder):
    root = tmp_path_factory.mktemp("models")
    with serving([str(write_model(root / name, bert_folder, name, seed)) for seed, name in enumerate(GOOD[:2])]) as at:
        yield at


@pytest.fixture(scope="module")
def page(browser, url):
    with watched(browser, url, leaves_page=True) as opened:
        yield opened


def paste(page, texts):
    """Paste a corpus, and wait until all models have encoded it."""
    page.get_by_role("button", name="Paste").click()
    page.get_by_label("Lines, one text each").fill("\n".join(texts))
    page.get_by_role("button", name="Use these texts").click()
    expect(page.locator("#corpus input")).to_have_value(f"Pasted ({len(texts)})")
    expect(page.locator("#corpus-status")).to_have_text("")


def test_near_duplicates_follow_the_slider_and_are_taken_away(page):
    texts = [f"the dog {HOSTILE} number {number}" for number in range(12)] + ["a woman is happy in the rain"] * 3
    open_tab(page, "Near-duplicates")
    numbers = page.locator("#duplicate-numbers .cse-count")
    expect(numbers).to_contain_text("of 1,200 texts would go")
    paste(page, texts)
    expect(numbers).to_contain_text("of 15 texts would go")
    slider = page.get_by_role("slider", name="Strictness: 3 is 99.9 %, 5 is 99.999 %")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#duplicate-numbers .cse-note").first).to_contain_text("Percentile 99.99999")
    expect(page.locator("#duplicate-groups .cse-group").last).to_contain_text("a woman is happy in the rain")
    expect(page.locator("#duplicate-groups .cse-keep").first).to_have_text("kept")
    with page.expect_download() as taken:
        page.get_by_role("button", name="Deduplicated CSV").click()
    kept = taken.value.path().read_text()
    assert kept.count("a woman is happy in the rain") == 1
    gone = int(numbers.inner_text().split()[0])
    assert len(kept.splitlines()) == 1 + 15 - gone
    assert "tab=duplicates" in page.url
    assert "corpus=own" in page.url


def test_a_vote_by_keys_is_found_again_and_its_link_opens_the_verdict(page, browser):
    open_tab(page, "Choose for my data")
    paste(page, [f"{noun} {verb} {place}" for noun in NOUNS for verb in VERBS for place in PLACES])
    page.get_by_label("First model").click()
    page.get_by_role("option", name=title(GOOD[0])).click()
    votes = page.get_by_role("spinbutton", name="Votes")
    votes.fill("6")
    votes.press("s")  # no vote while a field has the focus
    expect(page.locator("#votes-needed")).to_have_text(
        "Of 6 votes for a list, 6 must favour one model to find it better."
    )
    votes.press("Tab")
    page.wait_for_url("**votes=6**")
    page.get_by_role("button", name="Start voting").click()
    asked = page.locator("#ballot .cse-asked")
    asked.wait_for()
    place = page.locator("#ballot .cse-note").first
    expect(place).to_contain_text("Vote 1 of 6")
    assert not any(name in page.locator("#voting").inner_text() for name in map(title, GOOD))
    first = asked.inner_text()
    for key, number in (("a", 2), ("u", 1), ("b", 2), ("s", 3), ("k", 3)):
        page.wait_for_timeout(PAUSE)
        page.keyboard.press(key)
        expect(place).to_contain_text(f"Vote {number} of 6")
        if key == "u":
            expect(asked).to_have_text(first)
    page.reload()
    expect(place).to_contain_text("Vote 3 of 6")
    for number in (4, 5, 6):
        page.wait_for_timeout(PAUSE)
        page.get_by_role("button", name="A is closer").click()
        expect(place).to_contain_text(f"Vote {number} of 6")
    page.wait_for_timeout(PAUSE)
    page.keyboard.press("a")
    verdict = page.locator("#verdict .cse-verdict")
    expect(verdict).to_contain_text("votes")
    page.wait_for_url("**verdict=**")
    with page.expect_download() as taken:
        page.get_by_role("button", name="Votes (JSON)").click()
    saved = json.loads(taken.value.path().read_text())
    assert (len(saved["votes"]), saved["verdict"]["same"]) == (7, 1)
    said, address = verdict.inner_text(), page.url
    with watched(browser, address) as stranger:  # a new browser context, so another visitor
        expect(stranger.locator("#verdict .cse-verdict")).to_have_text(said)
        expect(stranger.locator("#verdict")).to_contain_text("comes from a link")
