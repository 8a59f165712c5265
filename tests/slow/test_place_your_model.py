"""Your model in a real browser: an adaptation from a press to a model that is taken away, votes, and who may train."""

import re
import shutil

from app_models import AtOnce, serving, write_model
from app_pages import NEEDS_BROWSER, WAIT, open_tab, unfold, watched
from playwright.sync_api import expect

from cse.adaptation.candidates import Trial, left_out
from cse.app.server.access import Rights, owner_address
from cse.app.training import training as training_module
from cse.app.training.request import OWN, REFUSED
from cse.app.training.trainings import Trainings

pytestmark = NEEDS_BROWSER
NAME = "mine <img src=x onerror=alert(1)>"


def choose_start(page, name):
    page.get_by_label("Start", exact=True).fill(name)
    page.get_by_role("option", name=name, exact=True).click()


def test_an_adaptation_gives_one_verdict_a_dial_and_a_model_beside_its_start(
    browser, bert_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(training_module, "CommandProcess", AtOnce)  # the test below has one of its own
    scores = Trial.scores

    def scored(self, name, vectors):  # as if one projection were the best
        result, points = scores(self, name, vectors), 5.0 if name == "projection -0.25" else -9.0
        gains = {axis: (points,) * 3 for axis in result.get("gains", {})}
        return {**result, **({"gains": gains} if gains else {})}

    monkeypatch.setattr(Trial, "scores", scored)
    monkeypatch.setattr(Trial, "training", lambda self: left_out("not tried"))
    trainings, shown = Trainings(OWN, tmp_path), write_model(tmp_path / "simcse", bert_folder, "simcse")
    with (
        serving([str(shown)], root=bert_folder.parent, trainings=trainings) as url,
        watched(browser, url, leaves_page=True) as page,
    ):
        open_tab(page, "Your model")
        choose_start(page, bert_folder.name)
        expect(page.locator("#start-reading")).to_contain_text("is read by the mean of its tokens")
        page.get_by_label("Name of the result").fill(NAME)
        page.get_by_role("button", name="Adapt", exact=True).click()
        expect(page.locator("#training [role=status]")).to_contain_text(re.compile("Finished|Failed"), timeout=9 * WAIT)
        training = next(entry.value for kept in trainings._trainings.values() for _, entry in kept.entries())
        assert (training.failure, training.request.method) == ("", "adapt")
        outcome = page.locator("#training .cse-outcome")
        lead, dot, _ = training.outcome.sentence.partition(". ")
        expect(outcome.locator("h2")).to_have_text(lead + dot.strip())
        page.get_by_text("All candidates on both axes").click()
        scored = page.locator("#training .cse-candidates tbody tr")
        expect(scored.nth(5)).to_be_visible()
        slider = page.get_by_role("slider", name=re.compile("Dial"))
        expect(slider).to_be_visible()
        # The plot may be drawn anew meanwhile.
        page.wait_for_function("document.querySelector('#dial-plot svg.marks')?.getBoundingClientRect().width > 500")
        before = page.locator("#dial-said").inner_text()
        slider.focus()
        page.keyboard.press("Home" if slider.input_value() == slider.get_attribute("max") else "End")
        slider.dispatch_event("pointerup")
        expect(page.locator("#dial-said")).not_to_have_text(before)
        page.get_by_role("button", name="Take this place").click()
        expect(outcome).to_contain_text(f"“{NAME} at dial ")
        expect(page.locator("#repeating")).to_contain_text("--dial")
        expect(page.get_by_role("button", name="Take this place")).to_be_hidden()  # it is taken
        packed = shutil.make_archive(str(tmp_path / "mine"), "zip", shown)
        page.locator("[popovertarget=models-panel]").first.click()
        models = page.locator("#models-panel")
        unfold(page, models.get_by_role("button", name="Add a model"))
        models.locator("input[type=file]").set_input_files(packed)
        expect(models.locator("#add-model")).to_contain_text("mine")
        models.get_by_role("button", name="Add it").click()
        expect(models.get_by_text("mine is in every place.")).to_be_visible()
        page.goto(f"{url}?tab=similarity&models=mine")
        expect(page.locator("#similarity tbody th")).to_have_text(["mine"])  # not beside the page's other models
    trainings.close()


def test_a_published_method_trains_in_a_process_of_its_own_that_stop_ends(browser, bert_folder, tmp_path):
    trainings, shown = Trainings(OWN, tmp_path), write_model(tmp_path / "simcse", bert_folder, "simcse")
    with serving([str(shown)], root=bert_folder.parent, trainings=trainings) as url, watched(browser, url) as page:
        open_tab(page, "Your model")
        choose_start(page, bert_folder.name)
        unfold(page, page.get_by_role("button", name="Methods as published"))
        page.get_by_role("radio", name="PromptBERT").check()
        page.get_by_role("button", name="Train", exact=True).click()
        expect(page.locator("#training h3")).to_have_text("my promptbert: PromptBERT on Demo (1,200)")
        page.get_by_role("button", name="Stop", exact=True).click()
        status = page.locator("#training [role=status]")
        expect(status).to_contain_text(re.compile("Stopped at|Finished"), timeout=3 * WAIT)
        expect(page.get_by_role("button", name="Train", exact=True)).to_be_enabled()
    trainings.close()


def test_votes_by_keys_end_in_a_verdict_that_a_reload_keeps_and_the_owner_alone_may_train(
    browser, bert_folder, tmp_path
):
    shown = [write_model(tmp_path / name, bert_folder, name, seed) for seed, name in enumerate(("simcse", "dcpcse"))]
    trainings, rights = Trainings(root=tmp_path, owner=OWN), Rights("t0ken")
    with serving(list(map(str, shown)), trainings=trainings, rights=rights) as url:
        with watched(browser, owner_address(url, "t0ken") + "&tab=your-model", leaves_page=True) as page:
            assert "t0ken" not in page.url
            expect(page.get_by_role("button", name="Adapt", exact=True)).to_be_visible()
            expect(page.get_by_text(OWN.promise)).to_be_visible()
        with watched(browser, url, leaves_page=True) as page:
            open_tab(page, "Your model")
            expect(page.get_by_text(REFUSED)).to_be_visible()
            expect(page.get_by_role("button", name="Adapt", exact=True)).to_have_count(0)
            vote(page)
    trainings.close()


def vote(page):
    """A refusal, votes by keys, and their verdict."""
    unfold(page, page.get_by_role("button", name="Which one do you prefer?"))
    for label, name in (("First model", "DCPCSE"), ("Second model", "DCPCSE")):
        page.get_by_label(label).click()
        page.get_by_role("option", name=name).last.click()  # the list of the field before may still fade
    page.get_by_role("button", name="Start voting").click()
    expect(page.get_by_text("Both models are DCPCSE; choose two different ones.")).to_be_visible()
    page.get_by_label("First model").click()
    page.get_by_role("option", name="SimCSE").click()
    page.get_by_role("button", name="Start voting").click()
    for number in range(6):
        question = page.locator(".cse-question")
        expect(question).to_contain_text(f"Vote {number + 1} of 20", timeout=3 * WAIT)
        assert "SimCSE" not in page.locator("#ballot").inner_text()
        page.keyboard.press("a" if number % 3 else "s")
    page.get_by_role("button", name="See the verdict").click()
    verdict = page.locator("#verdict .cse-verdict")
    expect(verdict).to_contain_text(re.compile("is better|Not distinguishable"))
    said = verdict.inner_text()
    page.reload()
    expect(verdict).to_have_text(said)
