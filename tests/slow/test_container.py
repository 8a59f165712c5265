"""The files that the Dockerfile copies, without the packages that it leaves out, serves the app's comparisons."""

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from clients import app_client
from conftest import ROOT
from dockerfile import DOCKERFILE, of
from ports import free_port

import cse

LEFT_OUT = re.search(r"grep -vE '\^\((.*)\)=='", DOCKERFILE)

HIDE = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *given: None if name.partition(".")[0] in {absent} else find(name, *given)
"""


def test_the_app_of_the_image_compares_and_says_what_needs_pytorch(tmp_path: Path) -> None:
    for arguments in of("COPY"):
        *names, target = arguments.split()
        for name in names:
            place = tmp_path / (target if (ROOT / name).is_dir() else Path(target) / Path(name).name)
            place.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(
                ROOT / name, place, **({"ignore": shutil.ignore_patterns("bundled")} if copy is not shutil.copy else {})
            )
    (tmp_path / "cse" / "bundled").symlink_to(ROOT / "cse" / "bundled")
    assert LEFT_OUT
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(absent=LEFT_OUT[1].split("|")))
    port = free_port()
    words = [sys.executable, "app.py", "--port", str(port)]
    server = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, "the app stopped"
                time.sleep(0.5)
        asked = app_client(f"http://127.0.0.1:{port}")
        first, second = cse.load("simcse").encode(["a dog runs", "the cat sleeps"], normalize_embeddings=True)
        found = asked.predict("a dog runs", "the cat sleeps", api_name="/similarity")
        assert abs(found["simcse"] - float(first @ second)) < 1e-5
        for inside in ("/prefix", "/attention"):
            answer = asked.predict("a dog runs", api_name=inside)
            assert "needs PyTorch, which is not installed" in answer["dcpcse"]["error"], inside
    finally:
        server.terminate()
        server.wait(20)
