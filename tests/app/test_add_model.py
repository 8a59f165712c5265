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
from cse.app.corpus.corpora import Demo
from cse.app.models.models import Failure, error_line
from cse.app.models.naming import Admission, title
from cse.app.models.recent import Bounds
from cse.app.results.search import Search
from cse.app.results.similarity import Similarity
from cse.app.state import AppState, admit_model, open_state
from cse.app.training.request import GUESTS, OWN
from cse.app.training.trainings import FOLDERS_REFUSED, Trainings
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


def hits(state: AppState, query: str = PAIR[0]) -> dict[str, float]:
    """The highest cosine that each model finds in the demo corpus."""
    return {name: rows[0]["score"] for name, rows in show.ask(state, Search, {"query": query}).json().items()}


def best(model: str) -> float:
    """The same, computed here."""
    encoder = cse.load(model)
    return float(
        (
            encoder.encode(Demo().texts, normalize_embeddings=True) @ encoder.encode(PAIR[0], normalize_embeddings=True)
        ).max()
    )


def test_the_untrained_backbone_can_be_named_as_the_page_calls_it(root: Path) -> None:
    assert Admission(root).model("Untrained") == Admission().model(" untrained ") == "bundled"


def test_nothing_outside_the_root_can_be_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    admission = Admission(root)
    assert admission.model("deep/dcpcse") == str((root / "deep" / "dcpcse").resolve())
    assert admission.model(" near ") == admission.model("deep/../simcse") == str((root / "simcse").resolve())
    assert admission.model("bundled") == "bundled"
    paths = ("../outside", "..", ".", "/", "simcse/../../outside", "deep\\dcpcse", "file:///etc", "a\0b", "~", "-x")
    for name in (
        *paths,
        str(root / "simcse"),
        "cse",
        "index",
        "cse/bundled",
    ):  # the last ones are where the server runs
        with pytest.raises(ValueError, match="There is no model") as refused:
            Admission(root, fetch=True).model(name)
        assert str(root) not in str(refused.value).replace(name, "")
    for name in ("away", "away/", "part", "loop", "x" * 199):
        with pytest.raises(ValueError, match=r"There is no model|cannot download") as refused:
            admission.model(name)
    assert admission.offered()[5:7] == ["untrained (cls)", "untrained (prompt)"]
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
        "third/model": "This server has fetched 2 models and fetches no more.",
        "some/large": '"some/large" has 2.1 GB; this server fetches at most 2 GB.',
        "no/such": 'The hub does not say what "no/such" is',
    }.items():
        with pytest.raises(ValueError, match=re.escape(said)):
            admission.model(name)


def test_a_visitor_sees_his_own_columns_and_no_one_elses(state: AppState, root: Path) -> None:
    with asking("a"):
        assert admit_model(state, "other").name == "other"
        assert hits(state)["other"] == pytest.approx(best(str(root / "other")), abs=1e-5)
        with pytest.raises(ValueError, match="other is on your page already"):
            admit_model(state, "deep/../other")
    for visitor in ("b", None):
        with asking(visitor):
            assert list(hits(state)) == ["third"]
    with asking(None), pytest.raises(ValueError, match="has none"):
        admit_model(state, "other")
    assert [column.name for column in state.models.columns] == ["third"]


def test_a_reading_of_the_untrained_backbone_is_added_by_its_name(state: AppState) -> None:
    with asking("a"):
        column = admit_model(state, "Untrained (prompt)")
        assert (column.name, column.opened_by) == ("untrained (prompt)", ("bundled", "prompt", None))
        assert title(column.name) == "Untrained (prompt)"
        first, second = cse.load("bundled", "prompt").encode(PAIR, normalize_embeddings=True)
        cosine = show.ask(state, Similarity, dict(zip(("s1", "s2"), PAIR, strict=True))).json()[column.name]
        assert cosine == pytest.approx(float(first @ second), abs=1e-5)
        with pytest.raises(ValueError, match=r"Untrained \(prompt\) is on your page already"):
            admit_model(state, "untrained (prompt)")
        opened = [admit_model(state, name).opened_by for name in ("untrained", "untrained (cls)")]
        assert opened == [("bundled", "mean", None), ("bundled", "cls", None)]
        with pytest.raises(ValueError, match=r"Untrained \(mean\) is on your page already"):
            admit_model(state, "untrained (mean)")
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
        assert {type(score) for score in hits(state).values()} == {float}
        state.models.remove_added()
        assert [column.name for column in state.models.columns] == ["third"]


def test_a_model_that_fails_is_not_added_and_no_path_is_shown(state: AppState, root: Path) -> None:
    with asking("a"):
        with pytest.raises(ValueError, match="broken was not added") as refused:
            admit_model(state, "broken")
        assert str(root.parent) not in str(refused.value)
        assert [column.name for column in state.models.columns] == ["third"]
    failed = state.models.apply(lambda column, encoder: (_ for _ in ()).throw(OSError(f"{root}/x.bin, '/etc/pass wd'")))
    assert failed == {"third": Failure("x.bin, 'pass wd'")}
    assert error_line(ValueError("https://a.b/c and owner/name 1/2"), "m", "m") == "https://a.b/c and owner/name 1/2"


def test_the_owner_may_add_a_folder_by_its_path_and_others_an_archive_where_they_may_train(state, root, tmp_path):
    key, folder = "1" * 32, root.parent / "outside"
    for path in (str(folder), str(root), "/nowhere", "~", "../x"):
        with asking("a"), pytest.raises(ValueError, match=re.escape(FOLDERS_REFUSED)):
            admit_model(state, path)
    archive = Path(shutil.make_archive(str(tmp_path / "sent"), "zip", folder))
    kept = tmp_path / "models"
    kept.mkdir()
    owned = replace(state, trainings=Trainings(OWN, kept))
    with asking("a"):
        assert admit_model(owned, str(folder)).name == "outside"
        with pytest.raises(ValueError, match="outside is on your page already"):
            admit_model(owned, f" {folder}/ ")
        with pytest.raises(ValueError, match=r"no config\.json in it"):
            admit_model(owned, str(tmp_path))
    guests = replace(state, trainings=Trainings(GUESTS, kept))
    with asking("b"):
        assert admit_model(guests, "", key, str(archive)).name == "sent"
        assert not archive.exists()
        assert [made.name for made, request in guests.trainings.models(key) if request is None] == ["sent"]
    with asking("c"), pytest.raises(ValueError, match="Models are taken from the owner"):
        admit_model(state, "", key, str(tmp_path / "none.zip"))
    for trainings in (owned.trainings, guests.trainings):
        trainings.close()
