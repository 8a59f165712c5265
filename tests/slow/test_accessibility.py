"""WCAG 2.2 AA in a real browser: axe-core on every tab in both colour schemes, and what axe-core cannot see."""

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, TABS, look, open_tab, watched
from barriers import COLOURS, RULES, SKIPPED_LEVELS, settled, violations
from clients import app_client

from cse.app.drawing.ramps import contrast
from cse.models.names import BUNDLED_NAMES

pytestmark = NEEDS_BROWSER
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
FORMS = {  # a form of those above the tabs, and the button that unfolds it
    "Similarity": ("+ model", "#add-model"),
    "Search": ("Upload", "#corpus-form"),
    "Tokens": ("Export", "#corpus-export"),
    "Clusters": ("Paste", "#corpus-form"),
}
TEXT, MARK = 4.5, 3.0  # least contrasts
PAINT = """element => {
  const colours = [], style = getComputedStyle(element);
  for (let each = element; each; each = each.parentElement) colours.push(getComputedStyle(each).backgroundColor);
  return {text: style.color, outline: style.borderTopColor, ground: colours.find(c => c !== 'rgba(0, 0, 0, 0)')};
}"""
KEY = "canvas => [...canvas.getContext('2d').getImageData(14, 14, 1, 1).data].slice(0, 3)"  # its middle
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
  const found = parts.flatMap(
    part => [...part.querySelectorAll('a[href], button, input, textarea, select, summary, [tabindex="0"]')])
    .filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled && each.tabIndex >= 0)
    .flatMap(each => { each.focus(); return document.activeElement === each ? [ring(each)] : []; });
  removeEventListener('blur', unseen, true);
  return found;
}"""


@pytest.fixture(scope="module")
def url():
    with serving(BUNDLED_NAMES) as address:  # its tabs open with their results
        app_client(address).predict("a", "b", api_name="/similarity")  # opens the models before pages do
        yield address


@pytest.fixture(scope="module")
def page(browser, url):
    """One page for all tests."""
    with watched(browser, url, reduced_motion="reduce") as opened:
        pressed(opened, "Which words matter?")
        opened.locator("#words .cse-words").first.wait_for()
        yield opened


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


def mixed(colour, ground, share: float) -> tuple[float, ...]:
    return tuple(share * one + (1 - share) * other for one, other in zip(colour, ground, strict=True))


def pressed(page, button):
    page.get_by_role("button", name=button, exact=True).locator("visible=true").click()


@pytest.fixture(params=TABS, scope="module")
def tab(page, request):
    """Each tab in turn, with its export and one of the forms unfolded."""
    open_tab(page, request.param)
    if request.param != "Train":  # which this app does not offer
        page.get_by_role("button", name="Export results").locator("visible=true").click()
        page.get_by_role("button", name="curl", exact=True).locator("visible=true").wait_for()
    if request.param == "Results":
        pressed(page, "curl")
        page.locator(".cse-taken pre:visible").wait_for()
    if request.param == "Clusters":
        page.locator("#maps .cse-small").nth(3).wait_for()
        page.evaluate("cseShowOnMap(3)")
        page.locator("#maps .cse-quote").wait_for()
    if request.param in FORMS:
        button, form = FORMS[request.param]
        pressed(page, button)
        page.locator(form).wait_for()
    yield request.param
    if request.param in FORMS:
        page.locator(form).get_by_role("button", name="Close", exact=True).click()


def new_on(page, tab):
    """The parts of the page that no earlier tab has shown: all of it, or the tab's panel and the unfolded form."""
    if tab == TABS[0]:
        return [page.locator("html")]
    return [page.get_by_role("tabpanel"), *([page.locator(FORMS[tab][1])] if tab in FORMS else [])]


def test_axe_finds_nothing_on_a_tab(page, tab):
    """What a page says where a model has no result: `test_browser.py`."""
    look(page)
    parts = new_on(page, tab)
    assert violations(page, *parts) == []
    assert page.locator("h1:visible").count() == 1
    assert page.locator("h2:visible").count() >= 1
    assert page.evaluate(SKIPPED_LEVELS) == []
    look(page, color_scheme="dark")
    assert violations(page, *parts, rules=COLOURS) == [], "dark"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_every_control_that_has_the_focus_has_a_ring_that_stands_out(page, tab, scheme, width):
    look(page, width, color_scheme=scheme)
    page.keyboard.press("Shift")  # whoever uses keys sees where they are
    still = page.add_style_tag(content="* { transition: none !important; }")  # the ring is there at once
    found = page.evaluate(RINGS, [part.element_handle() for part in new_on(page, tab)])
    still.evaluate("style => style.remove()")
    assert len(found) > (20 if tab == TABS[0] else 0)
    for ring in found:
        assert ring["line"] == "solid 2px", ring
        assert contrast(rgb(ring["colour"]), rgb(ring["ground"])) >= MARK, ring
        assert not ring["cut"], ring


