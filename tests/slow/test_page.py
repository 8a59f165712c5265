"""The page in a real browser: one row, six places, a visitor's table through all of them, a link that restores it."""

import csv
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from app_models import serving
from app_pages import NEEDS_BROWSER, TABS, look, open_tab, slowly, unfold, watched
from clients import app_client
from playwright.sync_api import expect

from cse.app.training.request import OWN
from cse.app.training.trainings import Trainings
from cse.models.names import BUNDLED_NAMES

pytestmark = NEEDS_BROWSER
TICKETS = """id;date;body;label
17;2026-01-02;"My invoice is wrong; please send a new one";billing
18;2026-01-03;I cannot log in since yesterday;access
19;2026-01-03;;access
20;2026-01-04;"-50 % was promised, <b>I paid</b> the full priceMORE";billing
21;2026-01-05;The app crashes when I open the settings;bug
22;2026-01-06;How do I merge two branches?;
23;2026-01-06;Please reset my password;access
24;2026-01-07;The export button does nothing;bug
""".replace("MORE", " and waited" * 150)
FIRST = {  # where the first result of each place begins
    "Similarity": "#similarity table",
    "Search": "#search table",
    "Tokens": "#tokens .cse-card",
    "Clusters": "#maps canvas",
    "Your model": "#model-start",
    "Results": "#scores table",
}
SCREENS = {(1280, 720): 330, (390, 844): 430}  # pixels above which a result begins
# The page's own script shows a reason at each field of the place, as for an answer of the server.
REASON = "k must be a whole number from 1 to 20, and this is a long reason that a narrow field breaks into lines. " * 2
CUT = """async reason => {
  const panel = [...document.querySelectorAll('[role=tabpanel]')].find(each => each.checkVisibility());
  panel.querySelectorAll('button.label-wrap:not(.open)').forEach(fold => fold.click());
  await new Promise(done => setTimeout(done, 300));
  const cut = {}, show = value => cse.refusals(panel.firstElementChild, {value}, (_, act) => act());
  for (const block of panel.querySelectorAll('[id^="field-"], .block:has(input, textarea):not(:has(.block))')) {
    const field = block.querySelector('textarea, input');
    if (!field || !block.checkVisibility({visibilityProperty: true})) continue;
    block.id ||= `field-test-${Math.random()}`;
    show({fields: [block.id], about: block.id, reason});
    const line = panel.querySelector(`.cse-refusal[data-about="${block.id}"]`);
    for (let tries = 0, box; tries < 20; tries++) {  // charts above may still grow
      box = line.getBoundingClientRect();
      if (box.top > 0 && box.bottom < innerHeight) break;
      window.scrollBy(0, box.top - innerHeight / 2);
      await new Promise(done => setTimeout(done, 50));
    }
    const range = document.createRange();
    range.selectNodeContents(line);
    for (const box of range.getClientRects())
      for (const x of [box.left + 2, box.right - 2])
        for (const y of [box.top + 2, box.bottom - 2])
          if (document.elementFromPoint(x, y) !== line) cut[block.innerText.slice(0, 40)] = [x, y];
    show({fields: [block.id]});
  }
  return cut;
}"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    root = tmp_path_factory.mktemp("more")
    with serving(BUNDLED_NAMES, root=root, trainings=Trainings(OWN, root)) as address:
        app_client(address).predict("a", "b", api_name="/similarity")  # opens the models before pages do
        yield address


@pytest.fixture(scope="module")
def shared(browser, url):
    with watched(browser, url, width=1280, height=720) as opened:
        yield opened


@pytest.fixture
def page(shared):
    """One page for the tests that need no other visitor, in its first place."""
    look(shared, 1280, 720)
    shared.keyboard.press("Escape")
    open_tab(shared, "Similarity")
    return shared


def panel(page, name):
    """Open a panel of the row above the places."""
    page.locator(f"[popovertarget={name}-panel]").first.click()
    return page.locator(f"#{name}-panel")


def upload(page, name, content):
    opened = panel(page, "corpus")
    file = {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
    opened.locator("#corpus-file input[type=file]").set_input_files(file)
    return opened


def test_the_first_tab_stop_skips_to_the_places_and_arrows_go_along_them(shared):
    """The first test, as its page was never touched."""
    shared.keyboard.press("Tab")
    expect(shared.get_by_role("link", name="Skip to the tabs")).to_be_focused()
    shared.keyboard.press("Enter")
    expect(shared.get_by_role("tab", name="Similarity")).to_be_focused()
    for key, name in (("ArrowRight", "Search"), ("ArrowLeft", "Similarity"), ("ArrowLeft", TABS[-1])):
        shared.keyboard.press(key)
        expect(shared.get_by_role("tab", name=name)).to_be_focused()
    shared.keyboard.press("Enter")
    expect(shared.get_by_role("tab", name=TABS[-1])).to_have_attribute("aria-selected", "true")


def test_the_first_result_of_every_place_is_above_the_fold_and_nothing_is_wider_than_the_screen(page):
    assert FIRST.keys() == set(TABS)
    assert page.locator("#top").bounding_box()["height"] <= 56
    for size, most in SCREENS.items():
        look(page, *size)
        for tab, result in FIRST.items():
            open_tab(page, tab)
            first = page.locator(result).first
            first.wait_for()
            page.evaluate("scrollTo(0, 0)")
            assert first.bounding_box()["y"] < most, (tab, size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], (tab, size)


def test_what_is_shown_is_saved_and_a_link_opens_it_again(page, browser, url, tmp_path):
    open_tab(page, "Search")
    page.get_by_label("Query").fill("A cat sleeps")
    expect(page.locator("#search tbody tr").first).to_contain_text("cat")  # in place of the example's
    page.wait_for_url("**q=A+cat+sleeps**")
    found = page.locator("#search tbody tr").evaluate_all(
        "rows => rows.map(row => row.innerText.match(/row (\\d+)/)[1])"
    )
    share = panel(page, "share")
    share.get_by_label("As", exact=True).click()
    page.get_by_role("option", name="Table (CSV)").click()
    with page.expect_download() as saving:
        share.get_by_role("button", name="Save", exact=True).click()
    saving.value.save_as(tmp_path / "saved.csv")
    with (tmp_path / "saved.csv").open(encoding="utf-8") as file:
        assert {row["row"] for row in csv.DictReader(file)} == set(found)
    address = page.url
    assert parse_qs(urlsplit(address).query).keys() == {"tab", "models", "q"}, "only what differs from the start"
    with watched(browser, address, width=1280, height=720) as other:
        expect(other.get_by_label("Query")).to_have_value("A cat sleeps")
        expect(other.locator("#search tbody th")).to_have_count(len(found))


def test_typing_asks_after_a_pause_and_back_returns(page):
    open_tab(page, "Search")
    query = page.get_by_label("Query")
    query.fill("A cat sleeps on the sofa")
    expect(page.locator("#search tbody tr").first).to_contain_text("cat")
    page.wait_for_url("**q=A+cat+sleeps+on+the+sofa**")
    query.fill(" ")
    expect(page.locator(".cse-refusal:visible")).to_have_text("The query is empty; write a few words.")
    query.fill("The flight was late")
    page.wait_for_url("**q=The+flight+was+late**")
    expect(page.locator(".cse-refusal:visible")).to_have_count(0)
    query.press("Enter")
    page.wait_for_function("cse.entered")  # the page has seen the key
    query.fill("A train was")
    page.wait_for_url(lambda address: address.endswith("q=A+train+was"))
    query.fill("A train was early")  # takes the place of what was not asked for by Enter
    page.wait_for_url("**q=A+train+was+early**")
    page.go_back()
    expect(query).to_have_value("The flight was late")
    page.go_forward()
    expect(query).to_have_value("A train was early")
    expect(page.locator("#search tbody tr").first).to_contain_text("train")
    open_tab(page, "Tokens")
    page.wait_for_url("**tab=tokens**")
    page.go_back()
    expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")


def test_a_second_back_before_the_first_is_shown_leads_two_places_back(page):
    for tab in ("Search", "Tokens", "Results"):
        open_tab(page, tab)
        page.wait_for_url(f"**tab={tab.lower()}**")
    page.evaluate("history.back(); addEventListener('popstate', () => history.back(), {once: true})")
    expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")
    page.wait_for_timeout(1000)  # in which the place of the first Back would write itself into the address
    assert "tab=search" in page.url
    page.go_forward()
    expect(page.get_by_role("tab", name="Tokens")).to_have_attribute("aria-selected", "true")


def test_a_place_that_is_left_and_opened_again_at_once_is_the_open_one(page):
    forms = panel(page, "share").get_by_role("radio").locator("visible=true")
    expect(forms).to_have_count(5)  # of Similarity, which has five results; of Search there is one
    page.keyboard.press("Escape")
    with slowly(page):
        page.evaluate("""['search', 'tokens', 'search'].forEach((name, number) => setTimeout(
            () => document.getElementById(`place-${name}-button`).click(), 100 * number))""")
        page.wait_for_timeout(3000)
    panel(page, "share")
    expect(forms).to_have_count(0)


def test_a_place_that_is_chosen_while_a_link_is_read_stays(page):
    open_tab(page, "Results")
    page.evaluate("""() => {
        history.pushState(null, '', '?tab=tokens&sentence=A+dog.');
        for (let presses = 0; presses < 2; presses += 1) cse.fill();
        [...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent.trim() === 'Search').click();
    }""")
    page.wait_for_timeout(3000)  # in which the link is read, twice
    expect(page.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")
    assert "tab=search" in page.url
    open_tab(page, "Tokens")
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("A dog.")
    with slowly(page):
        page.evaluate("""() => {
            cse.fill(['sentence']);
            setTimeout(() => { history.pushState(null, '', '?tab=tokens&sentence=A+cat.'); cse.fill(); }, 100);
        }""")
        expect(page.get_by_label("Sentence", exact=True)).to_have_value("A cat.")  # that is no field that stays


TYPED_AND_PRESSED = """(field, link) => {
    field.value = 3;
    field.dispatchEvent(new Event('input', {bubbles: true}));
    link.click();  // before the page has told anybody
}"""


def test_a_table_is_used_at_once_with_its_columns_in_every_place_and_undo_brings_it_back(browser, url):
    two = f"{url}?models=simcse,promptbert"  # as each reads the texts
    with watched(browser, two, width=1280, height=720, leaves_page=True) as page:
        expect(page.locator("#top")).not_to_contain_text("DCPCSE")
        opened = upload(page, "tickets.csv", TICKETS)
        about = page.locator(".cse-overview")
        expect(page.locator("#top")).to_contain_text("tickets.csv (7)")
        for fact in (
            "7 texts of the column body",
            "1 row without a text left out",
            "3 labels of label, 1 text without",
        ):
            expect(about).to_contain_text(fact)
        expect(opened).to_be_hidden()  # as the texts are in use
        about.get_by_role("button", name="change columns").click()
        expect(opened.get_by_label("Column of the texts")).to_have_value("body")
        opened.get_by_role("button", name="Close").click()
        for name in ("Sentence A", "Sentence B"):  # two of the file's own texts, as nobody edited the demo's
            expect(page.get_by_label(name)).not_to_have_value(re.compile("guitar"))
        open_tab(page, "Search")
        expect(about.locator(".cse-note")).to_be_hidden()  # who goes on has read the facts
        first = page.locator(".cse-examples a:visible").first
        expect(first).not_to_have_text("The orchestra played a slow symphony.")
        expect(page.get_by_label("Query")).to_have_value(
            first.text_content()
        )  # in place of the demo's, which was not edited
        row = page.locator("#search tbody tr").first
        expect(row).to_contain_text("id: 17")
        unfold(page, page.get_by_role("button", name="Options").locator("visible=true"))
        number = page.get_by_label("number input for Results per model")
        last = page.locator(".cse-examples a:visible").last
        query, pressed = last.text_content(), last.element_handle()
        with slowly(page):
            about.locator("a.cse-go").first.click()
            number.evaluate(TYPED_AND_PRESSED, pressed)  # while the first link is read
            expect(page.get_by_label("Query")).to_have_value(query)
            expect(row).not_to_contain_text("id: 17")
        page.wait_for_url("**corpus=own**reset**k=3**")  # the other fields of the place stay
        about.locator("a.cse-go").first.click()
        expect(row).to_contain_text("id: 17")
        expect(row).to_contain_text("row 1")
        page.get_by_label("Query").fill("-50 % was promised")
        expect(row).to_contain_text("<b>I paid</b>")  # as text
        long = row.locator(".cse-long summary")
        folded = long.bounding_box()["height"]
        long.press("Enter")
        assert long.bounding_box()["height"] > 2 * folded
        page.get_by_label("Only rows where").fill("label = 'bug'")
        expect(page.locator("#search tbody tr")).to_have_count(2)
        held = []
        page.route("**/queue/join*", lambda route: held.append(route))
        page.get_by_role("tab", name="Clusters", exact=True).click()
        expect(page.locator("#clusters")).to_have_attribute("data-waits", "")  # the maps are those of the demo
        while held:
            held.pop().continue_()
        page.unroute("**/queue/join*")
        about.get_by_role("link", name="groups").click()
        expect(page.locator("#maps canvas[aria-label='Map of 7 texts by PromptBERT']")).to_be_visible()
        expect(page.locator("#clusters .error")).to_have_count(0)
        expect(about.get_by_role("link", name="adapt a model to it")).to_have_count(0)  # of seven texts
        about.get_by_role("button", name="Close the note").click()
        expect(about).to_have_count(0)
        page.get_by_role("tab", name="Search", exact=True).click()
        page.wait_for_url("**tab=search**")  # the old hits are still there
        expect(page.locator("#search tbody tr")).to_have_count(2)
        page.reload()
        expect(page.locator("#top")).to_contain_text("tickets.csv (7)")
        expect(page.locator("#search tbody tr")).to_have_count(2)
        expect(upload(page, "tickets.csv", TICKETS)).to_be_hidden()
        removed = panel(page, "corpus")
        expect(removed.locator("#corpus-file")).to_contain_text("KB")
        removed.get_by_role("button", name="Remove my texts").click()
        expect(page.locator("#top")).to_contain_text("Demo (1,200)")
        expect(removed.locator("#corpus-file")).not_to_contain_text("KB")
        expect(removed.get_by_label("Column of the texts")).to_be_hidden()
        removed.get_by_role("button", name="Undo").click()
        expect(page.locator("#top")).to_contain_text("tickets.csv (7)")
        upload(page, "other.txt", "The bus is late.\nA train waits.\n")
        expect(page.locator("#top")).to_contain_text("other.txt (2)")
        about.get_by_role("button", name="undo for 10 seconds: back to tickets.csv (7)").click()
        expect(page.locator("#top")).to_contain_text("tickets.csv (7)")
        expect(about).not_to_contain_text("undo")
        panel(page, "corpus").get_by_label("Corpus", exact=True).click()
        page.get_by_role("option", name="Demo (1,200)").click()
        expect(about).to_have_count(0)  # which is about other texts


def test_a_panel_covers_no_message_and_a_number_beyond_a_slider_is_its_end(page):
    open_tab(page, "Search")
    unfold(page, page.get_by_role("button", name="Options").locator("visible=true"))
    number = page.get_by_label("number input for Results per model")
    number.fill("999")
    number.press("Tab")
    expect(number).to_have_value("50")
    expect(page.locator("#search tbody tr").nth(49)).to_be_attached()
    chosen = panel(page, "corpus")
    assert chosen.bounding_box()["x"] == page.locator("[popovertarget=corpus-panel]").first.bounding_box()["x"]
    chosen.get_by_label("Or paste lines, one text each").fill("a dog barks\na cat sleeps")
    page.get_by_role("button", name="Use these texts").click()
    expect(page.locator("#top")).to_contain_text("Pasted (2)")
    page.keyboard.press("Escape")
    shared = panel(page, "share")
    form = shared.get_by_label("As").locator("visible=true")
    form.click()
    page.keyboard.press("Escape")  # closes the list alone
    expect(form).to_have_attribute("aria-expanded", "false")
    shared.locator("h2").click()
    form.click()  # a list opens when its field gets the focus
    page.get_by_role("option", name="Code (curl)").click()
    shared.get_by_role("button", name="Show the code").locator("visible=true").click()
    message = shared.get_by_role("alert").get_by_text("curl does not send your texts")
    expect(message).to_be_visible()
    message.click()  # nothing lies over it
    expect(page.locator(".toast-wrap").get_by_text("curl")).to_have_count(0)
    form.click()
    page.get_by_role("option", name="Code (Python)").click()
    expect(message).to_have_count(0)


def test_why_an_answer_has_no_file_is_said_in_the_panel_and_nothing_is_covered(browser, url):
    with watched(browser, f"{url}?tab=results&task=geometry", width=1280, height=720) as page:
        expect(page.locator("#scores")).to_contain_text("anisotropy")
        share = panel(page, "share")
        share.get_by_role("button", name="Save", exact=True).locator("visible=true").click()
        said = share.get_by_role("alert").locator("visible=true")
        expect(said).to_have_text("This result has no chart; save it as a table.")
        expect(page.locator(".toast-wrap").get_by_text("no chart")).to_have_count(0)
        form = share.get_by_label("As").locator("visible=true")
        form.click()
        page.get_by_role("option", name="Table (Markdown)").click()
        expect(said).to_have_count(0)
        with page.expect_download():
            share.get_by_role("button", name="Save", exact=True).locator("visible=true").click()


def test_an_unclear_table_asks_and_a_wrong_file_is_told_where_it_was_given(page):
    opened = upload(page, "two.csv", "a,b\nthe dog runs home,a cat sleeps there\nit rains again today,the sun is out\n")
    said = page.locator("#corpus-said")
    expect(said).to_have_text("Which column holds the texts? a is proposed.")
    expect(opened.get_by_label("Column of the texts")).to_have_value("a")
    opened.get_by_label("Column of the texts").click()
    page.get_by_role("option", name="b", exact=True).click()
    opened.get_by_role("button", name="Use these texts").click()
    expect(page.locator("#top")).to_contain_text("two.csv (2)")
    expect(opened).to_be_hidden()
    given = opened.locator("#corpus-file input[type=file]")
    panel(page, "corpus").get_by_role("button", name="Clear").click()
    given.set_input_files({"name": "one.txt", "mimeType": "text/plain", "buffer": b"The bus is late.\nA train waits."})
    expect(page.locator("#top")).to_contain_text("one.txt (2)")
    expect(opened).to_be_hidden()
    panel(page, "corpus").get_by_role("button", name="Clear").click()
    given.set_input_files({"name": "x.exe", "mimeType": "text/plain", "buffer": b"MZ\x90\0\3\0\0\0\4"})
    expect(said).to_contain_text("x.exe")
    page.wait_for_function("""() => {
        const line = document.querySelector('#corpus-said [role=alert]'), box = line.getBoundingClientRect();
        return line.contains(document.elementFromPoint(box.left + 5, box.top + box.height / 2));
    }""")  # once the fields of the file are gone
    expect(page.locator("#top")).to_contain_text("one.txt (2)")  # nothing is lost
    expect(page.locator("#corpus-undo")).to_be_hidden()  # after ten seconds
    expect(said).to_contain_text("x.exe")


def test_models_are_chosen_once_for_every_place_with_their_start(page):
    """With few texts, as all places that were opened ask anew: maps of the demo take long."""
    models = panel(page, "models")
    models.get_by_label("PromptBERT before training").check()
    models.get_by_label("DCPCSE", exact=True).uncheck()
    expect(page.locator(".cse-models")).to_contain_text("PromptBERT before training")
    models.get_by_role("button", name="Close").click()
    expect(page.locator("#similarity tbody th")).to_have_text(["SimCSE", "PromptBERT", "ConPVP"])
    expect(page.locator("#similarity tbody tr").nth(1)).to_contain_text("before")
    heads = ["SimCSE", "PromptBERT before training", "PromptBERT", "ConPVP"]
    open_tab(page, "Search")
    expect(page.locator("#search thead th")).to_have_text([re.compile(head) for head in ("Text", *heads)])
    panel(page, "models").get_by_label("PromptBERT before training").uncheck()
    page.locator("#models-panel").get_by_label("DCPCSE", exact=True).check()


def test_a_reason_under_a_field_is_seen_whole(page):
    """The last test, as it leaves all folds open, which ask for results again and again."""
    look(page, 390)
    cut = {}
    for tab in TABS:
        open_tab(page, tab)
        if hidden := page.evaluate(CUT, REASON):
            cut[tab] = hidden
    assert cut == {}
