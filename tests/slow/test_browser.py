"""The page in a real browser: six tabs that show results, a quiet console, no request that leaves the machine."""

import contextlib
import csv
import json
import re
import threading
from io import BytesIO, StringIO

import numpy as np
import pytest
from app_models import GOOD, MARKUP, serving, write_model, write_models
from app_pages import NEEDS_BROWSER, TABS, WAIT, look, open_tab, unfold, watched
from barriers import COLOURS, RULES, violations
from clients import app_client
from PIL import Image
from playwright.sync_api import expect

from cse.app.drawing.distribution import in_words
from cse.app.drawing.palette import OWN
from cse.app.drawing.terms import TERMS
from cse.app.models.naming import title
from cse.app.state import encodings, own_corpora
from cse.app.state.corpora import Demo

pytestmark = NEEDS_BROWSER
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> the dog"
SHOWN = [*map(title, GOOD), MARKUP]
PAINTS = "marks => marks.map(mark => getComputedStyle(mark).backgroundColor)"
LINES = [HOSTILE, "a man is playing guitar", "the cat is eating", "a woman is happy in the rain", "they mean it"]

MARKS = """() => [...document.querySelectorAll('[data-testid=status-tracker]')].filter(
    mark => mark.checkVisibility({opacityProperty: true, visibilityProperty: true}) && mark.innerText.trim())"""


@pytest.fixture(scope="module")
def url(tmp_path_factory, bert_folder):
    folders = write_models(tmp_path_factory.mktemp("columns"), bert_folder)
    root = write_model(tmp_path_factory.mktemp("more") / "extra", bert_folder, "simcse", seed=5).parent
    with serving([str(folder) for folder in folders], root=root) as address:
        yield address


@pytest.fixture(scope="module")
def shared(browser, url):
    with watched(browser, url) as opened:
        yield opened


@pytest.fixture
def page(shared):
    """One page for the tests that need no other visitor."""
    look(shared)
    open_tab(shared, "Similarity")
    return shared


@pytest.fixture(scope="module")
def own(browser, url):
    """The page of a visitor with texts: an event costs a page more the more others it had."""
    with watched(browser, url) as opened:
        yield opened


def choose_file(page, name, content, listed=True):
    """Upload as a visitor does, by the visible field, until the page lists the file where it is `listed`.

    Its name is a label there: the text is cut before the suffix, and whole only while the upload lasts.
    """
    own = page.locator("#corpus-form")
    with page.expect_file_chooser() as opened:
        own.get_by_role("button", name="Click to upload or drop files").click()
    opened.value.set_files({"name": name, "mimeType": "text/plain", "buffer": content})
    if listed:
        own.get_by_label(name, exact=True).wait_for()


def paste(page, lines):
    """Use the lines as the visitor's own texts."""
    page.get_by_role("button", name="Paste", exact=True).click()
    page.get_by_label("Lines, one text each").fill(lines)
    page.get_by_role("button", name="Use these texts").click()
    expect(page.locator("#corpus input")).to_have_value(f"Pasted ({len(lines.splitlines())})")


def follow(page, address):
    """Have the page read an address as on opening, without a load (`cse.app.forms.links.HOOK`)."""
    page.evaluate("to => { history.pushState(null, '', to); dispatchEvent(new Event('cse-filled')); }", address)


def visible(page, button):
    """Of all tabs' buttons the one that is shown; an accordion's name ends with its arrow."""
    return page.get_by_role("button", name=re.compile(f"^{re.escape(button)}")).locator("visible=true")


def test_the_first_screen_is_filled_when_the_page_opens(page):
    assert page.locator("#similarity tbody th").all_text_contents() == [*SHOWN, "broken"]
    for number in page.locator("#similarity .cse-number").all_text_contents():
        assert -1 <= float(number) <= 1
    assert "damaged" in page.locator("#similarity .cse-failure").inner_text()
    page.locator("#all-pairs .cse-heat").wait_for()
    strip = page.locator("#models li", has_text="DCPCSE").first
    expect(strip).to_contain_text("512 trained")
    strip.get_by_role("button").click()
    expect(strip.locator("dl")).to_contain_text("Jiang, Zhang and Wang 2022")
    assert page.locator("#models li").count() == 6
    page.keyboard.press("Escape")


