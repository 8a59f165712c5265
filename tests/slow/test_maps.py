"""The Clusters tab in a real browser: maps are read, coloured, filtered, described and taken away."""

import csv
import re
from contextlib import suppress
from io import StringIO
from itertools import combinations

import numpy as np
import pytest
from app_models import GOOD, MARKUP, serving, write_models
from app_pages import NEEDS_BROWSER, look, open_tab, unfold, watched
from clients import app_client
from playwright.sync_api import expect

from cse.app.models.naming import title
from cse.app.state.corpora import Demo

pytestmark = NEEDS_BROWSER
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> the dog"
LINES = [HOSTILE, "a man is playing guitar", "the cat is eating", "a woman is happy in the rain", "they mean it"]
MARGIN = 0.04  # of static/map/view.js


@pytest.fixture(scope="module")
def url(tmp_path_factory, bert_folder):
    with serving([str(folder) for folder in write_models(tmp_path_factory.mktemp("columns"), bert_folder)]) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser, url):
    with watched(browser, url, has_touch=True) as opened:
        open_tab(opened, "Clusters")
        unfold(opened, opened.get_by_role("button", name="Texts and settings"))
        yield opened


@pytest.fixture(scope="module")
def pinned(browser, url):
    """A page opened at an address that pins a sentence."""
    with watched(browser, f"{url}?tab=clusters&most=120&pin=57", 390, has_touch=True, reduced_motion="reduce") as page:
        yield page


def draw(page, most):
    """Draw maps of so many texts, and wait until they are shown."""
    page.get_by_label("Points at most").fill(str(most))
    page.get_by_role("button", name="Draw maps").click()
    shown = """most => [...document.querySelectorAll('#maps .cse-legend small')]
      .reduce((sum, each) => sum + parseInt(each.textContent), 0) === most"""
    page.wait_for_function(shown, arg=most)


def spots(page, maps):
    """Where the points of each map are on the page while all of it is seen: all maps share one scale."""
    page.locator("#maps .cse-frame").scroll_into_view_if_needed()
    box = page.locator("#maps .cse-frame canvas").bounding_box()
    points = {name: np.array(drawn["xy"]) for name, drawn in maps.items() if "xy" in drawn}
    both = np.concatenate(list(points.values()))
    least, length = both.min(axis=0) - MARGIN, np.ptp(both, axis=0) + 2 * MARGIN
    size = np.array([box["width"], box["height"]])
    side = (size / length).min()
    corner = least + (length - size / side) / 2
    return {name: (xy - corner) * side + [box["x"], box["y"]] for name, xy in points.items()}


def hover(page, maps, name, tip, text):
    """Point at a map's first point until its text is shown: what is drawn above the map may move it meanwhile."""
    for patience in (2_000, 5_000, 15_000, 60_000):
        page.mouse.move(*spots(page, maps)[name][0])
        with suppress(AssertionError):
            expect(tip).to_have_text(text, timeout=patience)
            return
    expect(tip).to_have_text(text, timeout=1)


def answered(page):
    """The words of the selection, once the server has described it."""
    return page.locator("#maps .cse-marking")


