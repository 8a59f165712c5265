"""Every command and snippet of the README runs as written, on small files of the kind it names."""

import csv
import importlib
import lzma
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import ROOT
from typer.testing import CliRunner

README = (ROOT / "README.md").read_text()
TOPICS = [line.split("\t") for line in (ROOT / "cse/bundled/demo/corpus.tsv").read_text().splitlines()]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


COMMANDS = [
    line.split("   #")[0].strip()
    for block in blocks("bash")
    for line in block.replace("\\\n", " ").splitlines()
    if line
]
# The recipe of the bundled models is run as written but for its length; of a repeated option the last one counts.
SHORTENED = {
    "scripts.pretrain": "--tokens 8192 --vocabulary 400 --layers 1",
    "scripts.train": "--max-steps 2 --eval-every 2",
    "scripts.reproduce": "--train-options '--max-steps 2 --eval-every 2' --only 'uncased, same'",
}
SCRIPTS = [line for line in COMMANDS if line.startswith("python -m scripts.")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files the README speaks of."""
    folder = tmp_path_factory.mktemp("readme")
    texts = [text for _, text in TOPICS[::15]]
    (folder / "sentences.txt").write_text("\n".join(texts))
    with (folder / "table.csv").open("w", newline="") as table:
        csv.writer(table).writerows([["text"], *([text] for text in texts)])
    (folder / "triplets.tsv").write_text("\n".join("\t".join(texts[i : i + 3]) for i in range(40)))
    pairs = (ROOT / "cse/bundled/demo/pairs.tsv").read_text()
    (folder / "dev.tsv").write_text(pairs)
    for name in ("STS12/a", "STS13/a", "STS14/a", "STS15/a", "STS16/a", "STSB/dev", "STSB/test", "SICK/test"):
        file = folder / "sts" / f"{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(pairs)
    labelled = "".join(f"{topic}\t{text}\n" for topic, text in TOPICS if topic in dict(TOPICS[:250]))
    for name in ("transfer/CR/all", "clustering/demo"):
        (folder / name).parent.mkdir(parents=True)
        (folder / f"{name}.tsv").write_text(labelled)
    documents = [text for _, text in TOPICS[:40]]
    (folder / "retrieval" / "demo").mkdir(parents=True)
    for name, rows in (
        ("corpus", [f"{number}\t{text}" for number, text in enumerate(documents)]),
        ("queries", ["q\tWhere can I hear music?"]),
        ("qrels", ["q\t3\t1"]),
    ):
        (folder / "retrieval" / "demo" / f"{name}.tsv").write_text("\n".join(rows))
    for name in ("wiki_a", "wiki_b", "mixed_domain"):
        (folder / f"{name}.txt.xz").write_bytes(lzma.compress("\n".join(text for _, text in TOPICS).encode()))
    for name in ("cse", "app.py", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}


def test_the_two_commands_stand_on_the_first_screen_and_are_executable() -> None:
    assert COMMANDS[:2] == ["scripts/demo", "scripts/test"]
    first_screen = README.split("---\n", 2)[2].splitlines()[:20]
    for name in COMMANDS[:2]:
        assert any(line.startswith(name) for line in first_screen)
        assert os.access(ROOT / name, os.X_OK)


def test_the_commands_of_the_readme_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, because the later commands use what the earlier ones made.

    The first runs as a process of its own; the others in this one, which spares a start of PyTorch each.
    """
    assert len(SCRIPTS) > 20
    first = subprocess.run(
        [sys.executable, *shlex.split(SCRIPTS[0])[1:]], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert first.returncode == 0, first.stderr
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for line in SCRIPTS[1:]:
        shortened = next((more for start, more in SHORTENED.items() if start in line and "wiki_a" in line), "")
        _, _, module, *arguments = shlex.split(f"{line} {shortened}")
        done = CliRunner().invoke(importlib.import_module(module).app, arguments)
        assert done.exit_code == 0, f"{line}\n{done.output[-1500:]}"
    assert (folder / "runs" / "mine" / "model.safetensors").is_file()


def test_the_python_snippet_runs(folder: Path) -> None:
    (snippet,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(2, 256) 0.")


def test_the_app_answers_on_the_port_it_was_given(folder: Path) -> None:
    (line,) = [line for line in COMMANDS if line.startswith("python app.py")]
    port = line.split("--port ")[1]
    server = subprocess.Popen([sys.executable, *shlex.split(line)[1:]], cwd=folder, env=environment())
    try:
        for _ in range(120):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5) as answer:
                    assert answer.status == 200
                return
            except OSError:
                assert server.poll() is None, "the app stopped"
                time.sleep(0.5)
        pytest.fail("no answer within a minute")
    finally:
        server.terminate()
        server.wait(20)


def test_files_named_in_the_readme_exist() -> None:
    for name in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / name).exists(), name
    for name in ("app.py", "cse", "index", "scripts", "tests", "requirements.txt", "LICENSE", "CHANGELOG.md"):
        assert (ROOT / name).exists(), name


def test_no_shipped_file_is_too_large_for_a_space_and_all_weights_fit_in_60_megabytes() -> None:
    sizes = {path: path.stat().st_size for path in (ROOT / "cse" / "bundled").rglob("*") if path.is_file()}
    assert max(sizes.values()) < 10_000_000
    assert sum(sizes.values()) < 60_000_000
    assert not [path for path in sizes if path.suffix in (".bin", ".pt", ".pkl", ".pth")]
