"""A staged Space: the files in it, what it installs, that it serves from its folder, and the upload of it."""

import re
from pathlib import Path

import numpy as np
import pytest
from app_models import write_model
from conftest import ROOT, SENTENCES
from hub_stand_in import hub_at_hand
from served_space import served
from typer.testing import CliRunner

import cse
from cse.commands.deploy import app
from cse.models.space import Hardware, requirements
from index import BuildSettings, VectorIndex
from index.manifest import read_manifest

LOCK = (ROOT / "requirements.txt").read_text()
OWN = {"README.md", "requirements.txt", "space.py"}


def deploy(*words: object, code: int = 0) -> str:
    """The command's output: stdout if it succeeds, stderr if it fails."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.stderr if code else done.stdout


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def project_files() -> set[str]:
    """The files of the project that the hub must have."""
    paths = [path for name in ("cse", "index") for path in (ROOT / name).rglob("*") if path.is_file()]
    kept = [path for path in paths if path.parent.name != "__pycache__"]
    return {path.relative_to(ROOT).as_posix() for path in kept} | {"LICENSE"}


@pytest.mark.parametrize("hardware", list(Hardware))
def test_a_dry_run_leaves_what_a_space_needs_and_nothing_else(hardware, tmp_path):
    folder = tmp_path / "space"
    deploy("me/side-by-side", "--hardware", hardware.value, "--dry-run", "--output", folder)
    assert files_of(folder) == project_files() | OWN
    front = (folder / "README.md").read_text().split("---\n")[1]
    machine = {"zero-gpu": "zero-a10g", "cpu": "cpu-basic", "gpu": "t4-small"}[hardware.value]
    for line in ("sdk: gradio", "sdk_version: 6.31.0", 'python_version: "3.12"', "app_file: space.py"):
        assert front.count(f"{line}\n") == 1
    assert front.count(f"suggested_hardware: {machine}\n") == 1
    assert front.count("license: apache-2.0\n") == 1
    guarded = "spaces.GPU(" in (folder / "space.py").read_text()
    assert guarded == (hardware is Hardware.ZERO_GPU)


def test_requirements_fit_the_hardware():
    assert requirements(LOCK, Hardware.GPU) == LOCK
    cpu, zero = (requirements(LOCK, hardware).splitlines() for hardware in (Hardware.CPU, Hardware.ZERO_GPU))
    assert cpu[:2] == ["--extra-index-url https://download.pytorch.org/whl/cpu", "torch==2.13.0"]
    assert zero[0] == "torch==2.11.0"
    rest = [line for line in LOCK.splitlines()[1:] if not line.startswith("faiss")]
    for lines in (cpu[2:], zero[1:]):
        assert [line for line in lines if not line.startswith("faiss")] == rest
        assert [line for line in lines if line.startswith("faiss")] == ["faiss-cpu==1.15.1"]


def test_a_staged_app_serves_its_own_model_and_index_from_its_folder(tmp_path, bert_folder):
    backbone = tmp_path / "backbone"
    backbone.symlink_to(bert_folder)
    mine = write_model(tmp_path / "mine", backbone, "dcpcse")
    encoder = cse.load(str(mine))
    vectors = encoder.encode(SENTENCES, normalize_embeddings=True)
    settings = BuildSettings(model=str(mine.resolve()), fingerprint=encoder.fingerprint, corpus="text.txt")
    VectorIndex.build([(SENTENCES, vectors)], tmp_path / "index", settings=settings)
    folder = tmp_path / "staged"
    options = ["--model", mine, "--index", tmp_path / "index", "--model", "simcse"]
    deploy("me/space", "--hardware", "cpu", *options, "--dry-run", "--output", folder)

    own = files_of(folder) - project_files() - OWN
    embedded = {f"models/mine/backbone/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json")}
    assert own == {
        *(f"models/mine/{name}" for name in ("config.json", "model.safetensors")), *embedded,
        "models/mine/backbone/tokenizer_config.json",
        *(f"indexes/index/{name}" for name in ("index.faiss", "manifest.json", "texts.arrow")),
    }  # fmt: skip
    texts = [(folder / name).read_text() for name in own | OWN if name.endswith((".json", ".py", ".md"))]
    assert not any(str(tmp_path) in text for text in texts)  # nobody is told where it lay
    assert read_manifest(folder / "indexes" / "index").model == "models/mine"

    (tmp_path / "backbone").unlink()  # the Space has its own
    with served(folder) as client:
        hits = client.predict(SENTENCES[0], k=3, corpus="text.txt", api_name="/search")
    assert hits.keys() == {"mine"}
    expected = np.argsort(-vectors @ vectors[0])[:3]
    assert [hit["text"] for hit in hits["mine"]] == [SENTENCES[row] for row in expected]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["no-owner"], 3, "'no-owner' is not a valid name on the hub"),
        (["me/space"], 4, "the model hub cannot be reached"),
        (["me/space", "--dry-run", "--output", "HERE"], 3, "exists"),
        (["me/space", "--dry-run", "--model", "nowhere"], 4, "no model 'nowhere'"),
        (["me/space", "--dry-run", "--index", "milvus://127.0.0.1:1/mine"], 3, "mine: is on a server"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_leaves_no_folder(words, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = deploy(*[str(tmp_path) if word == "HERE" else word for word in words], code=code)
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", error).split())
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:It seems that you are about to commit a data file")  # an index's texts, on purpose
def test_a_space_deployed_again_keeps_nothing_that_was_dropped(tmp_path, bert_folder, monkeypatch):
    VectorIndex.build([(SENTENCES, np.eye(7, 32))], tmp_path / "texts", settings=BuildSettings(model="simcse"))
    mine = write_model(tmp_path / "mine", bert_folder, "dcpcse")
    monkeypatch.setattr("cse.models.space.PACKAGES", ())  # many megabytes, which are uploaded as anything else is
    with hub_at_hand(monkeypatch, tmp_path / "cache") as standing:
        deploy("me/space", "--hardware", "cpu", "--model", mine, "--index", tmp_path / "texts")
        of_others = {"notes.txt": b"mine", "assets/logo.png": b"drawn"}
        standing.commit(
            "spaces/me/space", "main", {**of_others, "cse/dropped.py": b"", "indexes/old/manifest.json": b""}
        )
        _, before = standing.find("spaces/me/space", "main")
        deploy("me/space", "--hardware", "cpu")
        _, after = standing.find("spaces/me/space", "main")
    assert {name.partition("/")[0] for name in before} >= {"models", "indexes"}
    assert after.keys() == {"LICENSE"} | OWN | of_others.keys()
