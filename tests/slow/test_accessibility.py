"""WCAG 2.2 AA in a real browser: axe-core on every place and panel in both schemes, and what axe-core cannot see."""

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, TABS, look, open_tab, watched
from barriers import COLOURS, SKIPPED_LEVELS, settled, violations
from clients import app_client
from colour_vision import contrast
from playwright.sync_api import expect

from cse.app.training.request import OWN
from cse.app.training.trainings import Trainings

pytestmark = NEEDS_BROWSER
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
PANELS = ("corpus", "models", "share")
TEXT, MARK = 4.5, 3.0  # least contrasts
PAINT = """element => {
  const colours = [], style = getComputedStyle(element);
  for (let each = element; each; each = each.parentElement) colours.push(getComputedStyle(each).backgroundColor);
  return {text: style.color, outline: style.borderTopColor, ground: colours.find(c => c !== 'rgba(0, 0, 0, 0)')};
}"""
# The colour of its first opaque pixel from the middle to the right: a hollow mark has none in the middle.
KEY = """canvas => {
  const pixels = canvas.getContext('2d').getImageData(14, 14, 14, 1).data;
  const at = 4 * Array.from({length: 14}, (_, right) => pixels[4 * right + 3]).indexOf(255);
  return [...pixels.slice(at, at + 3)];
}"""
# Of each control that takes the focus: its name, and the ring of it or of what surrounds it. The ground of a ring is
# the control where it is drawn inside, else what lies around; `cut` is whether an ancestor cuts some of it off.
RINGS = """parts => {
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const {backgroundColor} = getComputedStyle(each);
      if (backgroundColor !== 'rgba(0, 0, 0, 0)') return backgroundColor;
    }
  };
  const ring = control => {
    const ringed = [control, control.parentElement, control.closest('.wrap')].find(
      each => each && getComputedStyle(each).outlineStyle === 'solid') || control;
    const style = getComputedStyle(ringed), box = ringed.getBoundingClientRect();
    const reach = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth);
    let cut = false;
    for (let each = ringed.parentElement; each !== document.body; each = each.parentElement) {
      const outer = each.getBoundingClientRect();
      cut ||= getComputedStyle(each).overflowY !== 'visible' && reach > 0 && (outer.left > box.left - reach
        || outer.right < box.right + reach || outer.top > box.top - reach || outer.bottom < box.bottom + reach);
    }
    return {
      name: `${control.tagName} ${control.className} ${control.innerText || control.ariaLabel || ''}`, cut,
      line: `${style.outlineStyle} ${style.outlineWidth}`, colour: style.outlineColor,
      ground: ground(reach > 0 ? ringed.parentElement : ringed),
    };
  };
  // Gradio's slider asks for results when its number is left.
  const unseen = event => event.target.type === 'number' && event.stopPropagation();
  addEventListener('blur', unseen, true);
  const reached = parts.flatMap(
    part => [...part.querySelectorAll('a[href], button, input, textarea, select, summary, [tabindex="0"]')])
    .filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled && each.tabIndex >= 0)
    .flatMap(each => { each.focus(); return document.activeElement === each ? [ring(each)] : []; });
  removeEventListener('blur', unseen, true);
  return reached;
}"""


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    with serving(["dcpcse", "conpvp"], trainings=Trainings(OWN, tmp_path_factory.mktemp("trained"))) as url:
        app_client(url).predict("a", "b", api_name="/similarity")  # opens the models before pages do
        with watched(browser, url, reduced_motion="reduce") as opened:
            yield opened


@pytest.fixture(params=TABS, scope="module")
def tab(page, request):
    """The places in turn, with all that they fold away."""
    open_tab(page, request.param)
    page.evaluate("""() => {
      const shown = [...document.querySelectorAll('[role=tabpanel]')].find(panel => panel.checkVisibility());
      shown.querySelectorAll('button.label-wrap:not(.open)').forEach(fold => fold.click());
      shown.querySelectorAll('details').forEach(fold => { fold.open = true; });
    }""")
    settled(page)
    return request.param


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


def rings_stand_out(page, part):
    page.keyboard.press("Shift")  # whoever uses keys sees where they are
    still = page.add_style_tag(content="* { transition: none !important; }")  # the ring is there at once
    rings = page.evaluate(RINGS, [part.element_handle()])
    still.evaluate("style => style.remove()")
    for ring in rings:
        assert ring["line"] == "solid 2px", ring
        assert contrast(rgb(ring["colour"]), rgb(ring["ground"])) >= MARK, ring
        assert not ring["cut"], ring
    return len(rings)