def test_back_from_the_first_step_is_the_opening_page_without_a_reload(page, url):
    page.evaluate("window.stayed = true")
    first, shown = page.get_by_label("Sentence B").input_value(), page.locator("#similarity tbody").inner_text()
    page.get_by_text("negation", exact=True).click()
    page.wait_for_url("**b=The+restaurant+is+not+open+on+Sundays.**")  # what "Copy link" copies
    expect(page.locator("#similarity tbody")).not_to_have_text(shown)
    open_tab(page, "Tokens")
    page.wait_for_url("**tab=tokens**")
    page.go_back()
    expect(page.get_by_role("tab", name="Similarity")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_label("Sentence B")).to_have_value("The restaurant is not open on Sundays.")
    page.go_back()
    expect(page.get_by_label("Sentence B")).to_have_value(first)
    expect(page.locator("#similarity tbody")).to_have_text(shown, use_inner_text=True)
    assert page.url.rstrip("/") == url.rstrip("/")
    page.go_forward()
    expect(page.get_by_label("Sentence B")).to_have_value("The restaurant is not open on Sundays.")
    assert page.evaluate("window.stayed")


def test_keys_open_and_close_the_meaning_of_a_term(page):
    found = TERMS["percentile"]
    button = page.locator("#similarity").get_by_role("button", name="What is a percentile?")
    sheet = page.get_by_role("dialog", name="What is a percentile?")
    table = page.locator("#similarity table")
    for width in (1280, 390):
        look(page, width)
        page.locator("#similarity .cse-scroll").focus()
        page.keyboard.press("Tab")
        expect(button).to_be_focused()
        before = table.bounding_box()
        page.keyboard.press("Enter")
        expect(sheet).to_be_visible()
        expect(sheet.locator("p")).to_have_text(found.sentence)
        expect(sheet.locator("svg")).to_be_visible()
        box = sheet.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 900
        assert table.bounding_box() == before  # nothing moves
        page.keyboard.press("Escape")
        expect(sheet).to_have_count(0)  # hidden ones have no role
        expect(button).to_be_focused()
        button.click()
        expect(sheet).to_be_visible()
        page.mouse.click(width / 2, 5)
        expect(sheet).to_have_count(0)


