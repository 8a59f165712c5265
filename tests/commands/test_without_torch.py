"""Commands and the app's comparisons on a CPU import neither PyTorch nor transformers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, SENTENCES

import cse

WITHOUT = """
import atexit, importlib, json, sys
def check():
    print({"torch", "transformers"} & sys.modules.keys())
atexit.register(check)
def run(name, *words):
    from typer.testing import CliRunner
    done = CliRunner().invoke(importlib.import_module(f"scripts.{name}").app, list(map(str, words)))
    assert done.exit_code == 0, (name, done.output, done.exception)
    return done.stdout
"""
COMMANDS = """
text, folder = sys.argv[1:]
run("build_index", text, "--model", "dcpcse", "--output", f"{folder}/index")
hits = run("search", f"{folder}/index", "a dog in the park", "-k", "3", "--json")
run("encode", "--model", "conpvp", "--input", text, "--output", f"{folder}/v.npy", "--precision", "auto")
run("encode", "--model", "conpvp", "--input", text, "--output", f"{folder}/parts", "--shards", "2")
run("duplicates", text, "--model", "promptbert", "--output", f"{folder}/kept.csv")
words = run("tokens", "--model", "promptbert", "The river flooded the village.", "--json")
print(json.dumps([json.loads(hits)["results"], json.loads(words)]))
"""
APP = """
from cse.app.state.app_state import open_state
from cse.app.sections.similarity import similarity
from cse.app.sections.tokens import tokens
from cse.app.scoreboard.model_strip import descriptions
from cse.models.names import BUNDLED_NAMES
state = open_state(BUNDLED_NAMES, ())
found = similarity(state.models, "a dog runs", "the cat sleeps")
assert all(isinstance(value, float) for value in found.values()), found
assert all("learned" in each for each in descriptions(state.models).values())
print(json.dumps(found))
"""


def run_without_torch(code: str, *words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT + code, *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *_, found, imported = done.stdout.splitlines()
    assert imported == "set()"
    return found


def test_indexing_searching_encoding_and_tokens_need_no_pytorch(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    hits, words = json.loads(run_without_torch(COMMANDS, tmp_path / "text.txt", tmp_path))
    encoder = cse.load("dcpcse", backend="torch")
    vectors = encoder.encode(["a dog in the park", *SENTENCES], normalize_embeddings=True)
    ranked = np.argsort(-(vectors[1:] @ vectors[0]))[:3]
    assert [hit["text"] for hit in hits] == [SENTENCES[i] for i in ranked]
    expected = cse.load("promptbert", backend="torch").top_tokens("The river flooded the village.")
    assert [each["token"] for each in words] == [token for token, _ in expected]


def test_the_app_compares_without_pytorch() -> None:
    found = json.loads(run_without_torch(APP))
    for name, value in found.items():
        first, second = cse.load(name, backend="torch").encode(
            ["a dog runs", "the cat sleeps"], normalize_embeddings=True
        )
        assert value == pytest.approx(float(first @ second), abs=1e-5)
