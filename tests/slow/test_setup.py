"""scripts/setup.sh makes an environment once; scripts/test passes over no failure."""

import os
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


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


TESTS = """#!/bin/bash
[[ "$1" = -c || "$*" = *fetch.py || "$*" = "-m pip"* ]] && exit
[[ "$*" = *"--ignore tests/slow"* ]] && echo "fast tests ran" || echo "tests ran"
[ "$FAILING" != tests ]
"""


@pytest.mark.parametrize(
    ("words", "failing", "ran", "code"),
    [
        (["--all"], "", ["linters ran", "tests ran"], 0),
        (["--all"], "tests", ["linters ran", "tests ran"], 1),
        (["--all"], "linters", ["linters ran"], 1),
        ([], "", ["linters ran", "fast tests ran"], 0),
        (["tests/index/test_index.py"], "", ["linters ran", "tests ran"], 0),
    ],
)
def test_linters_and_the_tests_that_were_chosen_run_and_either_may_fail(
    words: list[str], failing: str, ran: list[str], code: int, tmp_path: Path
) -> None:
    executable(tmp_path / "scripts" / "test", (ROOT / "scripts" / "test").read_text())
    executable(tmp_path / "scripts" / "check", '#!/bin/bash\necho linters ran\n[ "$FAILING" != linters ]\n')
    executable(tmp_path / "scripts" / "setup.sh", "setup() { :; }\n")
    executable(tmp_path / "bin" / "chromium-headless-shell", "")
    executable(tmp_path / ".venv" / "bin" / "python", TESTS)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [tmp_path / "scripts" / "test", *words], env={**os.environ, "PATH": path, "FAILING": failing},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines() == ran


BOUND_PYTHON = """#!/bin/bash
case "$*" in
  *"-m venv"*) mkdir -p "${@: -1}/bin"; cp "$0" "${@: -1}/bin/python" ;;
  *"-m pytest"*) echo "tests ran in $0"; [ "$FAILING" != tests ] ;;
  *) echo torch==2.13.0 ;;
esac
"""
BOUND_SETUP = """CPU_WHEELS=
setup() { :; }
uv() { :; }
uv_install() { echo "installed $*"; [ "$1" = torch==2.13.0 ] || { echo "$UV_SAYS" >&2; [ -z "$UV_SAYS" ]; }; }
"""


@pytest.mark.parametrize(
    ("failing", "uv_says", "code", "said"),
    [
        ("", "", 0, ""),
        ("tests", "", 1, ""),
        ("", "error: No solution found when resolving dependencies", 1, "cannot be installed together"),
        ("", "cause: error sending request for url (https://a.test/simple/numpy/)", 75, "no network"),
    ],
)  # fmt: skip
def test_the_oldest_packages_are_passed_over_only_without_a_network(
    failing: str, uv_says: str, code: int, said: str, tmp_path: Path
) -> None:
    executable(tmp_path / "scripts" / "test", (ROOT / "scripts" / "test").read_text())
    executable(tmp_path / "scripts" / "setup.sh", BOUND_SETUP)
    executable(tmp_path / ".venv" / "bin" / "python", BOUND_PYTHON)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "requirements.txt").write_text("pytest==9.2.0\n")
    done = subprocess.run(
        [tmp_path / "scripts" / "test", "--lowest"], env={**os.environ, "FAILING": failing, "UV_SAYS": uv_says},
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, "/.venv-lowest/bin/python" in done.stdout) == (code, not uv_says), done.stderr
    assert said in done.stderr
    assert "installed --resolution lowest-direct -c .venv-lowest/torch.txt -r pyproject.toml" in done.stdout