def test_similarity_follows_the_examples_and_the_list_and_a_refusal_leaves_no_loading_mark(page):
    page.get_by_text("negation", exact=True).click()
    expect(page.get_by_label("Sentence B")).to_have_value("The restaurant is not open on Sundays.")
    page.get_by_label("Sentence A").fill("the cat")
    page.get_by_label("Sentence B").fill("the cat")
    for patience in (5_000, 5_000, 60_000):  # in ms; a busy page may send what a field held before it was filled
        page.get_by_label("Sentence B").press("Enter")
        with contextlib.suppress(AssertionError):
            expect(page.locator("#similarity .cse-number")).to_have_text(["1.000"] * 5, timeout=patience)
            break
    expect(page.locator("#similarity .cse-number")).to_have_text(["1.000"] * 5)
    page.get_by_role("button", name="Which words matter?").click()
    expect(page.locator("#words .cse-words")).to_have_count(10)  # two of five models
    shown = page.locator("#words .cse-words").first.inner_text()
    assert re.fullmatch(r"the\s[+\u2212]?[.\d]+ cat\s[+\u2212]?[.\d]+", shown), shown
    page.get_by_label("Sentence B").fill(" ")
    page.get_by_label("Sentence B").press("Enter")
    refusal = page.locator("[role=alert]", has_text="Sentence B is empty; write a few words.")
    expect(refusal).to_be_visible()
    expect(page.get_by_label("Sentence B")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#similarity .cse-number, #words .cse-words")).to_have_count(0)  # they were another pair's
    page.wait_for_function(f"({MARKS})().length === 0")
    page.get_by_label("Sentence B").fill("the dog")
    expect(refusal).to_have_count(0)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#similarity .cse-number")).to_have_count(5)


def test_all_pairs_switch_between_models_and_read_out_a_pair_in_every_model(page, url):
    models = app_client(url).predict("\n".join(LINES), api_name="/pairs")["models"]
    cosines = {name: found["cosines"] for name, found in models.items() if name != "broken"}

    def readout(page, i, j):
        shown = page.locator("#all-pairs .cse-readout")
        expect(shown.locator(".cse-read")).to_have_text([f"{i + 1} {LINES[i]}", f"{j + 1} {LINES[j]}"])
        figures = [float(text.split()[0].replace("\u2212", "-")) for text in shown.locator("dd").all_text_contents()]
        assert figures == pytest.approx([matrix[i][j] for matrix in cosines.values()], abs=6e-4)

    page.get_by_label("Sentences, one per line").fill("\n".join(LINES))
    page.get_by_role("button", name="Compare all pairs").click()
    grid = page.locator("#all-pairs .cse-heat")
    expect(grid.locator("tbody th").first).to_have_text(f"1 {HOSTILE}")
    expect(grid.locator("td")).to_have_count(len(LINES) ** 2)
    assert "damaged" in page.locator("#all-pairs .cse-failure").inner_text()
    readout(page, 0, 1)
    page.locator("#pairs-minus").get_by_label("DCPCSE").check()
    caption = grid.locator("caption")
    expect(caption).to_have_text("Cosine of each two sentences: SimCSE minus DCPCSE")
    cells = grid.locator("td").all_text_contents()
    wanted = np.subtract(cosines["simcse"], cosines["dcpcse"]).ravel()
    shown = [float(text.replace("\u2212", "-")) for text in cells]
    assert shown == pytest.approx(wanted, abs=6e-3)
    grid.locator("tbody tr").nth(3).locator("td").nth(1).hover()
    readout(page, 3, 1)
    grid.locator("tbody tr").nth(2).locator("td").nth(2).click()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    readout(page, 1, 4)
    page.locator("#pairs-measure").get_by_label("Percentile").check()
    page.locator("#pairs-model").get_by_label("broken").check()
    expect(page.locator("#all-pairs .cse-hint")).to_have_text("No map of broken; choose another model.")
    page.locator("#pairs-model").get_by_label("ConPVP").check()
    expect(caption).to_contain_text("in percent: ConPVP minus DCPCSE")
    cells, address = grid.locator("td").all_text_contents(), page.url
    page.locator("#pairs-measure").get_by_label("Cosine").check()
    page.locator("#pairs-model").get_by_label("SimCSE").check()
    page.get_by_label("Sentences, one per line").fill("the cat\na dog")
    page.get_by_role("button", name="Compare all pairs").click()
    expect(grid.locator("td")).to_have_count(4)
    follow(page, address)
    expect(caption).to_contain_text("in percent: ConPVP minus DCPCSE")
    expect(grid.locator("td")).to_have_text(cells)


def test_a_copied_link_says_which_texts_it_leaves_out(page):
    lines = page.get_by_label("Sentences, one per line")
    for text, said in (("the cat " * 260, "Link copied, without texts of more than 2,000 characters"),
                       ("the cat", "Link copied")):  # fmt: skip
        lines.fill(f"{text}\na dog")
        page.get_by_role("button", name="Compare all pairs").click()
        expect(page.locator("#all-pairs .cse-heat tbody th").first).to_have_text(f"1 {text.strip()}")
        page.wait_for_function("said => window.cseCut === said", arg=len(text) > 2000)
        page.locator(".cse-copy").first.click()
        expect(page.locator(".cse-copy").first).to_have_text(said)


def test_search_lists_hits_of_every_model(page):
    open_tab(page, "Search")
    query = page.get_by_label("Query")
    query.fill(HOSTILE)
    query.press("Enter")
    columns = page.locator("#hits .cse-ranks thead th")
    expect(columns).to_have_count(6)
    expect(columns).to_have_text(["Sentence", *SHOWN])
    assert "damaged" in page.locator("#hits .cse-failure").inner_text()
    for model in range(5):
        assert page.locator(f"#hits td:nth-child({model + 2}) .cse-found").count() == 5
    page.locator("#hits tbody tr").nth(1).hover()
    lit = page.locator("#hits .cse-lit")
    expect(lit).to_have_count(2)  # a row and its line
    rows = lit.evaluate_all("all => all.map(part => part.dataset.row)")
    assert rows[0] == rows[1] == page.locator("#hits tbody tr").nth(1).get_attribute("data-row")
    line = page.locator("#hits g[data-row]").last
    page.mouse.move(5, 5)  # the page scrolls to what has the focus, under a pointer that stays
    line.focus()
    expect(lit.first).to_have_attribute("data-row", line.get_attribute("data-row"))
    query.fill("  ")
    query.press("Enter")
    expect(page.locator("[role=alert]", has_text="The query is empty; write a few words.")).to_be_visible()
    expect(columns).to_have_count(0)  # they were another query's


def test_tokens_are_shown_before_and_after_denoising(page):
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
        "This model reads no [MASK]: the template is only used here, to ask it for words."
    )


