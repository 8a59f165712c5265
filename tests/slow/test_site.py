"""The site of docs/ builds without a warning: every page is in it, and every link leads to a page or heading of it."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

pytest.importorskip("mkdocs", reason="2026-11-25: an environment made before mkdocs-material was pinned lacks it")


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
