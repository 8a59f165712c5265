"""The page in a real browser: six tabs that show results, a quiet console, no request that leaves the machine."""

from itertools import combinations

import pytest
from app_models import GOOD, MARKUP, serving, write_models
from app_pages import NEEDS_BROWSER, TABS, WAIT, chromium, open_tab, watched
from gradio_client import Client
from playwright.sync_api import expect

from ui.corpora import Demo

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
        columns = page.locator("#hits thead th")
        expect(columns).to_have_count(6)
        assert [text.split("Flat")[0] for text in columns.all_text_contents()] == ["Sentence", *GOOD, MARKUP]
        assert "damaged" in page.locator("#hits .cse-failure").inner_text()
        for model in range(5):
            assert page.locator(f"#hits td:nth-child({model + 2}) .cse-found").count() == 5
        query.fill("  ")
        query.press("Enter")
        page.get_by_text("The query is empty; write a few words.").wait_for()
        expect(columns).to_have_count(6)


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


def spot(page, xy):
    """Where a point of the large map is on the page while all of it is seen."""
    page.locator("#maps .cse-frame").scroll_into_view_if_needed()
    box = page.locator("#maps .cse-frame canvas").bounding_box()
    return box["x"] + xy[0] * box["width"], box["y"] + xy[1] * box["height"]


def test_a_map_is_read_pinned_zoomed_searched_and_circled(browser, url):
    expected = Client(url, verbose=False).predict("lines", "\n".join(LINES), api_name="/map")["maps"]
    one, other = (expected[name]["xy"] for name in GOOD[:2])
    with watched(browser, url, has_touch=True) as page:
        open_tab(page, "Clusters")
        page.get_by_label("Your lines", exact=True).check()
        expect(page.locator("#maps")).to_have_text("Draw maps shows these sentences.")
        page.get_by_label("Your lines (at most 500)").fill("\n".join(LINES))
        page.get_by_role("button", name="Draw maps").click()
        small, tip, pinned = (page.locator(f"#maps {each}") for each in (".cse-small", ".cse-tip span", ".cse-near"))
        expect(small).to_have_text([*GOOD, MARKUP])
        assert "damaged" in page.locator("#maps .cse-failure").inner_text()
        expect(page.locator("#maps .cse-scores-part")).to_contain_text("No scores of fewer than ten points")
        page.mouse.move(*spot(page, one[0]))
        expect(tip).to_have_text(HOSTILE)
        page.mouse.wheel(0, -600)  # the point under the pointer stays there
        expect(page.get_by_role("button", name="Show all")).to_be_enabled()
        expect(tip).to_have_text(HOSTILE)
        page.mouse.click(*spot(page, one[0]))
        page.keyboard.press("0")
        expect(page.get_by_role("button", name="Show all")).to_be_disabled()
        page.mouse.move(5, 5)
        expect(tip).to_be_hidden()
        expect(pinned.locator("tbody th")).to_have_count(4)  # all others, in an order of each model's own
        ranks = [row.locator("td").all_text_contents() for row in pinned.locator("tbody tr").all()]
        near = [expected[name]["near"][0] for name in (*GOOD, MARKUP)]
        shown = pinned.locator("tbody th button").all_text_contents()
        places = [int(text.split()[0]) - 1 for text in shown]  # own lines have numbers
        assert ranks == [[str(list_.index(place) + 1) for list_ in near] for place in places]
        page.evaluate("""() => { window.glided = 0; new MutationObserver(() => window.glided += 1).observe(
          document.querySelector('#maps .cse-maps'), {attributes: true, attributeFilter: ['data-gliding']}); }""")
        small.nth(1).click()
        expect(small.nth(1)).to_have_attribute("aria-pressed", "true")
        page.wait_for_function("window.glided && !document.querySelector('[data-gliding]')")
        page.mouse.move(*spot(page, other[0]))
        expect(tip).to_have_text(HOSTILE)
        page.locator("#maps .cse-frame canvas").focus()
        page.keyboard.press("Escape")
        expect(pinned).to_have_count(0)
        page.mouse.move(5, 5)
        page.mouse.move(*spot(page, other[0]))
        expect(tip).to_have_text(HOSTILE)
        right = [(x - other[0][0], abs(y - other[0][1]), place) for place, (x, y) in enumerate(other)]
        ahead = [(x * x + y * y + 9 * (y > x), place) for x, y, place in right if x > 0]
        page.keyboard.press("ArrowRight")
        expect(tip).to_have_text(LINES[min(ahead)[1]] if ahead else HOSTILE)
        page.keyboard.press("Enter")
        expect(page.locator("#maps .cse-quote")).to_have_text(LINES[min(ahead)[1]] if ahead else HOSTILE)
        page.touchscreen.tap(*spot(page, other[1]))  # a finger that is lifted unpins nothing
        expect(page.locator("#maps .cse-quote")).to_have_text(LINES[1])
        page.get_by_role("searchbox").fill("the EATING")
        expect(page.locator("#maps .cse-tools [role=status]")).to_have_text("1 found")
        page.get_by_role("button", name="Lasso").click()
        page.mouse.move(*spot(page, (0.001, 0.001)))
        page.mouse.down()
        for corner in ((0.999, 0.001), (0.999, 0.999), (0.001, 0.999)):
            page.mouse.move(*spot(page, corner))
        page.mouse.up()
        expect(page.locator("#maps .cse-circled li")).to_have_count(len(LINES))


def test_topics_have_names_and_an_address_or_another_tab_pins_a_sentence(browser, url):
    sentences = Demo().sentences
    with watched(browser, f"{url}?tab=clusters&per_topic=10&pin=57", reduced_motion="reduce") as page:
        legend, quote = page.locator("#maps .cse-legend button"), page.locator("#maps .cse-quote")
        expect(page.locator("#maps .cse-faithful tbody tr")).to_have_count(5)  # one after the other
        expect(quote).to_have_text(sentences[57])
        expect(legend).to_have_count(12)
        names = [name.bounding_box() for name in page.locator("#maps .cse-name:visible").all()]
        assert len(names) >= 6
        for one, other in combinations(names, 2):
            left, right = sorted((one, other), key=lambda name: name["x"])
            assert left["x"] + left["width"] <= right["x"] + 1 or abs(one["y"] - other["y"]) >= one["height"] - 1
        assert "only " in page.locator("#maps .cse-near").inner_text()
        page.locator("#maps .cse-near button").first.click()
        expect(quote).not_to_have_text(sentences[57])
        page.wait_for_url(lambda address: "pin=57" not in address and "pin=" in address)
        page.locator("#maps .cse-small").nth(1).click()
        assert page.locator("[data-gliding]").count() == 0  # nothing glides for who asks for that
        open_tab(page, "Search")
        page.evaluate("cseShowOnMap(3)")
        expect(quote).to_have_text(sentences[3])
        page.wait_for_url("**tab=clusters**pin=3**")
        page.get_by_label("Graded pairs, joined").check()
        expect(quote).to_have_count(0)
        page.get_by_role("button", name="Draw maps").click()
        expect(legend).to_have_text(["0 unrelated", "3 close", "5 the same"])


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
        page.get_by_role("button", name="Search").click()
        expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(3)
        address = page.url
        assert "tab=search" in address
        shown = page.locator("#hits tbody").inner_text()
    with watched(browser, address) as page:
        expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_label("Query")).to_have_value("the cat & a dog?")
        expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(3)
        assert page.locator("#hits tbody").inner_text() == shown
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
