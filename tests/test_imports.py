"""Nothing heavy is loaded before it is used; which folder may import which is in pyproject.toml (import-linter)."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import cse

HEAVY = (
    "torch", "transformers", "gradio", "faiss", "datasets", "sklearn", "scipy", "numpy", "matplotlib", "pyarrow",
    "tqdm",
)  # fmt: skip
NOT_COMMANDS = {"__init__", "__main__", "cli"}
COMMANDS = sorted(path.stem for path in (ROOT / "cse" / "commands").glob("*.py") if path.stem not in NOT_COMMANDS)

# One process for all: what is loaded stays loaded, so the first module that loads something heavy is named.
WATCH = f"""
import importlib, json, sys
loaded = {{}}
def look(what):
    new = [name for name in {HEAVY} if name in sys.modules and name not in sum(loaded.values(), [])]
    if new:
        loaded[what] = new
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    look(name)
    if name.startswith("cse.commands.") and hasattr(module, "app"):
        try:
            module.app(["--help"])
        except SystemExit:
            look(name + " --help")
print(json.dumps(loaded))
"""


def test_importing_a_command_and_its_help_load_nothing_heavy():
    commands = [f"cse.commands.{name}" for name in ("cli", "__main__", *COMMANDS)]
    names = ["cse", "index", "cse.evaluation", *commands, "cse.app.serving", "app"]
    done = subprocess.run([sys.executable, "-c", WATCH, *names], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == {}
    assert done.stdout.count("Usage:") >= 9


def test_each_command_can_be_run_in_a_clone():
    faces = {path.stem for path in Path(ROOT / "scripts").glob("*.py")} - {"__init__", "__main__"}
    assert faces == set(COMMANDS) - {"app"}  # whose face is app.py


def test_the_encoder_is_a_public_name_that_is_imported_at_its_first_use():
    from cse import Encoder, train
    from cse.encoder import encoder as home
    from cse.training import api

    assert cse.Encoder is Encoder is home.Encoder
    assert cse.train is train is api.train
    assert set(cse.__all__) <= set(dir(cse))
    names: dict[str, object] = {}
    exec("from cse import *", names)
    assert {*cse.__all__, "load", "Encoder", "train"} <= names.keys()
    with pytest.raises(AttributeError, match="no attribute 'Decoder'"):
        cse.Decoder  # noqa: B018


def test_nothing_installed_names_a_module_of_the_faces():
    """A wheel has no `scripts`, so a text that names `python -m scripts.NAME` is wrong where cse is installed."""
    shown = {
        (path.relative_to(ROOT).as_posix(), node.value)
        for package in ("cse", "index")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "scripts." in node.value
    }
    assert shown == set()
    files = (path for package in ("cse", "index") for path in (ROOT / package).rglob("*") if path.is_file())
    assert [path.name for path in files if path.suffix != ".pyc" and b"python -m scripts" in path.read_bytes()] == []


USERS_SCRIPT = """
import cse, numpy as np
cse.VectorIndex.build([(["a dog", "a cat"], np.eye(2))], "folder", settings=cse.BuildSettings())
index = cse.VectorIndex.load("folder")
index.add(["a cow"], np.ones((1, 2)))
index.save("folder")
assert index.hits(np.array([1, 0.9]), 1)[0].text == "a cow"
import index
assert index.WORD == "hers"
"""


@pytest.mark.parametrize("first", ["", "import index"])
def test_the_index_opens_beside_an_index_of_the_users_own(tmp_path, first):
    (tmp_path / "index.py").write_text("WORD = 'hers'")
    (tmp_path / "script.py").write_text(first + USERS_SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