def test_a_narrow_screen_needs_no_sideways_scrolling(page):
    page.locator("#all-pairs .cse-heat").wait_for()
    page.locator("#models button").first.click()
    page.locator("#models dl").first.wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("tab")).to_have_text(TABS)
    for name in TABS:
        open_tab(page, name)  # and not in a menu of those that do not fit
        for width in (320, 360):  # WCAG's narrowest: 1280 at 400 %
            look(page, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    open_tab(page, "Results")
    page.evaluate("document.querySelector('#results .cse-fold').open = true")
    table = page.locator("#results .cse-scroll").first
    assert table.evaluate("box => box.scrollWidth > box.clientWidth")  # the figures scroll in their own box


def test_a_heading_sorts_its_table_of_results(page):
    open_tab(page, "Results")
    page.evaluate("document.querySelector('#results .cse-fold').open = true")
    table = page.locator("#results .cse-scores").first
    names = table.locator("tbody th").evaluate_all("cells => cells.map(cell => cell.dataset.value)")
    assert table.locator("caption").text_content() == "Semantic textual similarity: models by score"
    heading = table.locator("thead th", has_text="average")
    column = f"tbody td:nth-child({heading.evaluate('cell => cell.cellIndex') + 1})"

    def shown():
        return [float(value) for value in table.locator(column).evaluate_all("all => all.map(c => c.dataset.value)")]

    before = shown()
    for direction, reverse in (("descending", True), ("ascending", False)):  # the best first
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == direction
        assert shown() == sorted(before, reverse=reverse) != before
    table.locator("thead th").first.get_by_role("button").press("Enter")
    assert table.locator("[aria-sort]").count() == 1
    assert table.locator("tbody th").evaluate_all("cells => cells.map(cell => cell.dataset.value)") == sorted(
        names, key=str.lower
    )
    geometry = page.locator("section:has(> #results-geometry) .cse-scores")
    geometry.locator("thead button").nth(1).click()
    assert geometry.locator("thead th").nth(1).get_attribute("aria-sort") == "ascending"  # lower is better


def test_an_address_opens_the_page_that_it_was_copied_from(page, browser):
    open_tab(page, "Search")
    page.get_by_label("Query").fill("the cat & a dog?")
    unfold(page, visible(page, "Options"))
    page.get_by_label("number input for Results per model").fill("3")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(3)
    address = page.url
    assert "tab=search" in address
    shown = page.locator("#hits .cse-ranks tbody").inner_text()
    with watched(browser, address, leaves_page=True) as page:
        expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_label("Query")).to_have_value("the cat & a dog?")
        expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(3)
        assert page.locator("#hits .cse-ranks tbody").inner_text() == shown
        open_tab(page, "Tokens")
        page.wait_for_url("**tab=tokens**")
        page.go_back()
        expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")