def test_a_map_of_more_texts_follows_one_of_fewer_and_is_read_pinned_zoomed_and_described(page, url):
    client = app_client(url)
    found = client.predict("corpus", most=120, api_name="/map")
    maps, texts = found["maps"], found["texts"]
    draw(page, 100)
    draw(page, 120)
    small, tip, quote = (page.locator(f"#maps {each}") for each in (".cse-small", ".cse-tip span", ".cse-quote"))
    expect(small).to_have_text([*map(title, GOOD), MARKUP])
    assert "damaged" in page.locator("#maps .cse-failure").inner_text()
    expect(page.locator("#maps .cse-faithful tbody tr")).to_have_count(5)
    hover(page, maps, GOOD[0], tip, texts[0])
    page.mouse.wheel(0, -600)  # the point under the pointer stays there
    expect(page.get_by_role("button", name="Show all")).to_be_enabled()
    expect(tip).to_have_text(texts[0])
    page.mouse.click(*spots(page, maps)[GOOD[0]][0])
    page.keyboard.press("0")
    expect(page.get_by_role("button", name="Show all")).to_be_disabled()
    expect(quote).to_have_text(texts[0])
    shown = page.locator("#maps .cse-texts li").all()
    near = {name: maps[name]["near"][0] for name in (*GOOD, MARKUP)}
    assert len(shown) == len({row for places in near.values() for row in places})
    for item in shown:
        index = texts.index(item.locator("button").inner_text())
        ranks = [f"{title(name)} {places.index(index) + 1}" for name, places in near.items() if index in places]
        only = "only " if len(ranks) == 1 else ""
        assert item.locator("small span").all_text_contents() == [f"{only}{rank}" for rank in ranks]
    page.evaluate("""() => { window.glided = 0; new MutationObserver(() => window.glided += 1).observe(
      document.querySelector('#maps .cse-maps'), {attributes: true, attributeFilter: ['data-gliding']}); }""")
    small.nth(1).click()
    expect(small.nth(1)).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("window.glided && !document.querySelector('[data-gliding]')")
    hover(page, maps, GOOD[1], tip, texts[0])
    page.touchscreen.tap(*spots(page, maps)[GOOD[1]][1])  # a finger that is lifted unpins nothing
    expect(quote).to_have_text(texts[1])
    page.locator("#maps .cse-frame canvas").focus()
    page.keyboard.press("Escape")
    expect(quote).to_have_count(0)
    groups = maps[GOOD[1]]["groups"]
    page.locator("#maps .cse-legend button").first.click()
    members = [row for row, of in enumerate(groups["of"]) if of == 0]
    told = client.predict(members, GOOD[1], most=120, api_name="/selection")
    expect(answered(page)).to_have_text(" · ".join(told["words"]))
    listed = [page.locator("#maps .cse-texts").nth(place).locator("button") for place in (0, 1)]
    for place, rows in zip(listed, (told["typical"], told["odd"]), strict=True):
        assert place.all_text_contents() == [texts[row] for row in rows]
    with page.expect_download() as saved:
        page.get_by_role("button", name="Rows as CSV").click()
    rows = list(csv.DictReader(StringIO(saved.value.path().read_text(encoding="utf-8"))))
    assert [(row["text"], row["label"]) for row in rows] == [(texts[row], found["labels"][row]) for row in members]
    assert {row[f"group of {GOOD[1]}"] for row in rows} == {"1"}
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Lasso").click()
    box = page.locator("#maps .cse-frame canvas").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    page.mouse.down()
    for across, down in ((1, 0), (1, 1), (0, 1)):
        page.mouse.move(box["x"] + 1 + across * (box["width"] - 2), box["y"] + 1 + down * (box["height"] - 2))
    page.mouse.up()
    expect(page.locator("#maps .cse-tools [role=status]")).to_have_text("120 of 120: lasso of 120")
    for by in ("length", "differing 0", "lost", "label"):
        page.locator("#maps select").select_option(by)
        sizes = page.locator("#maps .cse-legend small").all_text_contents()
        assert sum(map(int, sizes)) == 120, by


