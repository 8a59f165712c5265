"""Models added while the app runs: what may be named, who sees it, and what happens to one that fails."""

import re
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from app_models import GOOD, write_model
from conftest import ROOT
from gradio.context import LocalContext

import cse
from cse.app import show
from cse.app.models.models import Column, columns, free_name
from cse.app.models.naming import Admission, title
from cse.app.models.recent import Bounds
from cse.app.results.similarity import Similarity
from cse.app.state import AppState, admit_model, open_state
from cse.app.training.request import GUESTS, OWN
from cse.app.training.trainings import Trainings
from cse.files import hub

PAIR = ("the dog is happy", "the cat is sad")


@pytest.fixture(scope="module")
def root(tmp_path_factory, bert_folder) -> Path:
    """Models to be added, links, and a folder beside it that must not be."""
    top = tmp_path_factory.mktemp("server")
    folder = top / "root"
    for number, name in enumerate(("simcse", "deep/dcpcse", "other", "third", "fourth")):
        write_model(folder / name, bert_folder, GOOD[number % 4], number)
    write_model(top / "outside", bert_folder, "simcse")
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text('{"method": {}}')
    (folder / "away").symlink_to(top / "outside")
    (folder / "near").symlink_to(folder / "simcse")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "part").mkdir()
    (folder / "part" / "config.json").symlink_to(top / "outside" / "config.json")
    return folder


@pytest.fixture
def state(root: Path, bert_folder: Path) -> AppState:
    return open_state([str(root / "third")], (), admission=Admission(root))


@contextmanager
def asking(visitor: str | None):
    """Answer a request of this visitor in the block."""
    token = LocalContext.request.set(SimpleNamespace(session_hash=visitor))
    try:
        yield
    finally:
        LocalContext.request.reset(token)


def test_nothing_outside_the_root_can_be_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    admission = Admission(root)
    assert admission.model("deep/dcpcse") == str((root / "deep" / "dcpcse").resolve())
    assert admission.model(" near ") == admission.model("deep/../simcse") == str((root / "simcse").resolve())
    assert admission.model("bundled") == "bundled"
    paths = ("../outside", "/", "simcse/../../outside", "file:///etc", "a\0b", "~")
    for name in (*paths, str(root / "simcse"), "cse", "cse/bundled"):  # the last ones are where the server runs
        with pytest.raises(ValueError, match="There is no model") as refused:
            Admission(root, fetch=True).model(name)
        assert str(root) not in str(refused.value).replace(name, "")
    for name in ("away", "away/", "part", "loop", "x" * 199):
        with pytest.raises(ValueError, match=r"There is no model|cannot download") as refused:
            admission.model(name)
    assert admission.offered()[7:] == ["broken", "deep/dcpcse", "fourth", "near", "other", "third"]
    for name, said in ((7, "not text"), ("", "is empty"), ("x" * 201, "at most 200")):
        with pytest.raises(ValueError, match=said):
            admission.model(name)


def test_hub_ids_are_for_servers_that_may_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cse.files.hub._answers", lambda: True)  # any attempt to reach it fails the test
    with pytest.raises(ValueError, match="cannot download"):
        Admission().model("someone/some-model")
    assert hub.reachable()
    for fetch in (False, True):
        with open_state(["simcse"], (), admission=Admission(fetch=fetch)).models.admitting():
            assert hub.reachable() == fetch


def test_what_visitors_fetch_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def model_info(api: object, name: str, revision: None, files_metadata: bool, timeout: float) -> SimpleNamespace:
        assert (files_metadata, timeout) == (True, hub.TIMEOUT_SECONDS)
        if name == "no/such":
            raise RuntimeError("404")
        sizes = {"model.safetensors": 1_900_000_000, "config.json": 1_000, "onnx/model.onnx": 9_000_000_000}
        files = sizes | ({"pytorch_model.bin": 200_000_000} if name == "some/large" else {})
        return SimpleNamespace(siblings=[SimpleNamespace(rfilename=file, size=size) for file, size in files.items()])

    monkeypatch.setattr("cse.files.hub._answers", lambda: True)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", model_info)
    cached = {"known/one"}
    monkeypatch.setattr("cse.app.models.naming.in_cache", cached.__contains__)
    monkeypatch.setattr("cse.app.models.naming.MAX_FETCHED", 2)
    admission = Admission(fetch=True)
    assert hub.download_size("some/model") == 1_900_001_000
    for name in ("some/model", "known/one", "some/model", "other/model"):
        assert admission.model(name) == name
        cached.add(name)
    for name, said in {
        "third/model": "This server has fetched 2 models",
        "some/large": '"some/large" has 2.1 GB',
        "no/such": 'The hub does not say what "no/such" is',
    }.items():
        with pytest.raises(ValueError, match=re.escape(said)):
            admission.model(name)


