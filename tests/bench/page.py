"""What the page costs in a browser: bytes over the wire, the time to the first paint, the work of opening a place."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.support.chromium import chromium

GRADIO = ("/assets/", "/static/", "/theme.css")  # paths of Gradio's own files, the same for every app
SETTLED = 1000  # milliseconds after the page has opened
OPEN_LIMIT = 60_000  # milliseconds
# What each picture shows: its address, an expression that is true when it is there, and its height.
PICTURES: dict[str, tuple[dict[str, str], str, int]] = {
    "app": (
        {"tab": "similarity", "models": "simcse,promptbert (before),promptbert,dcpcse,conpvp"},
        "document.querySelector('#similarity .html-container:not(.pending)')?.innerText.includes('before')", 800,
    ),
    "tokens": ({"tab": "tokens"}, "document.querySelector('#tokens .cse-card')", 1000),
    "clusters": ({"tab": "clusters"}, "document.querySelectorAll('#maps canvas').length > 1", 1000),
}  # fmt: skip


class Visit(NamedTuple):
    """A first visit: bytes of this `page` and its answers, bytes of `gradio`'s own files, milliseconds to a paint.

    `place` are the milliseconds that the browser's main thread works in the two seconds after a press that opens a
    place again, the median of all places.
    """

    page: int
    gradio: int
    first_paint: float
    place: float


def visit(browser: Any, url: str) -> Visit:
    """Open a page in a Playwright browser that has nothing of it in its cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    opened = context.new_page()
    urls: dict[str, str] = {}
    sizes: dict[str, int] = {}
    watching = context.new_cdp_session(opened)
    watching.send("Network.enable")
    watching.on("Network.responseReceived", lambda told: urls.update({told["requestId"]: told["response"]["url"]}))
    watching.on(
        "Network.loadingFinished", lambda told: sizes.update({told["requestId"]: int(told["encodedDataLength"])})
    )
    opened.goto(url, timeout=OPEN_LIMIT)
    opened.wait_for_function("window.cseOpened", timeout=OPEN_LIMIT)
    opened.wait_for_timeout(SETTLED)
    painted = opened.evaluate("performance.getEntriesByType('paint').map(each => each.startTime)")
    ours = {request: not urlsplit(address).path.startswith(GRADIO) for request, address in urls.items()}
    page, gradio = (sum(size for request, size in sizes.items() if ours.get(request) is own) for own in (True, False))
    place = median(places(opened, watching))
    context.close()
    return Visit(page, gradio, min(painted), place)


def places(opened: Any, watching: Any) -> list[float]:
    """Open every place twice; return the milliseconds of work of the second openings."""
    watching.send("Performance.enable")

    def worked() -> float:
        metrics = watching.send("Performance.getMetrics")["metrics"]
        return 1000 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    tabs, work = opened.get_by_role("tab").all(), []
    for tab in [*tabs[1:], tabs[0]] * 2:  # the first one is open
        before = worked()
        tab.click()
        opened.wait_for_timeout(2 * SETTLED)
        work.append(worked() - before)
    return work[len(tabs) :]


def take_pictures(url: str, folder: Path) -> list[Path]:
    """Write the pictures of README and docs into a folder. Raises ValueError without Chromium."""
    written = []
    with chromium() as browser:
        for name, (address, ready, height) in PICTURES.items():
            opened = browser.new_page(viewport={"width": 1280, "height": height})
            opened.goto(f"{url}?{urlencode({'__theme': 'light', **address})}", timeout=OPEN_LIMIT)
            opened.wait_for_function(f"window.cseOpened && ({ready})", timeout=OPEN_LIMIT)
            opened.wait_for_timeout(2 * SETTLED)  # fonts, and the charts' transitions
            written.append(folder / f"{name}.png")
            opened.screenshot(path=written[-1])
            opened.close()
    return written


def measure_page(url: str, rounds: int) -> dict[str, Any]:
    """Return kilobytes of a first visit, and milliseconds to its first paint and of opening a place again.

    Milliseconds are medians of the `rounds`, those to the first paint with their range.

    Raises ValueError without Chromium.
    """
    with chromium() as browser:
        visits = [visit(browser, url) for _ in range(rounds)]
    painted = sorted(each.first_paint for each in visits)
    return {
        "page_kb": round(visits[0].page / 1000, 1), "gradio_kb": round(visits[0].gradio / 1000, 1),
        "first_paint_ms": round(median(painted)), "least_ms": round(painted[0]), "most_ms": round(painted[-1]),
        "place_ms": round(median(each.place for each in visits)), "rounds": rounds,
    }  # fmt: skip
