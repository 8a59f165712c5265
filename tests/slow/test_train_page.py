"""Training in a real browser: from a press to a column that a reload keeps, taken away and opened again."""

import re
import zipfile

import numpy as np
from app_models import AtOnce, serving, write_model
from app_pages import NEEDS_BROWSER, WAIT, open_tab, unfold, watched
from conftest import SENTENCES
from playwright.sync_api import expect
from sentence_transformers import SentenceTransformer

import cse
from cse.app.server.rights import Rights, owner_address
from cse.app.training import training as training_module
from cse.app.training.archive import unpack_model
from cse.app.training.rules import GUESTS, OWN, REFUSED
from cse.app.training.trainings import Trainings

pytestmark = NEEDS_BROWSER
CURVE_AND_BELOW = (".cse-course svg", ".cse-courses + p")
NAME = "mine <img src=x onerror=alert(1)>"


def test_a_training_is_watched_found_after_a_reload_taken_away_and_opened_again(browser, bert_folder, tmp_path):
    trainings = Trainings(OWN, tmp_path)
    shown = write_model(tmp_path / "simcse", bert_folder, "simcse")
    with (
        serving([str(shown)], root=bert_folder.parent, trainings=trainings) as url,
        watched(browser, url, leaves_page=True) as page,
    ):
        open_tab(page, "Train")
        page.get_by_role("radio", name="SimCSE", exact=True).locator("visible=true").check()
        page.get_by_label("Name of the result").fill(NAME)
        unfold(page, page.get_by_role("button", name="Settings: the published ones"))
        page.get_by_label("Model to start from").fill(bert_folder.name)
        page.get_by_role("option", name=bert_folder.name, exact=True).click()
        page.get_by_label("Max steps").fill("many")
        page.get_by_role("button", name="Train", exact=True).click()
        said = page.locator("#train-said")
        expect(said.get_by_role("alert")).to_have_text("Max steps is 'many'; give a number, or nothing.")
        page.get_by_label("Max steps").fill("4")
        page.get_by_label("Batch size").fill("8")
        page.get_by_role("button", name="Train", exact=True).click()
        expect(said).to_contain_text("for 1,200 texts, estimated from the speed")
        page.reload()
        open_tab(page, "Train")
        expect(page.locator("#training [role=status]")).to_contain_text(re.compile("Finished|Failed"), timeout=5 * WAIT)
        assert "Finished: 4 steps" in page.locator("#training").inner_text()
        expect(page.locator("#training h3").first).to_have_text(f"{NAME}: SimCSE on Demo (1,200)")
        expect(page.locator("#training .cse-outcome p").nth(1)).to_have_text(f"“{NAME}” is a column of your page now.")
        expect(page.locator("#training .cse-outcome h2")).to_have_text(
            re.compile("^Groups by your labels (better|equally well|worse); finding was not measured$")
        )
        expect(page.locator("#training .cse-course")).to_have_count(2)
        expect(page.locator("#training .cse-level")).to_have_count(1)
        curve, below = (page.locator(f"#training {each}").first.bounding_box() for each in CURVE_AND_BELOW)
        assert curve["y"] + curve["height"] <= below["y"]
        assert page.locator("#changes tbody tr").count() <= 10
        expect(page.locator("#models li", has_text=NAME)).to_have_count(1)
        with page.expect_download() as saved:
            page.get_by_role("button", name="Download (.zip)").click()
        assert saved.value.suggested_filename == "mine-img-src-x-onerror-alert-1.zip"
        (tmp_path / "unpacked").mkdir()
        opened = unpack_model(saved.value.path(), tmp_path / "unpacked" / "model", 10**8)
        made = trainings.newest(next(iter(trainings._owned))).outcome.models[0]
        vectors = [cse.load(str(folder)).encode(SENTENCES) for folder in (opened, made.folder)]
        np.testing.assert_array_equal(*vectors)
        unfold(page, page.get_by_role("button", name="Open a checkpoint of your own"))
        page.get_by_label("Folder on this computer").fill(str(tmp_path / "nothing"))
        page.get_by_role("button", name="Open it").click()
        expect(page.locator("#own-model-said")).to_contain_text("no config.json in it; give the folder of a model.")
        archive = {"name": "again.zip", "mimeType": "application/zip", "buffer": saved.value.path().read_bytes()}
        page.locator("#own-model input[type=file]").set_input_files(archive)
        page.locator("#own-model").get_by_label("again.zip", exact=True).wait_for()
        page.get_by_role("button", name="Open it").click()
        expect(page.locator("#own-model-said")).to_contain_text("again is a column of your page now")
        expect(page.locator("#models li", has_text="again")).to_have_count(1)
    trainings.close()


