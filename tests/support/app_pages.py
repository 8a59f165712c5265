"""The app in a real browser, for the tests that drive it: pages that fail a test for whatever goes wrong on them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlparse

import pytest
from chromium import CHROMIUM
from playwright.sync_api import expect

NEEDS_BROWSER = [
    pytest.mark.browser,
    # A machine of CI shares its cores with others. What needed a second run is listed, to be mended.
    pytest.mark.flaky(reruns=1),
    pytest.mark.skipif(
        CHROMIUM is None and "CSE_REQUIRE_BROWSER" not in os.environ,
        reason="no chromium on this machine (2026-11: scripts/test installs it where it may)",
    ),
]
TABS = ("Similarity", "Search", "Tokens", "Clusters", "Your model", "Results")
CUT_OFF = re.compile(
    "signal is aborted|BodyStreamBuffer was aborted|Connection errored out|Failed to fetch|network error|^Response$|"
    "Unexpected error 404: Not Found"  # of the stream
)
STREAM = "/queue/data?"  # which is not found for a page that has left
# Colours and results fade in, and charts have a placeholder until what draws them is there.
STILL = """document.getAnimations().every(each => each.playState !== 'running')
    && ![...document.querySelectorAll('.cse-plot .empty')].some(each => each.checkVisibility())"""
LATE = r"""() => {
  window.fetchAtOnce = window.fetch;
  window.fetch = async (...given) => {
    if (/run\/predict|queue\/join/.test(given[0])) await new Promise(done => setTimeout(done, 400));
    return window.fetchAtOnce(...given);
  };
}"""
WAIT = 120_000  # milliseconds: the machine may be busy
expect.set_options(timeout=WAIT)


@contextmanager
def watched(browser, url, width=1400, height=900, leaves_page=False, **options) -> Iterator:
    """The opened page; whatever went wrong on it fails the test at the end, or its last test, naming the one it was in.

    A test that reloads or leaves the page says so: Gradio's client reports the requests that this cuts off.
    """
    page = browser.new_page(viewport={"width": width, "height": height}, permissions=["clipboard-write"], **options)
    page.set_default_timeout(WAIT)
    wrong = []

    def note(text, place=""):
        if not (leaves_page and (CUT_OFF.search(text) or STREAM in place)):
            wrong.append(f"{text} {place} in {os.environ['PYTEST_CURRENT_TEST']}")

    def listen(message):
        if message.type == "error":
            note(message.text, message.location.get("url", ""))

    page.on("console", listen)
    page.on("pageerror", lambda error: note(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: wrong.append(request.url) if leaves(request.url) else None)
    page.goto(url)
    page.locator("[role=tabpanel] .cse-result").first.wait_for(state="attached")
    page.wait_for_function("window.cseOpened")  # until then Gradio may still fill fields
    try:
        yield page
    except BaseException as error:
        error.add_note(f"until then the page had reported {wrong}")
        raise
    assert page.locator("img[src=x]").count() == 0
    assert wrong == [], wrong
    page.close()


@contextmanager
def slowly(page) -> Iterator[None]:
    """Let the server get late what a press asks of it, so that the next press comes while that is under way."""
    page.evaluate(LATE)
    yield
    page.evaluate("() => { window.fetch = window.fetchAtOnce; }")


def leaves(url):
    address = urlparse(url)
    return address.scheme not in ("data", "blob") and address.hostname not in ("127.0.0.1", "localhost")


def look(page, width=1400, height=900, **media):
    """Give an open page another size and other media, such as a colour scheme; without one, those it opened with."""
    page.set_viewport_size({"width": width, "height": height})
    media = {"color_scheme": "light", "forced_colors": "none", **media}
    page.emulate_media(**media)
    page.wait_for_function(
        "dark => document.body.classList.contains('dark') === dark", arg=media["color_scheme"] == "dark"
    )
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function(STILL)


def open_tab(page, name):
    """Open a tab by its name; its fields are ready afterwards."""
    unfold(page, page.get_by_role("tab", name=name))


def unfold(page, button):
    """Open a tab or an accordion by its button; its fields are ready afterwards.

    Gradio makes the fields on opening and gives them their first values a little later, in place of what was typed.
    """
    button.click()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestIdleCallback(done)))")