def test_a_visitor_adds_a_model_and_takes_the_result_away(page, browser):
    visible(page, "+ model").click()
    page.get_by_label("A model: ").fill("extra")
    page.get_by_label("A model: ").press("Enter")
    visible(page, "Add it").click()
    expect(page.locator("#added")).to_contain_text("extra is on your page")
    expect(page.locator("#similarity tbody th")).to_have_text([*SHOWN, "broken", "extra"])
    wanted = [f"rgb{tuple(bytes.fromhex(colour[1:]))}" for colour in (OWN[0], OWN[2])]  # "broken" has the second
    for place in ("#models button", "#similarity tbody tr"):  # a model of one's own has one colour, too
        shown = page.locator(f"{place} .cse-chip").evaluate_all(PAINTS)
        assert [shown[4], shown[-1]] == wanted
    page.locator("#models button").last.click()
    expect(page.locator('[data-speed="extra"]')).to_contain_text("ms a sentence on this host")
    visible(page, "Export results").click()
    for _ in range(2):  # the same file again is saved again
        with page.expect_download() as saved:
            visible(page, "JSON").click()
    taken = json.loads(saved.value.path().read_text())
    assert saved.value.suggested_filename == "similarity.json"
    assert taken["added"] == ["extra"]
    assert taken["models"].keys() == taken["answer"].keys() - {"broken"} == {*GOOD, MARKUP, "extra"}
    cosines = [f"{taken['answer'][name]:.3f}" for name in (*GOOD, MARKUP, "extra")]
    assert page.locator("#similarity .cse-number").all_text_contents() == cosines
    with page.expect_download() as saved:
        visible(page, "CSV").click()
    assert saved.value.suggested_filename == "similarity.csv"
    rows = list(csv.DictReader(StringIO(saved.value.path().read_text(encoding="utf-8"))))
    assert [row["model"] for row in rows] == [*GOOD, MARKUP, "extra"]
    assert [float(row["cosine"]) for row in rows] == [taken["answer"][row["model"]] for row in rows]
    percentiles = [in_words(float(row["percentile"])) for row in rows]
    assert page.locator("#similarity td:nth-child(4)").all_text_contents() == percentiles
    expect(page.locator(".cse-taken p:visible")).to_have_text("Saved similarity.csv. Without a result: broken.")
    with page.expect_download() as saved:
        visible(page, "LaTeX").click()
    assert saved.value.suggested_filename == "similarity.tex"
    assert f"SimCSE & {taken['answer']['simcse']:.3f} &" in saved.value.path().read_text()
    for kind, start in (("SVG", b"<?xml"), ("PDF", b"%PDF"), ("PNG", b"\x89PNG")):
        with page.expect_download() as saved:
            visible(page, f"Figure ({kind})").click()
        assert saved.value.suggested_filename == f"similarity.{kind.lower()}"
        assert saved.value.path().read_bytes().startswith(start)
    assert Image.open(BytesIO(saved.value.path().read_bytes())).size[0] == round(6.3 * 300)  # two columns
    said = page.locator(".cse-taken p:visible")
    expect(said).to_contain_text(f"SimCSE (fingerprint {taken['models']['simcse']})")
    page.locator("#add-model").get_by_role("button", name="Close").click()
    open_tab(page, "Probe")
    visible(page, "Your variants").click()
    page.get_by_label("Your variants of the sentence").fill(f"{HOSTILE}\nthe cat is eating")
    visible(page, "Measure changes").click()
    expect(page.locator("#changes tbody tr").first.locator("td").first).to_have_text(HOSTILE)
    assert page.locator("#changes tbody th", has_text="yours").count() == 2
    page.wait_for_url("**variants=**")
    with watched(browser, page.url) as other:
        expect(other.locator("#changes tbody th", has_text="yours")).to_have_count(2)
        unfold(other, visible(other, "Your variants"))
        expect(other.get_by_label("Your variants of the sentence")).to_have_value(f"{HOSTILE}\nthe cat is eating")
        assert other.locator("#models li").count() == 6
    visible(page, "+ model").click()
    visible(page, "Remove mine").click()
    expect(page.locator("#models li")).to_have_count(6)
    page.locator("#add-model").get_by_role("button", name="Close").click()
    visible(page, "Show attention").click()
    expect(page.locator("#heads .cse-heads")).to_have_count(5)
    visible(page, "Look inside").click()
    page.get_by_label("1", exact=True).check()
    expect(page.locator("#xray tr.cse-mean")).to_contain_text("chosen")


