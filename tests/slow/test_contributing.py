"""The examples of CONTRIBUTING.md, applied to a copy of the project, do what they say."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import ROOT

import cse
from cse.encoder.backbone import load_backbone
from cse.files.writing import read_json
from cse.models.names import RECORD
from index import VectorIndex

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
DIFFS = re.findall(r"```diff\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nThe train\nwas late.\n\n2\n00:00:03,500 --> 00:00:04,000\nAgain.\n"
TRIPLETS = [
    ("A man plays the guitar.", "Someone is playing a guitar.", "The bank raised its interest rates."),
    ("The soup needs more salt.", "Add some salt to the soup.", "The train was late again."),
    ("The cat sleeps.", "Stock prices fell on Monday.", "The cat is asleep."),
]
MORE = [
    "scripts.encode --model cse/bundled/backbone --pooling first --backend torch --input docs/sentences.txt "
    "--output torch.npy",
    "scripts.build_index docs/sentences.txt --model promptbert --output folder",
    "scripts.search folder 'Where can I hear live music?' -k 3",
    "scripts.build_index more.txt --model promptbert --store zip://sentences.zip --append",
]
# Runs the commands, and prints what they print and what the modules of the copy answer.
RUN = """
import importlib, json, shlex, sys
import gradio as gr
from typer.testing import CliRunner
from cse.app import show
from cse.app.corpus.reading import file_corpus
from cse.app.files import as_csv
from cse.app.models.naming import TITLES
from cse.app.page import page
from cse.app.results import RESULTS
from cse.app.state import open_state

said = {}
for line in sys.argv[1:]:
    module, *words = shlex.split(line)
    done = CliRunner().invoke(importlib.import_module(module).app, words)
    assert done.exit_code == 0, f"{line}: {done.output}"
    said[line] = done.stdout
state = open_state(["simcse"], ())
said["parts"] = [block.elem_id for block in page(state).blocks.values() if isinstance(block, gr.HTML)]
(norms,) = [kind for kind in RESULTS if kind.key == "norms"]
answer = show.ask(state, norms, {"sentence": "The cat sleeps."})
said |= {"answer": answer.json(), "table": as_csv(answer), "title": TITLES["gist"], "html": show.page_html(answer)}
film = file_corpus("film.srt", "text", "start")
said["upload"] = [film.texts, film.labels]
print(json.dumps(said))
"""


def changes(diff: str) -> list[tuple[str, str, str]]:
    """The file, the lines that it has and those that take their place, of every hunk of a diff."""
    found = []
    for path, hunks in re.findall(r"^--- .*\n\+\+\+ b/(.*)\n((?:(?!--- (?:a/|/dev)).*\n)*)", diff, re.MULTILINE):
        for hunk in filter(None, hunks.split("@@\n")):
            lines = [(line[:1] or " ", line[1:]) for line in hunk.splitlines()]
            found.append(
                (path, *("".join(f"{text}\n" for sign, text in lines if sign in kept) for kept in (" -", " +")))
            )
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with every example applied, and the files that the examples read."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("cse", "index", "scripts", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("bundled"))
    (folder / "cse" / "bundled").symlink_to(ROOT / "cse" / "bundled")
    for diff in DIFFS:
        for path, before, after in changes(diff):
            file = folder / path
            known = file.read_text() if before else ""
            assert known.count(before) == 1 or not before, f"{path} has not one place with\n{before}"
            assert before or not file.exists(), path
            file.write_text(known.replace(before, after) if before else after)
    (folder / "film.srt").write_text(SUBTITLES)
    (folder / "more.txt").write_text("The concert begins at eight.\n")
    (folder / "triplets").mkdir()
    (folder / "triplets" / "demo.tsv").write_text("".join("\t".join(row) + "\n" for row in TRIPLETS))
    return folder


@pytest.fixture(scope="module")
def said(project: Path) -> dict[str, Any]:
    """What every command of the page prints in the copy, and every one of `MORE`, all run in one process."""
    lines = [line.removeprefix("python -m ") for line in COMMANDS if line.startswith("python")] + MORE
    env = {**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", RUN, *lines], cwd=project, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_every_section_has_an_example_and_every_command_runs_here() -> None:
    of_sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[2:]
    assert len(of_sections) == 6
    assert all("```diff" in section for section in of_sections)
    ours = ("scripts.train gist", "--pooling first", "triplets", "film.srt", "zip://")
    commands = [line for line in COMMANDS if not line.startswith("scripts/")]
    assert all(any(name in line for name in ours) for line in commands)
    for line in set(COMMANDS) - set(commands):
        assert os.access(ROOT / line.split()[0], os.X_OK)


def test_the_method_is_trained_with_its_settings_and_opens_by_itself(project: Path, said: dict[str, Any]) -> None:
    recorded = read_json(project / "runs" / "gist" / RECORD)
    assert recorded["method"]["name"] == "gist"
    settings = recorded["settings"]
    assert (settings["batch_size"], settings["learning_rate"], settings["dropout"]) == (16, 2e-4, 0.1)
    encoder = cse.load(str(project / "runs" / "gist"))  # opened by this project, which lacks the method
    assert encoder.reading.template.text == 'In one word, "[X]" is [MASK].'
    assert encoder.reading.at_mask
    assert said["title"] == "Gist"


def test_the_pooling_is_the_mean_of_the_embedding_layer_in_both_engines(project: Path, said: dict[str, Any]) -> None:
    model, tokenizer = load_backbone(ROOT / "cse" / "bundled" / "backbone")
    model.eval()
    wanted = []
    with torch.no_grad():
        for line in (ROOT / "docs" / "sentences.txt").read_text().splitlines():
            states = model.base_model(**tokenizer(line, return_tensors="pt"), output_hidden_states=True).hidden_states
            wanted.append(states[0].mean(1)[0].numpy())
    for name in ("first", "torch"):
        np.testing.assert_allclose(np.load(project / f"{name}.npy"), wanted, atol=1e-5)


def test_the_task_scores_the_share_of_triplets_in_order(said: dict[str, Any]) -> None:
    (scores,) = [text for line, text in said.items() if line.startswith("scripts.evaluate triplets")]
    assert "66.67" in scores  # the third triplet is the wrong way round


def test_the_result_is_on_the_page_with_its_endpoint_and_its_table(said: dict[str, Any]) -> None:
    norm = pytest.approx(float(np.linalg.norm(cse.load("simcse").encode("The cat sleeps."))), rel=1e-5)
    assert "norms" in said["parts"]
    assert said["answer"] == {"simcse": [{"norm": norm}]}
    assert said["table"].splitlines()[0] == "model,norm"
    assert "The longest vector has length" in said["html"]


def test_the_format_is_read_by_commands_and_uploads(project: Path, said: dict[str, Any]) -> None:
    wanted = cse.load("promptbert").encode(["The train was late.", "Again."], normalize_embeddings=False)
    np.testing.assert_allclose(np.load(project / "film.npy"), wanted, atol=1e-5)
    assert said["upload"] == [["The train was late.", "Again."], ["00:00:01,000", "00:00:03,500"]]


def test_the_store_answers_as_a_folder_does(project: Path, said: dict[str, Any]) -> None:
    in_store, in_folder = (text for line, text in said.items() if line.startswith("scripts.search"))
    assert in_store == in_folder != ""
    with zipfile.ZipFile(project / "sentences.zip") as packed:
        packed.extractall(project / "unpacked")
    assert len(VectorIndex.load(project / "unpacked")) == len(VectorIndex.load(project / "folder")) + 1
