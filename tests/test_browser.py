"""The page in a real browser: six tabs that show results, a quiet console, no request that leaves the machine."""

import pytest
from app_models import GOOD, MARKUP, serving, write_models
from app_pages import NEEDS_BROWSER, TABS, WAIT, chromium, open_tab, watched
from gradio_client import Client
from playwright.sync_api import expect

pytestmark = NEEDS_BROWSER
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> the dog"
LINES = [HOSTILE, "a man is playing guitar", "the cat is eating", "a woman is happy in the rain", "they mean it"]


@pytest.fixture(scope="module")
def url(tmp_path_factory, bert_folder):
    folders = write_models(tmp_path_factory.mktemp("columns"), bert_folder)
    with serving([str(folder) for folder in folders]) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


def headings(page, place):
    return page.locator(f"{place} .cse-card h3").all_text_contents()


def test_the_first_screen_is_filled_when_the_page_opens(browser, url):
    with watched(browser, url) as page:
        assert page.locator("#similarity tbody th").all_text_contents() == [*GOOD, MARKUP, "broken"]
        for number in page.locator("#similarity .cse-number").all_text_contents():
            assert -1 <= float(number) <= 1
        assert "damaged" in page.locator("#similarity .cse-failure").inner_text()
        page.locator("#heat-maps .cse-heat").first.wait_for()
        strip = page.locator("#models details", has_text="dcpcse").first
        expect(strip).to_contain_text("512 learned numbers")
        strip.locator("summary").click()
        expect(strip.locator("dl")).to_contain_text("Jiang, Zhang and Wang 2022")
        assert page.locator("#models .cse-card").count() == 6


def test_similarity_follows_the_examples_and_the_list(browser, url):
    with watched(browser, url) as page:
        page.get_by_text("negation", exact=True).click()
        expect(page.get_by_label("Sentence B")).to_have_value("The restaurant is not open on Sundays.")
        page.get_by_label("Sentence A").fill("the cat")
        page.get_by_label("Sentence B").fill("the cat")
        page.get_by_label("Sentence B").press("Enter")
        expect(page.locator("#similarity .cse-number")).to_have_text(["1.000"] * 5)
        page.get_by_label("Sentences, one per line").fill("\n".join(LINES))
        page.get_by_role("button", name="Draw heat maps").click()
        label = page.locator("#heat-maps .cse-heat").first.locator("th[scope=row]").first
        expect(label).to_have_text(f"1 {HOSTILE}")
        assert page.locator("#heat-maps .cse-heat").count() == 5
        assert page.locator("#heat-maps .cse-heat").first.locator("td").count() == len(LINES) ** 2


def test_search_lists_hits_of_every_model(browser, url):
    with watched(browser, url) as page:
        open_tab(page, "Search")
        query = page.get_by_label("Query")
        query.fill(HOSTILE)
        query.press("Enter")
        columns = page.locator("#hits .cse-ranks thead th")
        expect(columns).to_have_count(6)
        assert [text.split("Flat")[0] for text in columns.all_text_contents()] == ["Sentence", *GOOD, MARKUP]
        assert "damaged" in page.locator("#hits .cse-failure").inner_text()
        for model in range(5):
            assert page.locator(f"#hits td:nth-child({model + 2}) .cse-found").count() == 5
        query.fill("  ")
        query.press("Enter")
        page.get_by_text("The query is empty; write a few words.").wait_for()
        expect(columns).to_have_count(6)


def test_a_visitors_own_sentences_are_searched_and_a_bad_file_is_refused_where_it_was_given(browser, url):
    with watched(browser, url) as page:
        open_tab(page, "Search")
        page.get_by_role("button", name="Your own sentences").click()
        status, index = page.locator("#own-corpus"), page.get_by_role("button", name="Index for this visit")
        file = page.locator(".cse-own input[type=file]")
        file.set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"caf\xe9 au lait"})
        page.get_by_text("a.txt").first.wait_for()
        index.click()
        expect(status.get_by_role("alert")).to_contain_text("a.txt: line 1 is not UTF-8")
        file.set_input_files({"name": "b.txt", "mimeType": "text/plain", "buffer": "\n".join(LINES).encode()})
        page.get_by_text("b.txt").first.wait_for()
        index.click()
        expect(status).to_contain_text("Your sentences (5) indexed")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("#hits .cse-ranks tbody tr")).to_have_count(5)
        assert page.locator("#hits .cse-on-map").count() == 0
        expect(page.locator("#hits tbody th", has_text=LINES[1])).to_have_count(1)


def test_tokens_are_shown_before_and_after_denoising(browser, url):
    with watched(browser, url) as page:
        open_tab(page, "Tokens")
        page.get_by_label("Sentence", exact=True).fill(HOSTILE)
        page.get_by_role("button", name="Show words").click()
        expect(page.locator("#tokens .cse-tokens")).to_have_count(15)  # three lists of five models
        assert page.locator("#tokens .cse-tokens").first.locator("li").count() == 8
        read = page.locator("#tokens .cse-template").all_text_contents()
        assert read[0] == f'This sentence : "{HOSTILE}" means [MASK].'
        assert read[1] == f'This sentence of "{HOSTILE}" means [MASK].'
        first = page.locator("#tokens section").first
        expect(first.locator(".cse-note")).to_have_text(
            "This method reads no [MASK] itself; it is asked with this one."
        )


