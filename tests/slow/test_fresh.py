"""The wheel and a Space with what they declare and nothing else: what is not declared is missed.

Gigabytes are installed: scripts/test runs this file beside the linters and the other tests.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, SENTENCES
from packaging.requirements import Requirement
from served_space import served
from typer.testing import CliRunner
from wheels import build_wheel, pip

import cse
from cse.commands.deploy import app as deploy
from cse.publishing.space import CPU_WHEELS, Hardware, requirements

TORCH, *OTHERS = requirements((ROOT / "requirements.txt").read_text(), Hardware.CPU).splitlines()[1:]
# Elsewhere the package index has no other build than that for the CPU.
TORCH_FOR_CPU = f"{TORCH}+cpu" if sysconfig.get_platform() == "linux-x86_64" else TORCH
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
    "/map": {"source": "lines", "lines": LINES},
    "/selection": {"points": [0, 2], "model": "simcse", "source": "lines", "lines": LINES},
    "/changes": {"sentence": ONE},
    "/disagreements": {"source": "lines", "lines": LINES},
    "/xray": {"s1": ONE, "s2": OTHER},
    "/attention": {"sentence": ONE},
    "/duplicates": {"model": "simcse"},
    "/judge": {"first": "simcse", "second": "dcpcse", "questions": 5},
    "/verdict": {"first": 3, "second": 9},
    "/texts": {"texts": [ONE, OTHER]},
    "/vectors": {"model": "simcse", "corpus": "demo"},
    "/forget": {"key": "0" * 32},
    "/models": {},
    "/add_model": {"name": "bundled"},
    "/results": {"task": "sts"},
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


def install(place: Path, needs: Sequence[str]) -> Path:
    """The Python of the environment in `place`, made where there is none, in which pip installed these requirements.

    Where that fails PyTorch is fetched from its own index, which is asked for nothing else, and pip is asked once more.
    """
    python = place / "fresh" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "fresh"], check=True)
    (place / "needs.txt").write_text("\n".join(needs))
    words = ["--python", python, "install", "--no-compile", "--prefer-binary", "-r", place / "needs.txt"]
    done = pip(*words)
    if done.returncode:
        fetch = ("--retries", 1, "--timeout", 15, "--index-url", CPU_WHEELS, "--dest", place / "wheels", TORCH_FOR_CPU)
        pip("download", "--no-deps", *fetch)
        done = pip(*words, "--find-links", place / "wheels")
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1]
        if "CSE_REQUIRE_FRESH" in os.environ:
            pytest.fail(f"pip could not install what is declared: {done.stderr[-3000:]}")
        pytest.skip(f"pip can install nothing here: {said}")  # 2026-11
    return python


def required(wheel: Path) -> set[str]:
    """The packages that a wheel requires without its extras."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        lines = message_from_bytes(opened.read(name)).get_all("Requires-Dist", [])
    return {need.name for need in map(Requirement, lines) if not need.marker or need.marker.evaluate({"extra": ""})}


def test_the_wheel_and_then_a_space_run_with_what_they_declare_alone() -> None:
    """In the locked versions, so that a new version of somebody else's package fails no change of ours.

    The Space declares all that the wheel does, so the environment that had the wheel's requirements is one of its own.
    """
    with tempfile.TemporaryDirectory() as folder:  # pytest would keep the gigabytes of its last three runs
        place = Path(folder)
        (place / "lock.txt").write_text("\n".join([TORCH_FOR_CPU, *OTHERS]))
        wheel = build_wheel(place)
        python = install(place, [f"-c {place / 'lock.txt'}", str(wheel)])
        check_wheel(place, python)
        staged = place / "space"
        done = CliRunner().invoke(deploy, ["me/space", "--hardware", "cpu", "--dry-run", "--output", str(staged)])
        assert done.exit_code == 0, done.output
        needs = (staged / "requirements.txt").read_text().splitlines()
        assert needs[:2] == [f"--extra-index-url {CPU_WHEELS}", TORCH]
        assert required(wheel) - {Requirement(need).name for need in needs[1:]} == {"numpy"}  # which others bring
        pip("--python", python, "uninstall", "--yes", "contrastive-sentence-embeddings")
        check_space(staged, install(place, [TORCH_FOR_CPU, *needs[2:]]))


def check_wheel(place: Path, python: Path) -> None:
    empty = place / "empty"
    empty.mkdir()
    (empty / "text.txt").write_text("\n".join(SENTENCES))
    graded = "".join(f"{row % 6}\t{ONE}\t{text}\n" for row, text in enumerate(SENTENCES))
    (empty / "STSB").mkdir()
    (empty / "STSB" / "test.tsv").write_text(graded)
    (empty / "topics.tsv").write_text("".join(f"{row % 2}\t{text}\n" for row, text in enumerate(SENTENCES)))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run([*map(str, words)], cwd=empty, env=clean, capture_output=True, text=True)
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


def check_space(staged: Path, python: Path) -> None:
    assert subprocess.run([python, "-c", "import cse"], cwd="/", stderr=subprocess.DEVNULL).returncode  # only its own
    with served(staged, str(python)) as client:
        endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
        assert set(endpoints) == set(ASKED)
        answers = {name: client.predict(**given, api_name=name) for name, given in ASKED.items()}
    assert not [name for name, answer in answers.items() if '"error": "' in json.dumps(answer)]
    vectors = cse.load("simcse").encode([ONE, OTHER], normalize_embeddings=True)
    np.testing.assert_allclose(answers["/encode"]["vectors"], vectors, atol=1e-4)
    assert answers["/similarity"]["simcse"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-4)
