"""Bounds in bytes on what the server keeps for visitors, whatever they send."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cse.analysis.duplicates import Forest, NearDuplicates
from cse.app.corpus.corpora import Demo, IndexedCorpus
from cse.app.corpus.own import OwnCorpora
from cse.app.corpus.reading import MOST_HEADER, preview
from cse.app.models.models import Models
from cse.app.models.recent import Recent
from cse.app.results.map import ModelMap
from cse.app.state import AppState

MB = 2**20
# Twelve threads that live at once allocate small blocks; prints the number of glibc's arenas.
THREADS = """
import ctypes, re, sys, threading
from pathlib import Path
if sys.argv[2:] == ["app"]:
    from cse.commands.app import app
    try:
        app(["--model", sys.argv[1] + "-absent"])
    except SystemExit as end:
        assert end.code == 4  # it ends before it listens
libc, ready = ctypes.CDLL(None), threading.Barrier(12)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes, libc.malloc_info.argtypes = [ctypes.c_void_p], [ctypes.c_int, ctypes.c_void_p]
def work():
    libc.malloc(5000)
    ready.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
file = libc.fopen(sys.argv[1].encode(), b"w")
libc.malloc_info(0, file)
libc.fclose(file)
print(len(re.findall("<heap ", Path(sys.argv[1]).read_text())))
"""


@pytest.fixture
def state() -> AppState:
    models = Models([])
    return AppState(models, Demo(), OwnCorpora(models), dict[str, IndexedCorpus](), {})


def near_duplicates() -> NearDuplicates:
    return NearDuplicates(Forest(0, np.zeros((MB // 8, 2), np.int64), np.zeros(MB // 4), 0.9), (), 5.0)


def many_groups() -> tuple[np.ndarray, ...]:
    return np.zeros(MB // 4), np.zeros(MB // 4)


def large_map() -> ModelMap:
    return ModelMap(np.zeros((MB // 4, 2)), np.zeros(0), np.zeros(0), None, None, None)


@pytest.mark.parametrize(
    ("name", "make", "size"), [("maps", large_map, 4), ("groups", many_groups, 4), ("near", near_duplicates, 4)]
)
def test_maps_groups_and_near_duplicates_have_at_most_32_mb_each(state: AppState, name, make, size) -> None:
    kept: Recent = getattr(state, name)
    for number in range(12):
        kept.put(number, make())
    assert [number for number in range(12) if kept.get(number) is not None] == list(range(5, 12))
    assert 7 * size * MB < kept.size <= 32 * MB


def test_a_table_whose_header_is_too_long_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(",".join(f"column {number:06}" for number in range(1900)) + "\n" + "1," * 1899 + "a cat\n")
    assert len(preview(str(file)).columns) == 1900
    file.write_text(",".join(f"column {number:050}" for number in range(1900)) + "\n" + "1," * 1899 + "a cat\n")
    with pytest.raises(ValueError, match=f"columns have 108,300 characters; give at most {MOST_HEADER:,}"):
        preview(str(file))


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's arenas")
@pytest.mark.parametrize(
    ("how", "variable", "least", "most"), [("app", None, 1, 2), ("", None, 3, 99), ("app", "5", 3, 5)]
)
def test_threads_of_the_app_share_two_arenas_unless_the_environment_says_else(
    tmp_path: Path, monkeypatch, how: str, variable: str | None, least: int, most: int
) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    if variable:
        monkeypatch.setenv("MALLOC_ARENA_MAX", variable)
    said = subprocess.run(
        [sys.executable, "-c", THREADS, str(tmp_path / "info"), *([how] if how else [])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert least <= int(said.stdout) <= most
