"""The wheel: its content, and that it runs; and the one command that holds all others."""

import ast
import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import fresh
import pytest
from command_line import exit_code, unboxed
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.version import Version
from typer.testing import CliRunner
from wheels import build_wheel

import cse
from cse.app import serving as app
from cse.commands.__main__ import app as group
from cse.models.space import Hardware, SpaceRequest, stage

SHARED = ("__init__", "__main__", "cli", "options")  # files that are no commands
FILES = sorted(path for path in (ROOT / "cse" / "commands").glob("*.py") if path.stem not in SHARED)
KNOWN = set("app build-index encode evaluate pretrain reproduce search search-templates tokens train".split())
CALLS = CliRunner()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    paths = [path for folder in ("cse", "index") for path in (ROOT / folder).rglob("*") if path.is_file()]
    expected = {path.relative_to(ROOT).as_posix() for path in paths if path.parent.name != "__pycache__"}
    assert {
        "cse/py.typed",
        "cse/bundled/dcpcse/model.safetensors",
        "cse/app/static/style.css",
        "cse/app/static/map.js",
    } <= expected
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected | {"cse/requirements.txt"}
    assert Path(str(wheel.filename)).stat().st_size < 100_000_000


def test_the_installed_package_deploys_what_a_clone_does(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    light = [each.filename for each in wheel.infolist() if each.file_size < 10**6]  # the rest takes long to copy
    wheel.extractall(tmp_path / "site", light)
    (tmp_path / "empty").mkdir()
    words = [sys.executable, "-m", "cse.commands", "deploy", "me/space", "--hardware", "cpu", "--dry-run"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(words, cwd=tmp_path / "empty", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    place, cloned = tmp_path / "empty" / "space", tmp_path / "cloned"
    stage(SpaceRequest("me/space", Hardware.CPU), cloned)
    found = {path.relative_to(place) for path in place.rglob("*") if path.is_file()}
    expected = {path.relative_to(cloned) for path in cloned.rglob("*") if path.is_file()}
    assert {path for path in expected if (cloned / path).stat().st_size < 10**6} == found
    for path in found:
        assert (place / path).read_bytes() == (cloned / path).read_bytes(), path


def test_the_wheel_and_then_a_space_run_with_what_they_declare_alone(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    fresh.check(Path(str(wheel.filename)), tmp_path)


def test_the_citation_and_the_changelog_name_this_version() -> None:
    found = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == cse.__version__
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    assert {f"version: {cse.__version__}", f"date-released: {found[2]}"} <= set(citation)


def test_the_lock_keeps_the_ranges(wheel: zipfile.ZipFile) -> None:
    ranges = {need.name: need.specifier for need in map(Requirement, metadata(wheel).get_all("Requires-Dist", []))}
    pinned: dict[str, list[Version]] = {}
    for file in ("requirements.txt", "tests/requirements.txt"):
        for need in map(Requirement, (ROOT / file).read_text().splitlines()):
            ((_, version),) = [(part.operator, part.version) for part in need.specifier]
            pinned.setdefault(need.name, []).append(Version(version))
    assert pinned.keys() - ranges.keys() == {"faiss-gpu"}  # of the lock alone
    segmenters = {"jieba", "fugashi", "pythainlp"}  # an extra of which each person needs one at most
    assert ranges.keys() - pinned.keys() == {"numpy", "ipywidgets", *segmenters}  # numpy comes with the others
    for name, versions in pinned.items():
        if name in ranges:
            assert all(version in ranges[name] for version in versions), name


WATCH = """
import sys
from cse.commands.__main__ import app
try:
    app(["--help"])
except SystemExit:
    heavy = ("torch", "numpy", "gradio")
    print(sorted(name for name in sys.modules if name.startswith("cse.commands.") or name in heavy))
"""


def test_the_help_of_the_group_imports_no_command() -> None:
    done = subprocess.run([sys.executable, "-c", WATCH], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['cse.commands.__main__', 'cse.commands.cli']"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A user's folder with modules of names that this project has too, each of which raises when it is imported."""
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/__init__.py", "scripts/train.py", "app.py", "index.py"):
        (tmp_path / name).write_text("raise RuntimeError(__file__)")
    return tmp_path


CSE = ("-c", "from cse.commands.__main__ import app; app(prog_name='cse')")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((*CSE, "--help"), 0, "Usage: cse [OPTIONS]"),
        # as `accelerate launch -m` runs it
        (("-m", "cse.commands.train", "--help"), 0, "Usage: python -m cse.commands.train [OPTIONS]"),
        (("-m", "cse.commands", "build-index", "--help"), 0, "build-index [OPTIONS] {corpus}"),
        ((*CSE, "search", "nowhere", "a query"), 4, "Error: nowhere: no such index folder"),
    ],
    ids=["help", "train", "build-index", "search"],
)
def test_a_folder_with_modules_of_the_same_names_does_not_get_in_the_way(
    foreign: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((".", str(ROOT)))}
    done = subprocess.run([sys.executable, *words], cwd=foreign, env=environment, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr


def test_the_group_lists_every_command_with_the_whole_first_line_of_its_file() -> None:
    shown = unboxed(CALLS.invoke(group, ["--help"]).output)
    names = [path.stem.replace("_", "-") for path in FILES]
    assert set(names) >= KNOWN
    for name, path in zip(names, FILES, strict=True):
        line = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]
        assert f" {name} {' '.join(line.split())}" in shown


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["serach"], 2, "No such command 'serach'. Did you mean 'search'?"),
        (["zzz"], 2, "No such command 'zzz'."),
        (["search", "nowhere", "a query"], 4, "Error: nowhere: no such index folder"),
        (["encode", "--model", "simcse", "--input", "nowhere.txt", "--output", "v.npz"], 3, "--output"),
    ],
)
def test_the_group_keeps_the_exit_codes_and_helps_with_a_mistyped_command(
    words: list[str], code: int, says: str
) -> None:
    done = CALLS.invoke(group, words)
    assert done.exit_code == code
    assert says in unboxed(done.stderr)


def test_the_app_says_what_is_missing_without_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    monkeypatch.setattr(app, "serve", lambda options: None)
    assert exit_code("app", []) == 3
    assert re.fullmatch(r"Error: the app needs Gradio; install it with: pip install gradio\n", capsys.readouterr().err)