def test_axe_finds_nothing_on_a_place_and_its_controls_have_rings(page, tab):
    look(page)
    part = page.locator("html") if tab == TABS[0] else page.get_by_role("tabpanel")
    assert violations(page, part) == []
    assert page.locator("h1:visible").count() == 1
    assert page.evaluate(SKIPPED_LEVELS) == []
    assert rings_stand_out(page, part) > 0
    look(page, 390, color_scheme="dark")
    assert violations(page, part, rules=COLOURS) == [], "dark"
    assert rings_stand_out(page, part) > 0


def test_every_table_and_canvas_has_a_name_of_its_own(page, tab):
    names = page.locator("[role=tabpanel] table:visible caption").all_text_contents()
    assert page.locator("[role=tabpanel] table:visible").count() == len(names)
    names += [canvas.get_attribute("aria-label") for canvas in page.locator("canvas[role]:visible").all()]
    assert page.locator("canvas:visible:not([role]):not([aria-hidden=true])").count() == 0
    assert len(names) == len(set(names))
    assert all(names)


@pytest.mark.parametrize("name", PANELS)
def test_axe_finds_nothing_in_a_panel_and_its_controls_have_rings(page, name):
    look(page)
    page.locator(f"[popovertarget={name}-panel]").first.click()
    panel = page.locator(f"#{name}-panel")
    assert violations(page, panel) == []
    assert rings_stand_out(page, panel) > 1
    look(page, 390, color_scheme="dark")
    assert violations(page, panel, rules=COLOURS) == [], "dark"
    page.keyboard.press("Escape")


def test_axe_finds_nothing_in_what_a_term_means(page):
    look(page)
    open_tab(page, "Similarity")
    page.locator("#similarity .cse-term").first.press("Enter")
    sheet = page.get_by_role("dialog", name="What is a percentile?")
    assert violations(page, sheet) == []
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()


@SCHEMES
def test_tabs_outlines_and_marks_of_maps_and_bars_stand_out(page, scheme):
    """Gradio draws the tabs' line with a pseudo element, which makes axe-core pass them over."""
    look(page, color_scheme=scheme)
    for tab in page.get_by_role("tab").all():
        paint = tab.evaluate(PAINT)
        assert contrast(rgb(paint["text"]), rgb(paint["ground"])) >= TEXT
    open_tab(page, "Similarity")
    paint = page.get_by_label("Sentence A").evaluate(PAINT)
    assert contrast(rgb(paint["outline"]), rgb(paint["ground"])) >= MARK
    ground = page.locator("#similarity td").first.evaluate(PAINT)["ground"]
    shape = page.locator(".cse-strip polygon:not(.cse-ghost)").first.evaluate("shape => getComputedStyle(shape).fill")
    marker = page.locator(".cse-strip .cse-marker").first.evaluate("line => getComputedStyle(line).stroke")
    assert contrast(rgb(shape), rgb(ground)) >= MARK
    assert contrast(rgb(marker), rgb(shape)) >= MARK
    open_tab(page, "Tokens")
    bar = page.locator("#tokens .cse-bar i").first.evaluate(PAINT)["ground"]
    card = page.locator("#tokens .cse-card").first.evaluate(PAINT)["ground"]
    assert contrast(rgb(bar), rgb(card)) >= MARK
    open_tab(page, "Clusters")
    page.locator("#maps .cse-frame canvas").first.wait_for()
    settled(page)
    ground = rgb(page.locator("#maps .cse-frame canvas").first.evaluate(PAINT)["ground"])
    marks = {tuple(canvas.evaluate(KEY)) for canvas in page.locator("#maps .cse-legend canvas").all()}
    assert len(marks) == 12
    for mark in marks:  # points let a tenth through
        seen = [0.9 * one + 0.1 * other for one, other in zip(mark, ground, strict=True)]
        assert contrast(seen, ground) >= MARK, mark


def test_nothing_moves_for_who_asks_for_that(page):
    longest = page.evaluate("""() => Math.max(...[...document.querySelectorAll('.contain *')].flatMap(each => {
      const style = getComputedStyle(each);
      return `${style.transitionDuration}, ${style.animationDuration}`.split(', ').map(parseFloat);
    }))""")
    assert longest <= 0.00001  # seconds


def test_forced_colours_keep_bars_and_the_best_figures(page):
    look(page, forced_colors="active")
    open_tab(page, "Tokens")
    bar = page.locator("#tokens .cse-bar").first
    fill, ground = (rgb(part.evaluate(PAINT)["ground"]) for part in (bar.locator("i"), bar))
    assert (fill, ground) == (rgb(page.locator("h1").evaluate(PAINT)["text"]), (255, 255, 255))
    open_tab(page, "Results")
    best = page.locator("#scores .cse-best:visible").first
    assert best.evaluate("cell => getComputedStyle(cell).outlineStyle") == "solid"
