"""Clusters in a real browser: maps side by side are linked, by pointer, finger and key, and what is beside them too."""

import csv
import re
from io import StringIO

import numpy as np
import pytest
from app_models import GOOD, MARKUP, serving, write_models
from app_pages import NEEDS_BROWSER, WAIT, look, slowly, watched
from barriers import COLOURS, violations
from clients import app_client
from playwright.sync_api import expect

from cse.app.models.naming import title

pytestmark = NEEDS_BROWSER
MARGIN = 0.04  # of static/map.js
ADDRESS = "?tab=clusters&most=120&groups=6&seed=0"
LEGEND = "#maps .cse-legend button"
TWICE = """(field, values) => values.forEach((value, place) => setTimeout(() => {
  field.value = value;
  field.dispatchEvent(new Event('change', {bubbles: true}));
}, 100 * place))"""
BOTH = """() => [...document.querySelectorAll('#duplicate-groups [data-reject]')].slice(0, 2).forEach(
  (box, place) => setTimeout(() => box.click(), 100 * place))"""


@pytest.fixture(scope="module")
def url(tmp_path_factory, bert_folder):
    with serving([str(folder) for folder in write_models(tmp_path_factory.mktemp("columns"), bert_folder)]) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser, url):
    """The place, opened by its address: its maps are drawn without a press."""
    with watched(browser, f"{url}{ADDRESS}", width=1280, height=720, has_touch=True) as opened:
        drawn(opened)
        yield opened


@pytest.fixture(scope="module")
def maps(url):
    return app_client(url).predict(most=120, groups=6, api_name="/map")


def drawn(page):
    """Wait until all models have their maps."""
    page.wait_for_function(
        "[...document.querySelectorAll('#maps .cse-pane select')[0]?.options ?? []].length === 5", timeout=3 * WAIT
    )
    expect(page.locator("#map-status p")).to_have_count(0)


def spots(page, maps, number):
    """Where the points of a map are on the page while all of it is seen: all maps share one scale."""
    frames, points = page.locator("#maps .cse-frame canvas"), {}
    box = frames.nth(number).bounding_box()
    points = {name: np.array(made["xy"]) for name, made in maps["maps"].items() if "xy" in made}
    both = np.concatenate(list(points.values()))
    least, length = both.min(axis=0) - MARGIN, np.ptp(both, axis=0) + 2 * MARGIN
    size = np.array([box["width"], box["height"]])
    side = (size / length).min()
    corner = least + (length - size / side) / 2
    return (points[GOOD[number]] - corner) * side + [box["x"], box["y"]]


def view(page, name):
    page.locator("#clusters-views label", has_text=name).click()


def count(page):
    return page.locator(".cse-folds [role=status]")


def test_two_maps_of_one_size_are_drawn_at_once_and_a_broken_model_is_told(page):
    boxes = [each.bounding_box() for each in page.locator("#maps .cse-frame canvas").all()]
    assert len(boxes) == 2
    for side in ("y", "width", "height"):
        assert boxes[0][side] == pytest.approx(boxes[1][side], abs=0.5)
    assert [each.input_value() for each in page.locator("#maps .cse-pane select").all()] == list(GOOD[:2])
    expect(page.locator("#map")).to_contain_text("damaged")
    page.locator("#map summary", has_text="continuity").click()
    expect(page.locator("#map .cse-faithful tbody th")).to_have_text([*map(title, GOOD), MARKUP])


def test_a_point_is_read_on_a_map_pinned_on_all_and_reached_by_keys(page, maps):
    tip, quote = page.locator("#maps .cse-tip span:visible"), page.locator("#pinned .cse-quote")
    page.mouse.move(*spots(page, maps, 1)[0])
    expect(tip).to_have_text(maps["texts"][0])
    page.mouse.wheel(0, -600)  # the point under the pointer stays there, and the other map follows
    expect(page.get_by_role("button", name="Show all")).to_be_visible()
    expect(tip).to_have_text(maps["texts"][0])
    page.mouse.click(*spots(page, maps, 1)[0])
    expect(quote).to_have_text(maps["texts"][0])
    expect(page).to_have_url(re.compile("pin=0"))
    near = {row for made in maps["maps"].values() if "near" in made for row in made["near"][0]}
    expect(page.locator("#pinned li")).to_have_count(len(near))
    canvas = page.locator("#maps .cse-frame canvas").first
    canvas.focus()
    canvas.press("0")
    canvas.press("Escape")
    expect(quote).to_have_count(0)
    canvas.press("ArrowRight")
    text = tip.inner_text()
    canvas.press("Enter")
    expect(quote).to_have_text(text)
    page.touchscreen.tap(*spots(page, maps, 0)[5])
    expect(quote).to_have_text(maps["texts"][5])
    page.get_by_role("button", name="Unpin", exact=True).click()


