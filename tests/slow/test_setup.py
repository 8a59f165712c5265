"""scripts/setup.sh: what it asks pip for, and that it asks once; scripts/test: that it passes over no failure."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

LOCK = ROOT / "requirements.txt"
LINUX = os.uname().sysname == "Linux" and os.uname().machine == "x86_64"
pytestmark = pytest.mark.skipif(
    not LINUX or Path("/proc/driver/nvidia").exists(), reason="the choice is between builds for Linux x86-64 (2026-11)"
)
PYTHON = """#!/bin/bash
[ "$1" = -c ] && exec python3 "$@"
[ "$3" = config ] && exec cat config
[ "$2" = uv ] && [ -e refuse-uv ] && exit 1
shift 6
echo "$@" >>asked
for word in "$@"; do [ -f "$word" ] && cat "$word" >>read; done
[ -e refuse ] && grep -q for-cpu <<<"$*" && exit 1
[ -e refuse-index ] && grep -q extra-index <<<"$*" && exit 1
[ -e refuse-install-uv ] && [ "$*" = uv ] && exit 1
grep -q extra-index <<<"$*" && rm -f refuse
exit 0
"""


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the lock and an environment whose Python notes what pip is asked for."""
    executable(tmp_path / ".venv" / "bin" / "python", PYTHON)
    (tmp_path / "requirements.txt").write_text(LOCK.read_text())
    return tmp_path


def setup(clone: Path, code: int = 0) -> tuple[list[str], str]:
    """The arguments of pip, call by call, and the output."""
    (clone / "asked").write_text("")
    (clone / "read").write_text("")
    script = f"set -euo pipefail; . {ROOT / 'scripts' / 'setup.sh'}; setup requirements.txt"
    path = f"{clone / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=clone, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return (clone / "asked").read_text().splitlines(), done.stderr


def test_without_a_driver_the_builds_for_the_cpu_are_installed_once(clone: Path) -> None:
    asked, said = setup(clone)
    assert asked == ["-r .venv/for-cpu.txt"]
    assert "No NVIDIA driver here: PyTorch and FAISS for the CPU" in said
    lines = (clone / "read").read_text().splitlines()
    rest = [line for line in LOCK.read_text().splitlines() if not line.startswith(("torch", "faiss"))]
    assert [line for line in lines if line.startswith(("torch", "faiss"))] == ["torch==2.13.0+cpu", "faiss-cpu==1.15.1"]
    assert [line for line in lines if not line.startswith(("torch", "faiss"))] == rest
    assert setup(clone) == ([], "")


@pytest.mark.parametrize("refused", [(), ("refuse-install-uv",)])
def test_the_first_call_says_at_once_that_it_makes_the_environment_with_uv_where_it_can_be_had(
    clone: Path, refused: tuple[str, ...]
) -> None:
    for name in refused:
        (clone / name).touch()
    (clone / ".venv" / "bin" / "python").rename(clone / "made")
    makes = 'if [ "$1" = -c ]; then cat >/dev/null; else mkdir -p .venv/bin && mv made .venv/bin/python; fi'
    executable(clone / "bin" / "python3", f"#!/bin/bash\n{makes}\n")  # it reads what is piped to it, as Python does
    asked, said = setup(clone)
    assert said.splitlines()[0] == "Making the environment .venv with python3 ..."
    assert asked == ["uv", "-r .venv/for-cpu.txt"]


CONFIG = r"""
:env:.find-links='/wheels'
global.cert='/certificates'
global.extra-index-url='https://one.org/simple\nhttps://two.org/simple'
global.find-links='/others'
"""


def test_uv_looks_for_packages_where_pip_would_and_pip_takes_over_where_it_fails(clone: Path) -> None:
    (clone / ".venv" / "lib" / "python3.11" / "site-packages" / "uv").mkdir(parents=True)
    (clone / "config").write_text(CONFIG)
    ((asked,), _) = setup(clone)
    assert asked.split("--", 1)[1] == (
        "index-strategy unsafe-best-match --extra-index-url https://one.org/simple "
        "--extra-index-url https://two.org/simple --find-links /wheels -r .venv/for-cpu.txt"
    )
    (clone / "refuse-uv").touch()
    (clone / "requirements.txt").write_text("torch==2.14.0\n")
    assert setup(clone)[0] == ["-r .venv/for-cpu.txt"]


def test_pytorchs_own_index_is_asked_for_pytorch_alone(clone: Path) -> None:
    (clone / "refuse").touch()
    asked, _ = setup(clone)
    assert [line.split()[-1] for line in asked] == [".venv/for-cpu.txt", "torch==2.13.0+cpu", ".venv/for-cpu.txt"]
    assert "--no-deps --extra-index-url https://download.pytorch.org/whl/cpu" in asked[1]


def test_where_they_cannot_be_had_the_lock_is_installed_and_said(clone: Path) -> None:
    (clone / "refuse").touch()
    (clone / "refuse-index").touch()
    asked, said = setup(clone)
    assert asked[-1] == "-r requirements.txt"
    assert said.splitlines()[-1].endswith("the lock as it is, CUDA's libraries included")
    assert setup(clone) == ([], "")


def test_with_a_driver_the_lock_is_installed(clone: Path) -> None:
    executable(clone / "bin" / "nvidia-smi", "#!/bin/sh\nexit 0\n")
    asked, said = setup(clone)
    assert asked == ["-r requirements.txt"]
    assert "CPU" not in said
    executable(clone / "bin" / "nvidia-smi", "#!/bin/sh\nexit 9\n")  # installed, and finds no driver
    (clone / "requirements.txt").write_text("torch==2.14.0\n")
    assert setup(clone)[0] == ["-r .venv/for-cpu.txt"]


def test_an_environment_keeps_the_builds_that_it_has(clone: Path) -> None:
    (clone / ".venv" / "lib" / "python3.11" / "site-packages" / "torch").mkdir(parents=True)
    assert setup(clone)[0] == ["-r requirements.txt"]
    (clone / ".venv" / "for-cpu").touch()
    (clone / "requirements.txt").write_text("torch==2.14.0\n")
    assert setup(clone)[0] == ["-r .venv/for-cpu.txt"]
    for name in ("refuse", "refuse-index"):
        (clone / name).touch()
    (clone / "requirements.txt").write_text("torch==2.15.0\n")
    asked, said = setup(clone, code=1)  # the lock's FAISS would be put over that for the CPU
    assert "-r requirements.txt" not in asked
    assert said.splitlines()[-1] == "Error: PyTorch for the CPU cannot be had now (.venv/for-cpu.log); try again"


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
has() { :; }
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
