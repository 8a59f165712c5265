"""The place Similarity in a browser: a pair, words, a list, changes and disagreements as a visitor meets them."""

import pytest
from app_models import GOOD, MARKUP, serving, write_model, write_models
from app_pages import NEEDS_BROWSER, unfold, watched
from clients import app_client
from playwright.sync_api import expect

pytestmark = NEEDS_BROWSER
SHOWN = ["SimCSE", "PromptBERT", "DCPCSE", "ConPVP", MARKUP]


@pytest.fixture(scope="module")
def url(tmp_path_factory, bert_folder):
    folders = write_models(tmp_path_factory.mktemp("place"), bert_folder)
    extra = write_model(tmp_path_factory.mktemp("root") / "extra", bert_folder, "simcse", seed=5)
    with serving([str(folder) for folder in folders], root=extra.parent) as address:
        app_client(address).predict("a", "b", api_name="/similarity")  # opens the models
        yield address


@pytest.fixture(scope="module")
def page(browser, url):
    """An opened page; whatever goes wrong on it fails the last test."""
    with watched(browser, url, leaves_page=True) as opened:
        yield opened


def test_a_pair_is_answered_while_it_is_typed_and_the_address_keeps_it(page, url):
    numbers = page.locator("#similarity .cse-number")
    expect(page.locator("#similarity tbody th")).to_have_text(SHOWN)
    assert "damaged" in page.locator("#similarity .cse-failure").inner_text()
    page.get_by_label("Sentence A").fill("the dog is happy")
    page.get_by_label("Sentence B").fill("the dog is happy")
    expect(numbers).to_have_text(["1.000"] * 5)
    page.get_by_label("Sentence B").fill("a cat eats")
    expect(numbers.first).not_to_have_text("1.000")
    answer = app_client(url).predict("the dog is happy", "a cat eats", api_name="/similarity")
    expect(numbers).to_have_text([f"{answer[name]:.3f}" for name in (*GOOD, MARKUP)])
    page.wait_for_function("location.search.includes('b=a+cat+eats')")
    shown = numbers.all_inner_texts()
    page.reload()
    expect(page.get_by_label("Sentence B")).to_have_value("a cat eats")
    expect(numbers).to_have_text(shown)
    page.get_by_label("Sentence B").fill(" ")
    expect(page.locator("[role=alert]", has_text="Sentence B is empty; write a few words.")).to_be_visible()
    expect(numbers).to_have_count(0)
    page.get_by_role("link", name="negation").click()
    expect(page.locator("#similarity .cse-says")).to_contain_text("One word reverses the meaning.")


def test_a_folded_result_is_asked_for_while_its_fold_is_open(page):
    fold, titles = page.get_by_role("button", name="All pairs of a list"), page.locator("#pairs section h3")
    rows, first = page.locator("#similarity tbody th"), page.locator("#models-panel").get_by_label(SHOWN[0], exact=True)
    page.locator("[popovertarget=models-panel]").first.click()
    first.uncheck()
    expect(rows).to_have_text(SHOWN[1:])
    assert titles.count() == 0
    unfold(page, fold)
    expect(titles).to_have_text(SHOWN[1:])
    unfold(page, fold)  # closes it
    page.locator("[popovertarget=models-panel]").first.click()
    first.check()
    expect(rows).to_have_text(SHOWN)
    assert titles.all_text_contents() == SHOWN[1:]
    unfold(page, fold)
    expect(titles).to_have_text(SHOWN)


def test_a_list_gives_a_square_for_each_model_and_switches_to_percentiles(page, url):
    box = page.get_by_label("Sentences, one per line")
    box.fill("the cat is eating\na dog\n<b>the sun</b>")
    cells = page.locator("#pairs section").first.locator("td.cse-shade")
    expect(cells).to_have_count(9)
    expect(page.locator("#pairs section h3")).to_have_text(SHOWN)
    expect(page.locator("#pairs ol li").last).to_have_text("<b>the sun</b>")
    found = app_client(url).predict(box.input_value(), "percentile", api_name="/pairs")["simcse"]
    assert cells.nth(1).get_attribute("title").startswith(f"1 and 2: cosine {found[0]['cosine']:.3f}")
    page.get_by_label("Show").click()
    page.get_by_role("option", name="Percentile").click()
    expect(cells.nth(1)).to_have_text(f"{found[0]['percentile']:.0f}")
    box.fill("one")
    expect(page.locator("[role=alert]", has_text="The list has 1 sentence; paste 2 to 40")).to_be_visible()


def test_changes_answer_variants_and_disagreements_show_pairs_of_the_corpus(page):
    unfold(page, page.get_by_role("button", name="What changes the vector?"))
    rows = page.locator("#changes tbody tr")
    expect(rows.first.locator("th")).to_contain_text("negated")
    unfold(page, page.get_by_role("button", name="Options").and_(page.locator(":visible")))
    page.get_by_label("Your variants").fill(f"the {MARKUP}\nAnna")
    expect(rows.first.locator("th")).to_contain_text(f"the {MARKUP}")
    expect(page.locator("#changes th", has_text="yours")).to_have_count(2)

    unfold(page, page.get_by_role("button", name="Where do the models disagree?"))
    page.get_by_role("button", name="Compare").and_(page.locator(":visible")).click()
    expect(page.locator("#disagreements tbody tr")).to_have_count(10)


def test_the_words_of_a_pair_are_shown_on_a_press_and_go_with_the_pair_and_a_model(page):
    page.get_by_role("button", name="Which words matter?").click()
    page.get_by_role("button", name="Leave out each word").click()
    expect(page.locator("#words .cse-words")).to_have_count(10)  # two of five models
    expect(page.locator("#words .cse-says")).to_contain_text("What draws the two together most")
    page.get_by_label("Sentence A").fill("another one")
    expect(page.locator("#words .cse-words")).to_have_count(0)
    page.get_by_role("button", name="Leave out each word").click()
    expect(page.locator("#words .cse-words").first).to_contain_text("another")
    page.locator("[popovertarget=models-panel]").first.click()
    page.locator("#chosen-models").get_by_label("ConPVP", exact=True).uncheck()
    expect(page.locator("#similarity tbody th")).to_have_text([name for name in SHOWN if name != "ConPVP"])
    expect(page.locator("#words .cse-words")).to_have_count(0)  # they were also those of a model that is left out
    models = page.locator("#models-panel")
    unfold(page, models.get_by_role("button", name="Add a model"))
    models.get_by_label("Model", exact=True).fill("extra")
    models.get_by_label("Model", exact=True).press("Enter")
    models.get_by_role("button", name="Add it").click()
    expect(models.locator("#added")).to_contain_text("extra is in every place")
    expect(page.locator("#similarity tbody tr")).to_have_count(len(SHOWN))
