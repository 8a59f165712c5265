"""scripts/setup.sh makes an environment once."""

import os
import subprocess
import zipfile
from pathlib import Path

from conftest import ROOT


def write_wheel(folder: Path, version: str) -> None:
    """Write a wheel of the package `one`, whose module knows its version."""
    folder.mkdir(exist_ok=True)
    record = f"one-{version}.dist-info"
    with zipfile.ZipFile(folder / f"one-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("one.py", f"version = '{version}'\n")
        wheel.writestr(f"{record}/METADATA", f"Metadata-Version: 2.1\nName: one\nVersion: {version}\n")
        wheel.writestr(f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{record}/RECORD", "")


def setup(clone: Path, code: int = 0) -> str:
    """What `setup requirements.txt` says in a clone whose packages lie in `wheels`, without a network."""
    words = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(clone / "wheels")}
    words |= {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(clone / "cache")}
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; . {ROOT / 'scripts' / 'setup.sh'}; setup requirements.txt"],
        cwd=clone, env={**os.environ, **words}, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr


def installed(clone: Path) -> str:
    # -B: two versions of one size, installed within a second, would share what Python has compiled.
    command = [clone / ".venv" / "bin" / "python", "-B", "-c", "import one; print(one.version)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_is_made_once_and_changed_with_its_requirements(tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        write_wheel(tmp_path / "wheels", version)
    (tmp_path / "requirements.txt").write_text("one==1.0\n")
    first, *others = setup(tmp_path).splitlines()
    assert first.startswith("Making the environment .venv with python3 ...")
    assert others[0] == "Installing requirements into .venv (a few minutes the first time) ..."
    assert installed(tmp_path) == "1.0"
    assert setup(tmp_path) == ""
    (tmp_path / "requirements.txt").write_text("one==2.0\n")
    assert "Making" not in setup(tmp_path)
    assert installed(tmp_path) == "2.0"
    (tmp_path / "requirements.txt").write_text("one==3.0\n")
    for _ in range(2):  # it is tried again
        assert "No matching distribution found for one==3.0" in setup(tmp_path, code=1)


def test_a_machine_without_a_gpu_gets_the_locks_versions_for_the_cpu() -> None:
    script = f". {ROOT / 'scripts' / 'setup.sh'}; for_cpu {ROOT / 'requirements.txt'}"
    lines = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    lock = (ROOT / "requirements.txt").read_text().splitlines()
    changed = ("torch==", "faiss")
    assert [line for line in lines if line.startswith(changed)] == ["torch==2.13.0+cpu", "faiss-cpu==1.15.1"]
    assert [line for line in lines if not line.startswith(changed)] == [x for x in lock if not x.startswith(changed)]
