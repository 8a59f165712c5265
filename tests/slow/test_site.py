"""The site of docs/ builds without a warning: every page is in it, and every link leads to a page or heading of it."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from conftest import ROOT

pytest.importorskip("mkdocs", reason="2026-11-25: an environment made before mkdocs-material was pinned lacks it")

REFERENCE = {  # words of the pages that are made from the code
    "commands": ("build-index", "--learning-rate", "python -m scripts.adapt sentences.txt --output adapted"),
    "python": ("cse.load", "Encoder.encode_query", "VectorIndex.search", "Cosines (q, k) float32, best first"),
    "settings": ("temperature", "Divisor of the cosines in the loss", "from 0.0001"),
}


def test_the_site_builds_strictly_with_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said = [line for line in done.stderr.splitlines() if "not included in the nav" in line or ".md" in line]
    assert not said
    for page in (ROOT / "docs").glob("*.md"):
        place = tmp_path / "site" if page.stem == "README" else tmp_path / "site" / page.stem
        text = (place / "index.html").read_text()
        assert "<h1" in text
        for tag in ('<script src="http', '<link rel="stylesheet" href="http', '<img src="http'):
            assert tag not in text, f"{page.name}: {tag}"
    assert not list((tmp_path / "site").rglob("*.py"))
    for page, wanted in REFERENCE.items():
        text = (tmp_path / "site" / "reference" / page / "index.html").read_text()
        plain = unescape(re.sub(r"<[^>]+>", "", text))
        assert [each for each in wanted if each not in plain] == [], page
