"""Commands, the page and the app's comparisons on a CPU import neither PyTorch nor transformers."""

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, SENTENCES

import cse

PAIR = ["a dog runs", "the cat sleeps"]
CODE = """
import importlib, json, sys
text, folder, pair = sys.argv[1:3] + [sys.argv[3:]]
UNUSED = {"torch", "transformers"}
def run(name, *words):
    from typer.testing import CliRunner
    done = CliRunner().invoke(importlib.import_module(f"scripts.{name}").app, list(map(str, words)))
    assert done.exit_code == 0, (name, done.output, done.exception)
    assert not UNUSED & sys.modules.keys(), name
    return done.stdout

from cse.app.serving import build_app
build_app()
assert not {*UNUSED, "sklearn", "scipy.stats"} & sys.modules.keys(), "the page"

from cse.app.state import open_state
from cse.app.results.models import Models
from cse.app.results.similarity import Similarity
from cse.app.show import ask
state = open_state(("promptbert", "dcpcse"), ())
cosines = ask(state, Similarity, dict(zip(("s1", "s2"), pair))).json()
assert not ask(state, Models, {}).failed
assert not UNUSED & sys.modules.keys(), "the app's comparison"

run("build_index", text, "--model", "dcpcse", "--output", f"{folder}/index")
hits = run("search", f"{folder}/index", "a dog in the park", "-k", "3", "--json")
run("encode", "--model", "dcpcse", "--input", text, "--output", f"{folder}/v.npy", "--precision", "auto")
words = run("tokens", "--model", "promptbert", "The river flooded the village.", "--json")
prints = {column.name: state.models.encoder(column).fingerprint for column in state.models.columns}
print(json.dumps([json.loads(hits), json.loads(words), cosines, prints]))
"""


def test_the_page_the_apps_comparison_and_commands_need_no_pytorch_and_give_its_numbers(tmp_path):
    """One process for all, whose start takes seconds."""
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    words = [sys.executable, "-W", "error", "-c", CODE, str(tmp_path / "text.txt"), str(tmp_path), *PAIR]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    hits, tokens, cosines, fingerprints = json.loads(done.stdout.splitlines()[-1])
    for name, cosine in cosines.items():
        encoder = cse.load(name, backend="torch")
        first, second = encoder.encode(PAIR, normalize_embeddings=True)
        assert cosine == pytest.approx(float(first @ second), abs=1e-5)
        assert fingerprints[name] == encoder.fingerprint
        if name == "dcpcse":
            vectors = encoder.encode(["a dog in the park", *SENTENCES], normalize_embeddings=True)
            ranked = np.argsort(-(vectors[1:] @ vectors[0]))[:3]
            assert [hit["text"] for hit in hits] == [SENTENCES[i] for i in ranked]
        if name == "promptbert":
            expected = dict(encoder.top_tokens("The river flooded the village."))
            assert {row["token"]: row["probability"] for row in tokens} == pytest.approx(expected, abs=1e-5)
