"""The project's wheel, and pip as the tests call it."""

import subprocess
import sys
from pathlib import Path

from conftest import ROOT

PACKAGED = ("cse", "index", "pyproject.toml", "setup.py", "requirements.txt", "README.md", "LICENSE")


def pip(*words: object) -> "subprocess.CompletedProcess[str]":
    """The finished process of `pip WORDS...` with this Python."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def build_wheel(place: Path) -> Path:
    """The wheel, built beside tests and docs in a folder of links, so that no build files come into the repository."""
    source = place / "source"
    source.mkdir()
    for name in (*PACKAGED, "app.py", "scripts", "tests", "docs"):
        (source / name).symlink_to(ROOT / name)
    done = pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", place / "made", source)
    assert done.returncode == 0, done.stderr
    (made,) = (place / "made").glob("*.whl")
    return made
