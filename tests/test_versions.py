"""Packages that are too old are named in one line, with the bounds that pyproject.toml has."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.requirements import Requirement

import cse
from cse.versions import OPTIONAL, REQUIRED, check_versions

LIST = r'\[\n?((?:\s*".*",?\n?)+)\]'


def bounds(field: str) -> dict[str, str]:
    """The lower bounds of a list in pyproject.toml."""
    found = re.search(rf"^{field} = {LIST}", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    needs = map(Requirement, re.findall(r'"([^"]+)"', found[1]))
    return {need.name: part.version for need in needs for part in need.specifier if part.operator == ">="}


def installed(folder: Path, *packages: str) -> Path:
    """A folder in which these packages seem to be installed, to go before others on the path."""
    for package in packages:
        (folder / f"{package}.dist-info").mkdir(parents=True)
    return folder


def test_the_bounds_are_those_of_pyproject():
    assert bounds("dependencies") == REQUIRED
    assert bounds("app") | bounds("openvino") | bounds("onnx") == OPTIONAL


@pytest.mark.parametrize(
    ("packages", "optional", "line"),
    [
        (["torch-2.7.1+cpu"], (), "too old: torch 2.7.1; run: pip install 'torch>=2.8.0'"),
        (["faiss_cpu-1.10.0", "scikit_learn-1.4.2"], (),
         "too old: faiss-cpu 1.10.0, scikit-learn 1.4.2; run: pip install 'faiss-cpu>=1.11.0' 'scikit-learn>=1.5.0'"),
        (["gradio-6.30.0"], ("gradio",), "too old: gradio 6.30.0; run: pip install 'gradio>=6.31.0'"),
        (["gradio-6.30.0"], (), ""),
        (["transformers-5.0.0", "torch-2.10.0a0", "typer-0.19.0"], (), ""),
    ],
    ids=str,
)  # fmt: skip
def test_a_package_that_is_too_old_is_named(tmp_path, monkeypatch, packages, optional, line):
    monkeypatch.syspath_prepend(installed(tmp_path, *packages))
    if not line:
        check_versions(*optional)
        return
    with pytest.raises(ValueError, match=re.escape(line)):
        check_versions(*optional)


def test_models_and_trainings_are_not_opened_with_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(installed(tmp_path, "transformers-4.57.6"))
    with pytest.raises(ValueError, match=r"too old: transformers 4\.57\.6"):
        cse.load("simcse")
    with pytest.raises(ValueError, match=r"too old: transformers 4\.57\.6"):
        cse.train("simcse", ["a", "b"], output=tmp_path / "run")


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["-m", "scripts.search", "--help"], "typer-0.12.5"),
        (["app.py", "--port", "1"], "gradio-6.2.0"),
    ],
    ids=str,
)
def test_a_command_ends_with_one_line(tmp_path, words, package):
    environment = {**os.environ, "PYTHONPATH": str(installed(tmp_path, package))}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    name, version = package.split("-")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert f"Error: too old: {name} {version}; run: pip install '{name}>=" in done.stderr