def test_filters_add_up_go_to_all_maps_and_select_rows(page, maps):
    view(page, "Selection")
    page.get_by_placeholder("words").fill("a")
    expect(count(page)).to_have_text(f"{sum('a' in text.lower() for text in maps['texts'])} of 120: “a”")
    groups = maps["maps"][GOOD[0]]["groups"]
    rows = [row for row, group in enumerate(groups["of"]) if group == 0 and "a" in maps["texts"][row].lower()]
    page.get_by_text("Legend", exact=True).click()
    page.locator(LEGEND).first.click()
    expect(count(page)).to_contain_text(f"{len(rows)} of 120")
    expect(page.locator("#selection tbody tr")).to_have_count(len(rows))
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        saved = list(csv.DictReader(StringIO(file.read())))
    assert [line["text"] for line in saved] == [maps["texts"][row] for row in rows]
    assert {line["group of SimCSE"] for line in saved} == {" ".join(groups["words"][0][:3])}
    for left in ("“a”", ""):
        page.get_by_role("button", name="Undo", exact=True).click()
        expect(count(page)).to_have_text(re.compile(f"{left}$"))
    page.keyboard.down("Shift")
    box = page.locator("#maps .cse-frame canvas").nth(1).bounding_box()
    for number, (across, below) in enumerate(((0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99))):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + below * box["height"])
        if not number:
            page.mouse.down()
    page.mouse.up()
    page.keyboard.up("Shift")
    expect(count(page)).to_have_text("120 of 120: lasso of 120")
    expect(page.locator("#selection .cse-count")).to_contain_text("120 texts")
    page.get_by_role("button", name="Clear", exact=True).click()


def test_bars_of_changes_filter_both_maps_and_another_model_is_compared(page, browser):
    view(page, "Changes")
    bar = page.locator("#neighbours [data-shared]").nth(1)
    texts = int(bar.locator("small").inner_text())
    bar.click()
    expect(count(page)).to_have_text(f"{texts} of 120: 1 of 5 shared")
    expect(bar).to_have_attribute("aria-pressed", "true")
    page.locator("#maps .cse-pane select").nth(1).select_option("conpvp")
    expect(page.locator("#neighbours .cse-says")).to_contain_text("SimCSE and ConPVP differ")
    expect(page).to_have_url(re.compile("maps=simcse,conpvp"))
    page.locator("#maps .cse-narrow").select_option("4")
    heights = {round(each.bounding_box()["height"]) for each in page.locator("#maps .cse-frame canvas").all()}
    assert (page.locator("#maps .cse-frame canvas").count(), len(heights)) == (4, 1)
    page.locator("#maps .cse-narrow").select_option("1")
    page.wait_for_url(re.compile(r"maps=simcse(&|$)"))
    with watched(browser, page.url, width=1280, height=720) as other:
        expect(other.locator("#maps .cse-narrow")).to_have_value("1")
    page.locator("#maps .cse-narrow").select_option("2")


def test_a_link_opens_the_view_and_the_filters_and_another_colour_leaves_them(page, browser, url):
    view(page, "Groups")
    page.locator("#groups summary").first.click()
    name = page.locator("#groups summary b").first.inner_text()
    expect(count(page)).to_have_text(re.compile(f"of 120: {name}$"))
    shown = count(page).inner_text()
    colour = page.locator("#maps .cse-tools select").nth(1)
    with slowly(page):
        colour.evaluate(TWICE, ["Disagreement", "Length"])
        page.wait_for_url("**colour=Length**")  # and not the first of the two
    expect(count(page)).to_have_text(shown)
    expect(page.locator("#groups .cse-key").first).to_be_hidden()  # the legend has other colours
    view(page, "Changes")
    page.wait_for_url("**only=**view=Changes**")
    with watched(browser, page.url, width=1280, height=844) as other:
        expect(count(other)).to_have_text(shown)
        expect(other.locator("#neighbours [data-shared]").first).to_be_visible()
        expect(other.locator("#groups")).to_be_hidden()
    colour.select_option("Group")
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page).not_to_have_url(re.compile("only="))


def test_near_duplicates_follow_the_slider_and_a_group_is_rejected(page):
    view(page, "Near-duplicates")
    said = page.locator("#duplicate-numbers .cse-says")
    expect(said).to_contain_text("wrong links to expect by chance")
    slider = page.locator("#strictness input[type=range]")
    advised = said.inner_text()
    slider.focus()
    slider.press("Home")
    expect(said).not_to_have_text(advised)
    box = page.locator("#duplicate-groups [data-reject]").first
    expect(box).to_be_checked()
    gone = int(re.match(r"\d+", said.inner_text())[0])
    box.press("Space")
    expect(said).not_to_have_text(re.compile(f"^{gone} of"))
    expect(box).to_be_focused()
    boxes = page.locator("#duplicate-groups [data-reject]")
    one = said.inner_text()
    boxes.nth(1).press("Space")
    expect(said).not_to_have_text(one)
    both = said.inner_text()
    for number in (0, 1):
        boxes.nth(number).press("Space")
    expect(said).to_have_text(re.compile(f"^{gone} of"))
    with slowly(page):
        page.evaluate(BOTH)
        expect(said).to_have_text(both)  # neither press is lost


def test_the_views_have_no_violation_of_accessibility(page):
    for name in ("Changes", "Near-duplicates", "Selection"):  # Groups are shown at first (`test_accessibility.py`)
        look(page, 1280, 844)
        view(page, name)
        assert violations(page, page.locator("#clusters")) == [], name
        look(page, 390, 844, color_scheme="dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page, page.locator("#clusters"), rules=COLOURS) == []