def test_a_wrong_file_is_told_where_it_was_given_and_a_table_asks_for_its_columns(own):
    open_tab(own, "Search")
    own.get_by_role("button", name="Upload", exact=True).click()
    form, said, use = own.locator("#corpus-form"), own.locator("#corpus-said"), "Use these texts"
    choose_file(own, "x.exe", b"MZ\x90\0\3\0\0\0\4")
    expect(said.get_by_role("alert")).to_contain_text("x.exe: line 1 holds a NUL byte; give a text file")
    form.get_by_label("Clear").click()
    table = f"id,body,kind\n1,the cat is eating,pet of the house\n2,{HOSTILE},tool of the trade\n"
    choose_file(own, "pets.csv", table.encode())
    cells = ["1", "the cat is eating", "pet of the house", "2", HOSTILE, "tool of the trade"]
    expect(form.locator(".cse-table tbody td")).to_have_text(cells)
    own.get_by_role("button", name=use).click()
    expect(said).to_contain_text("pets.csv: choose the column of the texts: id, body or kind.")
    form.get_by_label("Column of the texts").click()
    own.get_by_role("option", name="body").click()
    form.get_by_label("Column of labels").click()
    own.get_by_role("option", name="kind").last.click()
    own.get_by_role("button", name=use).click()  # the file is still there
    expect(own.locator("#hits .cse-ranks tbody tr")).to_have_count(2)  # the query is asked again by itself
    expect(own.locator("#hits tbody th", has_text=HOSTILE)).to_have_count(1)
    assert own.locator("#hits .cse-on-map").count() == 0
    example = own.get_by_role("button", name="I want to save more money every month.")
    expect(example).to_be_hidden()  # it asks the demo corpus
    open_tab(own, "Similarity")
    own.get_by_role("button", name="Random pair of the corpus").click()
    expect(own.get_by_label("Sentence A")).to_have_value(re.compile("eating|alert"))
    own.locator("#corpus-bar").get_by_role("button", name="Export", exact=True).click()
    for kind, name in (("Vectors (.npy)", "pets-simcse.npy"), ("Table (.csv)", "pets.csv")):
        with own.expect_download() as saved:
            own.get_by_role("button", name=kind).click()
        assert saved.value.suggested_filename == name
    own.get_by_role("button", name="Remove", exact=True).click()
    undo, said = own.get_by_role("button", name="Undo", exact=True), own.locator("#corpus-gone")
    expect(undo).to_be_focused()
    expect(said.get_by_role("status")).to_have_text("pets.csv (2) is removed; Undo brings it back for 10 seconds.")
    expect(own.locator("#corpus input")).to_have_value(f"Demo ({len(Demo().sentences):,})")
    own.keyboard.press("Enter")
    expect(own.locator("#corpus input")).to_have_value("pets.csv (2)")
    expect(said).to_have_text("pets.csv (2) is back.")
    expect(undo).to_be_hidden()
    own.get_by_role("button", name="Remove", exact=True).click()
    expect(own.locator("#corpus input")).to_have_value(f"Demo ({len(Demo().sentences):,})")
    expect(undo).to_be_hidden()  # after its time
    expect(said).to_have_text("")
    open_tab(own, "Search")
    expect(example).to_be_visible()


def test_a_refused_corpus_is_told_beside_what_was_pressed_until_another_is_chosen(own):
    refused = {
        "Similarity": ("Near pair of the corpus", "Pasted (1) has one text; a pair needs two."),
        "Results": ("Score the corpus", "Pasted (1) has no labels."),
        "Near-duplicates": ("Find groups", "near-duplicates need at least 2"),
        "Choose for my data": ("Start voting", "a comparison needs at least 10"),
    }
    pair = [own.get_by_label(f"Sentence {which}").input_value() for which in "AB"]
    lines, bar = own.locator(".cse-refusal"), own.locator("#corpus-bar")
    paste(own, "only one text")
    expect(own.locator("#corpus-status")).to_contain_text("damaged")  # of the last model, which stays
    height = bar.bounding_box()["height"]
    for tab, (button, reason) in refused.items():
        open_tab(own, tab)
        own.get_by_role("button", name=button, exact=True).click()
        expect(lines.filter(has_text=reason)).to_be_in_viewport(ratio=1)
    assert bar.bounding_box()["height"] == height
    assert [own.get_by_label(f"Sentence {which}").input_value() for which in "AB"] == pair
    expect(lines).to_have_count(len(refused))
    paste(own, "another text\nof two")
    expect(lines).to_have_count(0)
    open_tab(own, "Results")
    own.get_by_role("button", name="Score the corpus").click()
    expect(lines.filter(has_text="Pasted (2) has no labels.")).to_be_in_viewport(ratio=1)
    own.locator("#corpus input").click()
    own.get_by_role("option", name="Demo").click()
    expect(lines).to_have_count(0)