def test_the_choice_that_is_offered_first_adapts_and_says_what_to_do(browser, bert_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(training_module, "CommandProcess", AtOnce)  # the test above has one of its own
    trainings, shown = Trainings(OWN, tmp_path), write_model(tmp_path / "simcse", bert_folder, "simcse")
    with serving([str(shown)], root=bert_folder.parent, trainings=trainings) as url, watched(browser, url) as page:
        open_tab(page, "Train")
        expect(page.get_by_role("radio", name="Adapt (recommended)")).to_be_checked()
        unfold(page, page.get_by_role("button", name="Settings: the published ones"))
        page.get_by_label("Model to start from").fill(bert_folder.name)
        page.get_by_role("option", name=bert_folder.name, exact=True).click()
        page.get_by_role("button", name="Train", exact=True).click()
        expect(page.locator("#train-said")).to_contain_text("for 1,200 texts")
        expect(page.locator("#training [role=status]")).to_contain_text(re.compile("Finished|Failed"), timeout=9 * WAIT)
        training = trainings.newest(next(iter(trainings._owned)))
        assert (training.failure, training.request.method) == ("", "adapt")
        outcome = page.locator("#training .cse-outcome")
        said = f"{outcome.locator('h2').inner_text()}. {outcome.locator('p').first.inner_text()}"
        assert said == training.outcome.sentence
        expect(outcome.locator("tbody tr")).to_have_count(len(training.outcome.table) - 1)
        for made in training.outcome.models:
            with zipfile.ZipFile(trainings.archive(next(iter(trainings._owned)), made.name)) as archive:
                archive.extractall(tmp_path / made.folder.name)
            (unpacked,) = (tmp_path / made.folder.name).iterdir()
            opened = SentenceTransformer(str(unpacked), device="cpu")
            np.testing.assert_allclose(
                opened.encode(SENTENCES), cse.load(str(made.folder)).encode(SENTENCES), atol=1e-5
            )
            expect(page.locator("#models li", has_text=made.name)).to_have_count(1)
    trainings.close()


def test_the_owner_by_the_printed_address_may_train_and_a_visitor_is_told_how(browser, bert_folder, tmp_path):
    shown, rights = write_model(tmp_path / "simcse", bert_folder, "simcse"), Rights("t0ken")
    trainings = Trainings(root=tmp_path, owner=OWN)
    with serving([str(shown)], trainings=trainings, rights=rights) as url:
        with watched(browser, url) as page:
            open_tab(page, "Train")
            expect(page.get_by_text(REFUSED)).to_be_visible()
            expect(page.get_by_role("button", name="Train", exact=True)).to_have_count(0)
            unfold(page, page.get_by_role("button", name="Open a checkpoint of your own"))
            expect(page.locator("#own-model")).to_contain_text("Folders are for the owner of this server")
            expect(page.get_by_label("Folder on this computer")).to_have_count(0)
        with watched(browser, owner_address(url, "t0ken") + "&tab=train", leaves_page=True) as page:
            assert "t0ken" not in page.url
            assert page.evaluate("document.cookie") == ""
            for _ in range(2):
                expect(page.get_by_role("button", name="Train", exact=True)).to_be_visible()
                expect(page.get_by_text(REFUSED)).to_have_count(0)
                unfold(page, page.get_by_role("button", name="Settings: the published ones"))
                expect(page.get_by_role("spinbutton", name="Minutes at most")).to_have_value("30")
                unfold(page, page.get_by_role("button", name="Open a checkpoint of your own"))
                page.get_by_label("Folder on this computer").fill(str(tmp_path / "nothing"))
                page.get_by_role("button", name="Open it").click()
                expect(page.locator("#own-model-said")).to_contain_text("no config.json in it")
                page.reload()
                open_tab(page, "Train")
    trainings.close()


def test_a_guest_may_train_less_than_the_owner(browser, bert_folder, tmp_path):
    shown = write_model(tmp_path / "simcse", bert_folder, "simcse")
    trainings = Trainings(GUESTS, tmp_path, owner=OWN)
    with serving([str(shown)], trainings=trainings, rights=Rights("t0ken")) as url, watched(browser, url) as page:
        open_tab(page, "Train")
        expect(page.get_by_text(GUESTS.promise)).to_have_count(1)
        unfold(page, page.get_by_role("button", name="Settings: the published ones"))
        expect(page.get_by_role("spinbutton", name="Minutes at most")).to_have_value("15")
        unfold(page, page.get_by_role("button", name="Open a checkpoint of your own"))
        expect(page.get_by_label("Folder on this computer")).to_have_count(0)
        expect(page.get_by_role("button", name="Open it")).to_be_visible()
    trainings.close()
