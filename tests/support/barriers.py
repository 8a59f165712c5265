"""What axe-core finds on a page, for the tests that look for barriers."""

from axe_playwright_python.sync_playwright import Axe

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"target-size": {"enabled": True}},  # of WCAG 2.2, off by default
    "resultTypes": ["violations"],
}
SKIPPED_LEVELS = """() => [...document.querySelectorAll('h1, h2, h3, h4')].filter(e => e.checkVisibility())
  .map(e => Number(e.tagName[1])).filter((level, place, all) => level > (place ? all[place - 1] + 1 : 1))"""


def settled(page) -> None:
    """Wait until nothing on the page is being computed."""
    page.wait_for_function("!document.querySelector('.pending')")
    page.wait_for_timeout(500)  # Gradio fades results in


def violations(page) -> list[str]:
    """The violations that axe-core finds, once nothing on the page is being computed."""
    settled(page)
    found = Axe().run(page, options=RULES).response["violations"]
    return [f"{rule['id']}: {node['target']} {node['failureSummary']}" for rule in found for node in rule["nodes"]]
