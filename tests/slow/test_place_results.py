"""Results in a real browser: tables, charts that fill their place, and scores that a press computes."""

import re

from app_models import serving, write_model
from app_pages import NEEDS_BROWSER, open_tab, unfold, watched
from playwright.sync_api import expect

pytestmark = NEEDS_BROWSER


def test_scores_are_there_and_follow_the_task_and_the_models(browser):
    with serving(["simcse", "dcpcse"]) as url, watched(browser, url) as page:
        open_tab(page, "Results")
        rows = page.locator("#scores .cse-scores tbody tr")
        expect(rows.first).to_contain_text("SimCSE")
        fold = page.get_by_role("button", name="The scores as a chart")
        expect(fold).to_be_visible()
        for task, column in [("Clustering", "agnews"), ("Semantic textual similarity", "STS12"), ("Transfer", "MR")]:
            page.get_by_label("Task", exact=True).click()
            page.get_by_role("option", name=task, exact=True).click()
            expect(page.locator("#scores .cse-scores thead")).to_contain_text(column)
            expect(fold).to_be_visible(visible=task != "Clustering")  # whose columns have several units
        unfold(page, fold)  # the chart was drawn without a width
        chart = page.locator(".cse-plot svg.marks:visible").first
        expect(chart).to_have_attribute("width", re.compile(r"\d{3,}"))
        assert chart.bounding_box()["width"] > 800
        unfold(page, page.locator("#fold-ledger > button"))
        expect(page.locator("#ledger tbody tr").first).to_contain_text(re.compile(r"\d\d\.\d\d"))


def test_the_corpus_is_scored_when_pressed(browser, bert_folder, tmp_path):
    shown = write_model(tmp_path / "simcse", bert_folder, "simcse")
    with serving([str(shown)]) as url, watched(browser, url, width=390, height=844) as page:
        open_tab(page, "Results")
        page.get_by_role("button", name="Score the corpus").click()
        expect(page.locator("#labels tbody tr")).to_have_count(1)
        expect(page.locator("#labels .cse-says")).to_contain_text("240 texts that nothing was fitted on")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