def test_hovering_over_a_map_tells_the_sentence_and_marks_it_in_all(browser, url):
    with watched(browser, url) as page:
        open_tab(page, "Clusters")
        page.get_by_label("Your lines", exact=True).check()
        page.get_by_label("Your lines (at most 500)").fill("\n".join(LINES))
        page.get_by_role("button", name="Draw maps").click()
        canvases = page.locator("#maps .cse-frame canvas")
        canvases.nth(4).wait_for()
        assert headings(page, "#maps") == [*GOOD, MARKUP, "broken"]
        assert "damaged" in page.locator("#maps .cse-failure").inner_text()
        before = [canvas.evaluate("canvas => canvas.toDataURL()") for canvas in canvases.all()]
        expected = Client(url, verbose=False).predict("lines", "\n".join(LINES), api_name="/map")
        x, y = expected["maps"]["simcse"]["xy"][0]
        canvases.first.scroll_into_view_if_needed()
        box = canvases.first.bounding_box()
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        assert page.locator("#maps .cse-tip:visible span").all_text_contents() == [HOSTILE]
        after = [canvas.evaluate("canvas => canvas.toDataURL()") for canvas in canvases.all()]
        assert all(one != other for one, other in zip(before, after, strict=True))
        page.mouse.move(5, 5)
        assert page.locator("#maps .cse-tip:visible").count() == 0
        canvases.nth(2).focus()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#maps .cse-tip:visible span").all_text_contents() == [LINES[-1]]


def test_topics_have_a_legend_and_pairs_are_drawn(browser, url):
    with watched(browser, url) as page:
        open_tab(page, "Clusters")
        page.get_by_label("Graded pairs, joined").check()
        page.get_by_role("button", name="Draw maps").click()
        legend = page.locator("#maps .cse-legend button")
        expect(legend).to_have_text(["0 unrelated", "3 close", "5 the same"])
        page.get_by_label("Demo corpus, coloured by topic").check()
        page.get_by_label("number input for Per topic").fill("10")
        page.get_by_role("button", name="Draw maps").click()
        expect(legend).to_have_count(12)
        expect(page.locator("#maps .cse-note", has_text="Trustworthiness")).to_have_count(5)  # one after the other


@pytest.mark.parametrize("width", [320, 360])  # WCAG's narrowest: 1280 at 400 %
def test_a_narrow_screen_needs_no_sideways_scrolling(browser, url, width):
    with watched(browser, url, width=width) as page:
        page.locator("#heat-maps .cse-heat").first.wait_for()
        page.locator("#models summary").first.click()
        page.locator("#models dl").first.wait_for()
        for name in TABS:
            open_tab(page, name)  # and not in a menu of those that do not fit
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        table = page.locator("#results .cse-scroll").first
        assert table.evaluate("box => box.scrollWidth > box.clientWidth")  # the figures scroll in their own box


def test_a_heading_sorts_its_table_of_results(browser, url):
    with watched(browser, url) as page:
        open_tab(page, "Results")
        table = page.locator("#results .cse-scores").first
        names = table.locator("tbody th").evaluate_all("cells => cells.map(cell => cell.dataset.value)")
        assert table.locator("caption").text_content() == "Semantic textual similarity: models by score"
        heading = table.locator("thead th", has_text="average")
        column = f"tbody td:nth-child({heading.evaluate('cell => cell.cellIndex') + 1})"

        def shown():
            return [
                float(value) for value in table.locator(column).evaluate_all("all => all.map(c => c.dataset.value)")
            ]

        before = shown()
        for direction, reverse in (("descending", True), ("ascending", False)):  # the best first
            heading.get_by_role("button").click()
            assert heading.get_attribute("aria-sort") == direction
            assert shown() == sorted(before, reverse=reverse) != before
        table.locator("thead th").first.get_by_role("button").press("Enter")
        assert table.locator("[aria-sort]").count() == 1
        assert table.locator("tbody th").evaluate_all("cells => cells.map(cell => cell.dataset.value)") == sorted(names)
        geometry = page.locator("#results-geometry + p + div .cse-scores")
        geometry.locator("thead button").nth(1).click()
        assert geometry.locator("thead th").nth(1).get_attribute("aria-sort") == "ascending"  # lower is better


def test_an_address_opens_the_page_that_it_was_copied_from(browser, url):
    with watched(browser, url) as page:
        open_tab(page, "Search")
        page.get_by_label("Query").fill("the cat & a dog?")
        page.get_by_label("number input for Results").fill("3")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(3)
        address = page.url
        assert "tab=search" in address
        shown = page.locator("#hits .cse-ranks tbody").inner_text()
    with watched(browser, address) as page:
        expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_label("Query")).to_have_value("the cat & a dog?")
        expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(3)
        assert page.locator("#hits .cse-ranks tbody").inner_text() == shown
    page = browser.new_page()  # not watched: Gradio calls it an error where a page is left
    page.set_default_timeout(WAIT)
    page.goto(address)
    expect(page.get_by_label("Query")).to_have_value("the cat & a dog?")
    expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(3)
    open_tab(page, "Tokens")
    page.wait_for_url("**tab=tokens**")
    page.go_back()
    expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")
    page.close()