def test_axe_finds_nothing_in_what_a_model_and_a_term_mean(page):
    look(page)
    open_tab(page, "Similarity")
    page.locator("#models button").first.click()
    page.locator("#models dl").first.wait_for()
    assert violations(page, page.locator("#models")) == []
    page.keyboard.press("Escape")
    page.locator("#similarity .cse-term").first.click()
    sheet = page.get_by_role("dialog", name="What is a percentile?")
    for scheme, rules in (("light", RULES), ("dark", COLOURS)):
        look(page, color_scheme=scheme)
        assert violations(page, sheet, rules=rules) == [], scheme
    page.keyboard.press("Escape")


@SCHEMES
def test_tabs_outlines_and_marks_of_maps_and_bars_stand_out(page, scheme):
    """Gradio draws the tabs' line with a pseudo element, which makes axe-core pass them over."""
    look(page, color_scheme=scheme)
    for tab in page.get_by_role("tab").all():
        paint = tab.evaluate(PAINT)
        assert contrast(rgb(paint["text"]), rgb(paint["ground"])) >= TEXT
    boxes = {"Similarity": page.get_by_label("Sentence A"), "Search": page.locator("#corpus .wrap:has(> .wrap-inner)")}
    for tab, box in boxes.items():
        open_tab(page, tab)
        paint = box.evaluate(PAINT)
        assert contrast(rgb(paint["outline"]), rgb(paint["ground"])) >= MARK, tab
    open_tab(page, "Similarity")
    ground = page.locator("#similarity td").first.evaluate(PAINT)["ground"]
    shape = page.locator(".cse-strip polygon").first.evaluate("shape => getComputedStyle(shape).fill")
    marker = page.locator(".cse-strip .cse-marker").first.evaluate("line => getComputedStyle(line).stroke")
    assert contrast(rgb(shape), rgb(ground)) >= MARK
    assert contrast(rgb(marker), rgb(shape)) >= MARK
    open_tab(page, "Tokens")
    bar = page.locator("#tokens .cse-bar i").first.evaluate(PAINT)["ground"]
    card = page.locator("#tokens .cse-card").first.evaluate(PAINT)["ground"]
    assert contrast(rgb(bar), rgb(card)) >= MARK
    open_tab(page, "Clusters")
    page.locator("#maps .cse-frame canvas").first.wait_for()
    ground = rgb(page.locator("#maps .cse-frame canvas").first.evaluate(PAINT)["ground"])
    marks = {tuple(each.evaluate(KEY)) for each in page.locator("#maps .cse-legend canvas").all()}
    assert len(marks) == 12
    for mark in marks:
        assert contrast(mixed(mark, ground, 0.9), ground) >= MARK, mark  # points let a tenth through


def test_every_table_and_canvas_has_a_name_of_its_own(page):
    look(page)
    names = []
    for tab in TABS:
        open_tab(page, tab)
        page.evaluate("document.querySelectorAll('.cse-fold').forEach(each => { each.open = true; })")
        settled(page)
        names += page.locator("table:visible caption").all_text_contents()
        names += [c.get_attribute("aria-label") for c in page.locator("canvas[role]:visible").all()]
        assert page.locator("table:visible").count() == page.locator("table:visible caption").count()
        assert page.locator("canvas:visible:not([role]):not([aria-hidden=true])").count() == 0
    assert len(names) == len(set(names)) == 1 + 1 + 2 + 2 + 4 + 7
    assert all(names)


def test_nothing_moves_for_who_asks_for_that(page):
    longest = page.evaluate("""() => Math.max(...[...document.querySelectorAll('.contain *')].flatMap(each => {
      const style = getComputedStyle(each);
      return `${style.transitionDuration}, ${style.animationDuration}`.split(', ').map(parseFloat);
    }))""")
    assert longest <= 0.00001  # seconds


def test_forced_colours_keep_bars_and_the_best_figures(page):
    look(page, forced_colors="active")
    cell = page.locator("#all-pairs td").first.evaluate(PAINT)
    assert contrast(rgb(cell["text"]), rgb(cell["ground"])) >= TEXT
    open_tab(page, "Tokens")
    bar = page.locator("#tokens .cse-bar").first
    fill, ground = (rgb(each.evaluate(PAINT)["ground"]) for each in (bar.locator("i"), bar))
    assert (fill, ground) == (rgb(page.locator("h1").evaluate(PAINT)["text"]), (255, 255, 255))
    open_tab(page, "Results")
    page.locator("#results .cse-fold summary").first.click()
    best = page.locator("#results .cse-best").first
    assert best.evaluate("cell => getComputedStyle(cell).outlineStyle") == "solid"


def test_keys_reach_a_table_that_scrolls_and_its_headings(page):
    look(page, 360)
    open_tab(page, "Results")
    page.locator("#results .cse-fold summary").first.click()
    box = page.locator("#results .cse-scroll").first
    box.get_by_role("button").first.focus()
    page.keyboard.press("Shift+Tab")
    assert box.evaluate("box => getComputedStyle(box).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('#results .cse-scroll').scrollLeft > 0")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "cse-sort"