def test_a_reading_of_the_untrained_backbone_is_added_by_its_name(state: AppState) -> None:
    with asking("a"):
        column = admit_model(state, "Untrained (prompt)")
        assert (column.name, column.opened_by) == ("untrained (prompt)", ("bundled", "prompt", None, False))
        assert title(column.name) == "Untrained (prompt)"
        first, second = cse.load("bundled", "prompt").encode(PAIR, normalize_embeddings=True)
        cosine = show.ask(state, Similarity, dict(zip(("s1", "s2"), PAIR, strict=True))).json()[column.name]
        assert cosine == pytest.approx(float(first @ second), abs=1e-5)
    with pytest.raises(ValueError, match=r'There is no model "untrained \(best\)" to add'):
        Admission().model("untrained (best)")


def test_a_visitor_has_few_and_the_server_keeps_few(state: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cse.app.models.models.MAX_COLUMNS", 2)
    monkeypatch.setattr(state.models._visiting, "bounds", Bounds(1))
    with asking("a"):
        added = [admit_model(state, name) for name in ("fourth", "deep/dcpcse")]
        with pytest.raises(ValueError, match="remove yours"):
            admit_model(state, "other")
        assert [state.models._visiting.get(column.opened_by) is not None for column in added] == [False, True]
        answers = show.ask(state, Similarity, dict(zip(("s1", "s2"), PAIR, strict=True))).json()
        assert {type(cosine) for cosine in answers.values()} == {float}  # also of the one that was closed
        state.models.remove_added()
        assert [column.name for column in state.models.columns] == ["third"]


def test_a_model_that_fails_is_not_added_and_no_path_is_shown(state: AppState, root: Path) -> None:
    with asking("a"):
        with pytest.raises(ValueError, match="broken was not added") as refused:
            admit_model(state, "broken")
        assert str(root.parent) not in str(refused.value)
        assert [column.name for column in state.models.columns] == ["third"]


def test_the_owner_may_add_a_folder_by_its_path_and_others_an_archive_where_they_may_train(state, root, tmp_path):
    key, folder = "1" * 32, root.parent / "outside"
    archive = Path(shutil.make_archive(str(tmp_path / "sent"), "zip", folder))
    kept = tmp_path / "models"
    kept.mkdir()
    owned = replace(state, trainings=Trainings(OWN, kept))
    with asking("a"):
        assert admit_model(owned, str(folder)).name == "outside"
        with pytest.raises(ValueError, match=r"no config\.json in it"):
            admit_model(owned, str(tmp_path))
    guests = replace(state, trainings=Trainings(GUESTS, kept))
    with asking("b"):
        assert admit_model(guests, "", key, str(archive)).name == "sent"
        assert not archive.exists()
        shutil.copytree(folder, tmp_path / "damaged")
        (tmp_path / "damaged" / "model.safetensors").write_bytes(b"cut off")
        with pytest.raises(ValueError, match="was not added"):
            admit_model(guests, "", key, shutil.make_archive(str(tmp_path / "bad"), "zip", tmp_path / "damaged"))
        assert [made.name for made, request in guests.trainings.models(key) if request is None] == ["sent"]
    with asking("c"), pytest.raises(ValueError, match="Models are taken from the owner"):
        admit_model(state, "", key, str(tmp_path / "none.zip"))
    for trainings in (owned.trainings, guests.trainings):
        trainings.close()


def test_repeated_models_share_a_column_and_names_are_told_apart(tmp_path, monkeypatch):
    for name in ("a/run", "b/run"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = columns(["simcse", "a/run", str(tmp_path / "a" / "run"), "b/run", "simcse"])
    assert found == (
        Column("simcse", "simcse"),
        Column("run", str(tmp_path / "a" / "run")),
        Column(str(tmp_path / "b" / "run"), str(tmp_path / "b" / "run")),
    )
    assert free_name(("", "a", "b"), {"a"}) == "b"
