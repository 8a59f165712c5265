"""What axe-core finds on a page, for the tests that look for barriers."""

from app_pages import STILL
from axe_playwright_python.sync_playwright import Axe

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"target-size": {"enabled": True}},  # of WCAG 2.2, off by default
    "resultTypes": ["violations"],
    "preload": False,  # of sounds and films, which the page lacks
}
SKIPPED_LEVELS = """() => [...document.querySelectorAll('h1, h2, h3, h4')].filter(e => e.checkVisibility())
  .map(e => Number(e.tagName[1])).filter((level, place, all) => level > (place ? all[place - 1] + 1 : 1))"""


COLOURS = {  # the rules that another colour scheme may break
    **RULES,
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}


def settled(page) -> None:
    """Wait until nothing on the page is being computed, and nothing fades in."""
    page.wait_for_timeout(100)  # what was pressed has begun
    page.wait_for_function(f"!document.querySelector('.pending') && {STILL}")


def violations(page, *parts, rules=RULES) -> list[str]:
    """The violations that axe-core finds on the page or some `parts` of it, once nothing is being computed."""
    settled(page)
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    run = "([include, rules]) => axe.run(include.length ? {include} : document, rules)"
    found = page.evaluate(run, [[part.element_handle() for part in parts], rules])["violations"]
    return [f"{rule['id']}: {node['target']} {node['failureSummary']}" for rule in found for node in rule["nodes"]]
