"""Where a reason stands under its field, the whole of it is seen, in every tab and at every kind of field."""

from pathlib import Path

import pytest
from app_models import serving, write_model
from app_pages import NEEDS_BROWSER, TABS, look, open_tab, watched

import cse.app

pytestmark = NEEDS_BROWSER
SCRIPT = (Path(cse.app.__file__).parent / "static" / "refusals.js").read_text()
REASON = "k must be a whole number from 1 to 20, and this is a long reason that a narrow field breaks into lines. " * 2
# The page's own script shows the reason at each field of the tab, as for an answer of the server.
SHOWN = """async ([source, reason]) => {
  const panel = [...document.querySelectorAll('[role=tabpanel]')].find(each => each.checkVisibility());
  panel.querySelectorAll('button.label-wrap:not(.open)').forEach(fold => fold.click());
  await new Promise(done => setTimeout(done, 300));
  const run = new Function('props', 'element', 'watch', source), cut = {}, kinds = new Set();
  for (const block of panel.querySelectorAll('[id^="field-"], .block:has(input, textarea):not(:has(.block))')) {
    const field = block.querySelector('textarea, input');
    if (!field || !block.checkVisibility({visibilityProperty: true})) continue;
    block.id ||= `field-test-${Math.random()}`;
    run({value: {fields: [block.id], about: block.id, reason}}, panel.firstElementChild, (_, show) => show());
    const line = panel.querySelector(`.cse-refusal[data-about="${block.id}"]`), label = block.innerText.slice(0, 40);
    // `scrollIntoView` would scroll what hides it, too.
    window.scrollBy(0, line.getBoundingClientRect().top - innerHeight / 2);
    await new Promise(requestAnimationFrame);
    const range = document.createRange();
    range.selectNodeContents(line);
    for (const box of range.getClientRects()) {
      for (const x of [box.left + 2, (box.left + box.right) / 2, box.right - 2]) {
        for (const y of [box.top + 2, box.bottom - 2]) {
          const seen = document.elementFromPoint(x, y);
          if (seen !== line) cut[label] = `${Math.round(x)}, ${Math.round(y)}: ${seen?.tagName}.${seen?.className}`;
        }
      }
    }
    kinds.add(field.getAttribute('role') || field.type);
    run({value: {fields: [block.id]}}, panel.firstElementChild, (_, show) => show());
  }
  return [cut, [...kinds]];
}"""


@pytest.fixture(scope="module")
def page(browser, bert_folder, tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp("models") / "simcse", bert_folder, "simcse")
    with serving([str(folder)]) as url, watched(browser, url) as opened:
        yield opened


@pytest.mark.parametrize("width", [1400, 390])
def test_a_reason_under_a_field_is_seen_whole(page, width):
    look(page, width)
    found, kinds = {}, set()
    for tab in TABS:
        open_tab(page, tab)
        cut, seen = page.evaluate(SHOWN, [SCRIPT, REASON])
        kinds |= set(seen)
        if cut:
            found[tab] = cut
    assert found == {}
    assert kinds >= {"textarea", "number", "combobox", "radio"}, kinds


def test_a_reason_about_a_file_is_seen_whole(page):
    look(page, 390)
    page.get_by_role("button", name="Upload", exact=True).click()
    file = {"name": f"{'long' * 30}.exe", "mimeType": "text/plain", "buffer": b"MZ\x90\0\3\0\0\0\4"}
    page.locator("#corpus-form input[type=file]").set_input_files(file)
    line = page.locator("#corpus-said [role=alert]")
    line.wait_for()
    line.scroll_into_view_if_needed()
    seen = "document.elementFromPoint(box.left + share * box.width, box.top + share * box.height)"
    whole = f"line => [...line.getClientRects()].every(box => [.02, .5, .98].every(share => line.contains({seen})))"
    assert line.evaluate(whole)