def test_a_visitors_texts_are_drawn_as_text(page):
    page.get_by_role("button", name="Paste").click()
    page.get_by_label("Lines, one text each").fill("\n".join(LINES))
    page.get_by_role("button", name="Use these texts").click()
    expect(page.locator("#maps .cse-small")).to_have_count(0)  # the maps were of another corpus
    status = page.locator("#corpus-status")
    expect(status).to_contain_text("damaged")
    expect(status).not_to_have_text(re.compile("waits|to go"))
    page.get_by_role("button", name="Draw maps").click()
    expect(page.locator("#maps .cse-small")).to_have_count(5)
    expect(page.locator("#maps .cse-scores-part")).to_contain_text("No scores of fewer than ten points")
    expect(page.locator("#maps .cse-scores-part")).not_to_contain_text("nearest texts")  # of five texts each is near
    legend = page.locator("#maps .cse-legend-part h3")
    expect(legend).to_have_text("2 groups by k-means, at most half as many as texts")
    page.get_by_label("Groups", exact=True).fill("1")
    page.get_by_role("button", name="Draw maps").click()
    expect(legend).to_have_text("1 group by k-means")
    page.get_by_role("searchbox").fill("THE dog")
    expect(page.locator("#maps .cse-texts button").first).to_have_text(HOSTILE)


def test_the_neighbours_of_a_pinned_point_are_in_view_on_a_phone(pinned):
    pinned.locator("#maps .cse-frame").scroll_into_view_if_needed()
    for each in (".cse-quote", ".cse-texts li >> nth=0", ".cse-texts li >> nth=1"):
        expect(pinned.locator(f"#maps {each}")).to_be_in_viewport(ratio=0.9)


def test_labels_have_names_and_an_address_or_another_tab_pins_a_sentence(pinned):
    page, sentences = pinned, Demo().sentences
    look(page)
    legend, quote = page.locator("#maps .cse-legend button"), page.locator("#maps .cse-quote")
    expect(page.locator("#maps .cse-faithful tbody tr")).to_have_count(5)  # one after the other
    expect(quote).to_have_text(sentences[57])
    page.locator("#maps select").select_option("label")
    expect(legend).to_have_count(12)
    names = [name.bounding_box() for name in page.locator("#maps .cse-name:visible").all()]
    assert len(names) >= 6
    for one, other in combinations(names, 2):
        left, right = sorted((one, other), key=lambda name: name["x"])
        assert left["x"] + left["width"] <= right["x"] + 1 or abs(one["y"] - other["y"]) >= one["height"] - 1
    page.locator("#maps .cse-texts button").first.click()
    expect(quote).not_to_have_text(sentences[57])
    page.wait_for_url(lambda address: "pin=57" not in address and "pin=" in address)
    page.get_by_role("button", name="Unpin").click()
    expect(page.locator("#maps .cse-details-part")).to_be_empty()
    page.locator("#maps .cse-small").nth(1).click()
    assert page.locator("[data-gliding]").count() == 0  # nothing glides for who asks for that
    open_tab(page, "Search")
    page.evaluate("cseShowOnMap(3)")
    expect(quote).to_have_text(sentences[3])
    page.wait_for_url("**tab=clusters**pin=3**")
    page.get_by_role("button", name="Texts and settings").click()
    page.get_by_label("Graded pairs, joined by lines").check()
    expect(quote).to_have_count(0)
    page.get_by_role("button", name="Draw maps").click()
    expect(legend.locator("span")).to_have_text(["0 unrelated", "3 close", "5 the same"])


def test_groups_of_texts_without_spaces_say_how_their_words_were_cut_and_marks_are_found_in_any_form(page):
    page.get_by_role("button", name="Paste").click()
    lines = ["送餐太慢了", "送餐很快", "米饭太硬", "米饭很软", "un e\u0301te\u0301 chaud"]
    page.get_by_label("Lines, one text each").fill("\n".join(lines))
    page.get_by_role("button", name="Use these texts").click()
    expect(page.locator("#corpus-status")).not_to_have_text(re.compile("waits|to go"))
    expect(page.locator("#maps .cse-small")).to_have_count(0)
    page.get_by_role("button", name="Draw maps").click()
    legend = page.locator("#maps .cse-legend-part h3")
    expect(legend).to_contain_text("Chinese words are character pairs")
    page.get_by_role("searchbox").fill("ÉTÉ")
    expect(page.locator("#maps .cse-tools [role=status]")).to_contain_text("1 of 5")