def test_maps_follow_by_themselves_as_further_models_have_encoded_the_texts(own, monkeypatch):
    go_on, block, lines = threading.Semaphore(0), own_corpora.encode_block, [f"{line} today" for line in LINES]

    def held(models, texts, *rest):
        if texts == lines:  # not those of an earlier test
            assert go_on.acquire(timeout=WAIT / 1000)
        block(models, texts, *rest)

    monkeypatch.setattr(own_corpora, "encode_block", held)
    open_tab(own, "Clusters")
    paste(own, "\n".join(lines))
    go_on.release()  # all texts of the first model
    expect(own.locator("#corpus-status")).to_contain_text(f"{SHOWN[0]} ready")
    own.get_by_role("button", name="Draw maps").click()
    drawn, failed = own.locator("#maps .cse-small"), own.locator("#maps .cse-failure")
    expect(drawn).to_have_text([SHOWN[0]])
    expect(failed).to_have_count(0)
    go_on.release()
    expect(drawn).to_have_text(SHOWN[:2])
    drawn.nth(1).click()
    go_on.release(6)
    expect(failed).to_have_count(1)
    expect(drawn).to_have_count(5)
    expect(drawn.nth(1)).to_have_attribute("aria-pressed", "true")


def test_axe_finds_nothing_where_a_model_has_no_result(own):
    open_tab(own, "Similarity")
    expect(own.locator("#all-pairs .cse-failure")).to_be_visible()
    own.get_by_label("Sentence B").fill("")
    own.get_by_label("Sentence B").press("Enter")
    expect(own.locator("[role=alert]", has_text="Sentence B is empty")).to_be_visible()
    note = own.locator("#results").get_by_text(re.compile("No shipped results of .*broken"))
    panel = own.get_by_role("tabpanel")
    for scheme, parts, rules in (("light", [], RULES), ("dark", [panel], COLOURS)):
        look(own, color_scheme=scheme)
        open_tab(own, "Similarity")
        assert violations(own, *parts, rules=rules) == [], scheme
        open_tab(own, "Results")
        assert violations(own, note, rules=rules) == [], scheme


def test_own_texts_outlive_a_reload_while_they_are_encoded_and_back_and_another_tab(browser, url, monkeypatch):
    arrived, go_on, block = threading.Semaphore(0), threading.Semaphore(0), own_corpora.encode_block

    def held(*given):
        arrived.release()
        assert go_on.acquire(timeout=60)
        block(*given)

    monkeypatch.setattr(own_corpora, "encode_block", held)
    monkeypatch.setattr(encodings, "BLOCK", 1)
    context = browser.new_context()
    page, rows = context.new_page(), "#hits .cse-ranks tbody tr"  # not watched: pages are left
    page.set_default_timeout(WAIT)
    page.goto(f"{url}?tab=search&q=a+sad+dog&corpus=demo")
    expect(page.locator("#hits td:nth-child(2) .cse-found")).to_have_count(5)
    paste(page, "\n".join(LINES))
    assert arrived.acquire(timeout=60)
    go_on.release()  # one text of the first model
    expect(page.locator("#corpus-status")).to_contain_text(f"{SHOWN[0]} 1 of 5")
    expect(page.locator("#hits")).to_contain_text(f"{SHOWN[0]} has encoded 20 % of your texts; try again in")
    page.wait_for_url("**corpus=own**")
    page.reload()
    expect(page.locator("#corpus-status")).to_contain_text(f"{SHOWN[0]} 1 of 5")
    go_on.release(6 * len(LINES))
    expect(page.locator(rows)).to_have_count(len(LINES))
    page.evaluate("window.stayed = true")
    page.go_back()
    expect(page.locator("#corpus input")).to_have_value(f"Demo ({len(Demo().sentences):,})")
    expect(page.locator("#hits tbody th", has_text=LINES[2])).to_have_count(0)
    page.go_forward()
    expect(page.locator(rows)).to_have_count(len(LINES))
    expect(page.locator("#corpus input")).to_have_value("Pasted (5)")
    assert page.evaluate("window.stayed")
    other = context.new_page()
    other.goto(url)
    expect(other.locator("#corpus input")).to_have_value("Pasted (5)")
    context.close()
