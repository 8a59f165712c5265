"""The wheel and a Space with what they declare and nothing else: what is not declared is missed.

A fresh environment has links to the packages of this one, so nothing is downloaded.
"""

import json
import os
import shutil
import subprocess
import venv
import zipfile
from collections import Counter
from collections.abc import Iterable
from email import message_from_bytes
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, SENTENCES
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from served_space import served
from small_models import small_bundled
from typer.testing import CliRunner
from wheels import pip

import cse
from cse.commands.deploy import app as deploy
from cse.models.names import BUNDLED_NAMES
from cse.models.space import CPU_WHEELS, Hardware, requirements

TORCH = requirements((ROOT / "requirements.txt").read_text(), Hardware.CPU).splitlines()[1]
ONE, OTHER = SENTENCES[:2]
LINES = "\n".join(f"{text} | {ONE}" for text in SENTENCES[1:5])
ASKED = {
    "/encode": {"texts": [ONE, OTHER], "model": "simcse", "normalize": True},
    "/similarity": {"s1": ONE, "s2": OTHER},
    "/words": {"s1": ONE, "s2": OTHER},
    "/pairs": {"lines": LINES},
    "/search": {"query": ONE, "k": 2},
    "/tokens": {"sentence": ONE, "k": 2},
    "/template": {"sentence": ONE, "template": '"[X]" is [MASK]', "k": 2},
    "/map": {"most": 100},
    "/groups": {"groups": 2},
    "/neighbours": {},
    "/changes": {"sentence": ONE},
    "/disagreements": {},
    "/attention": {"sentence": ONE},
    "/prefix": {"sentence": ONE},
    "/prototypes": {"sentence": ONE},
    "/duplicates": {"model": "simcse"},
    "/judge": {"first": "simcse", "second": "dcpcse", "votes": 6},
    "/texts": {"texts": [ONE, OTHER]},
    "/forget": {"key": "0" * 32},
    "/models": {},
    "/add_model": {"name": "bundled"},
    "/scores": {"task": "sts"},
    "/labels": {},
    "/ledger": {},
}
# Commands that between them import everything that is required, in one process: each would start PyTorch again.
USED = """
import json
import cse
from cse.commands.__main__ import app

for words in (
    "build-index text.txt --model dcpcse --output index",
    "train simcse --data text.txt --dev STSB/test.tsv --output run --batch-size 4 --max-steps 1 --precision no",
    "evaluate geometry --model simcse --data . --figures figures",
    "evaluate clustering --model simcse --data topics.tsv",
):
    assert not app(words.split(), standalone_mode=False), words
print(json.dumps(cse.load("simcse").encode(["a"]).tolist()))
"""


def applicable(needs: Iterable[str], extra: str = "") -> list[Requirement]:
    """The requirements that hold here, with an extra."""
    found = map(Requirement, needs)
    return [need for need in found if not need.marker or need.marker.evaluate({"extra": extra})]


def declared(needs: Iterable[str]) -> list[Distribution]:
    """The installed packages that requirements and their own requirements name. Fails where a version is another."""
    found: dict[str, Distribution] = {}
    waiting, seen = applicable(needs), set()
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        if (name, *sorted(need.extras)) in seen:
            continue
        seen.add((name, *sorted(need.extras)))
        found[name] = here = distribution(name)
        assert need.specifier.contains(here.version, prereleases=True), f"{need}: {here.version} is installed"
        for extra in ("", *need.extras):
            waiting += applicable(here.requires or [], extra)
    return list(found.values())


def top_level(package: Distribution) -> set[str]:
    """The names of a package's files and folders in site-packages."""
    return {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}


@cache
def owners() -> Counter[str]:
    """How many packages have files under a name in site-packages."""
    return Counter(name for package in distributions() for name in top_level(package))


def environment(place: Path, needs: Iterable[str]) -> Path:
    """The Python of the environment in `place`, made where there is none, with links to what is declared."""
    folder = place / "fresh"
    if not folder.exists():
        venv.create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in declared(needs):
        for name in top_level(package):
            if owners()[name] == 1:
                link(site / name, Path(package.locate_file(name)))
        for file in package.files or []:  # of folders that several packages share
            if owners()[file.parts[0]] > 1:
                link(site / file, Path(package.locate_file(file)))
    return folder / "bin" / "python"


def link(path: Path, target: Path) -> None:
    if target.exists() and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def required(wheel: Path) -> list[str]:
    """What a wheel requires without its extras."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        lines = message_from_bytes(opened.read(name)).get_all("Requires-Dist", [])
    return [str(need) for need in applicable(lines)]


def check(wheel: Path, place: Path) -> None:
    """The Space declares all that the wheel does, so the environment with the wheel's requirements is one of its own.

    In the locked versions, so that a new version of somebody else's package fails no change of ours.
    """
    try:
        python = environment(place, required(wheel))
    except PackageNotFoundError as missing:
        if missing.name != "faiss-cpu":
            raise  # it is declared, and neither the lock nor the tests' requirements bring it
        pytest.skip("a GPU's environment has faiss-gpu in place of faiss-cpu (2026-11)")
    done = pip("--python", python, "install", "--no-deps", "--no-compile", wheel)
    assert done.returncode == 0, done.stderr
    check_wheel(place, python)
    staged = place / "space"
    staging = CliRunner().invoke(deploy, ["me/space", "--hardware", "cpu", "--dry-run", "--output", str(staged)])
    assert staging.exit_code == 0, staging.output
    index, *needs = (staged / "requirements.txt").read_text().splitlines()
    assert [index, needs[0]] == [f"--extra-index-url {CPU_WHEELS}", TORCH]
    theirs, ours = ({Requirement(need).name for need in each} for each in (required(wheel), needs))
    assert theirs - ours == {"numpy"}  # which others bring
    pip("--python", python, "uninstall", "--yes", "contrastive-sentence-embeddings")
    small = small_bundled(place / "small")  # each endpoint asks all models
    for name in ("backbone", *BUNDLED_NAMES):
        shutil.rmtree(staged / "cse" / "bundled" / name)
        shutil.copytree(small / name, staged / "cse" / "bundled" / name)
    check_space(staged, environment(place, needs), small)


def clean() -> dict[str, str]:
    """The variables of this process, but for the place of this project."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def check_wheel(place: Path, python: Path) -> None:
    empty = place / "empty"
    empty.mkdir()
    (empty / "text.txt").write_text("\n".join(SENTENCES))
    graded = "".join(f"{row % 6}\t{ONE}\t{text}\n" for row, text in enumerate(SENTENCES))
    (empty / "STSB").mkdir()
    (empty / "STSB" / "test.tsv").write_text(graded)
    (empty / "topics.tsv").write_text("".join(f"{row % 2}\t{text}\n" for row, text in enumerate(SENTENCES)))

    def run(*words: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run([*map(str, words)], cwd=empty, env=clean(), capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    command = python.parent / "cse"
    assert run(command, "--version").stdout == f"cse {cse.__version__}\n"
    assert run(command, "app", code=3).stderr == "Error: the app needs Gradio; install it with: pip install gradio\n"
    found = json.loads(run(python, "-c", USED).stdout.splitlines()[-1])
    np.testing.assert_allclose(found, cse.load("simcse").encode(["a"]), atol=1e-5)
    assert (empty / "index" / "index.faiss").is_file()
    assert (empty / "run" / "model.safetensors").is_file()
    assert list((empty / "figures").iterdir())


def check_space(staged: Path, python: Path, models: Path) -> None:
    alone = subprocess.run([python, "-c", "import cse"], cwd="/", env=clean(), stderr=subprocess.DEVNULL)
    assert alone.returncode  # only its own
    with served(staged, str(python)) as client:
        endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
        assert set(endpoints) == set(ASKED)
        answers = {name: client.predict(**given, api_name=name) for name, given in ASKED.items()}
    assert not [name for name, answer in answers.items() if '"error": "' in json.dumps(answer)]
    vectors = cse.load(str(models / "simcse")).encode([ONE, OTHER], normalize_embeddings=True)
    np.testing.assert_allclose(answers["/encode"]["vectors"], vectors, atol=1e-4)
    assert answers["/similarity"]["simcse"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-4)
