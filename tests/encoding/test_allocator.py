"""Memory that training frees is used again."""

import os
import subprocess
import sys

import pytest

from cse.encoding.allocator import KERNELS, bound_kernels

SCRIPT = """
import ctypes, resource
from cse.encoding.allocator import keep_freed_memory
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def use(size=2**27):
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    libc.free(block)
def touched():
    use()
    before = faults()
    use()
    return faults() - before
first = touched()
keep_freed_memory()
print(first, touched())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc alone")
def test_a_freed_block_is_not_mapped_again_once_memory_is_kept() -> None:
    """A block of 128 MB, touched twice: page faults of the second time."""
    printed = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    mapped_anew, kept = map(int, printed.split())
    assert mapped_anew > 20
    assert kept < mapped_anew / 10


ARENAS = """
import ctypes, threading
from cse.encoding.allocator import keep_memory_flat
SHARE
libc, together = ctypes.CDLL(None), threading.Barrier(8)
libc.malloc.restype = ctypes.c_void_p
def use():
    together.wait()
    libc.malloc(1000)
    together.wait()
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.malloc_stats()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc alone")
def test_the_threads_of_a_server_share_two_arenas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    counts = []
    for call in ("keep_memory_flat()", ""):
        script = ARENAS.replace("SHARE", call)
        printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
        counts.append(printed.count("Arena "))
    assert counts[0] <= 2 < counts[1]


HOLES = """
import ctypes, os
from cse.encoding.allocator import give_back
from tests.bench.machine import resident_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
blocks = [libc.malloc(50_000) for _ in range(2000)]
for block in blocks:
    ctypes.memset(block, 1, 50_000)
for number, block in enumerate(blocks):
    if number % 20:
        libc.free(block)
before = resident_memory(os.getpid())
CALL
print(before - resident_memory(os.getpid()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc alone")
def test_free_pages_between_blocks_in_use_are_given_back() -> None:
    """Of 100 MB in blocks of 50 kB each twentieth stays: bytes that the process has less afterwards."""
    freed = []
    for call in ("give_back()", ""):
        script = HOLES.replace("CALL", call)
        printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        freed.append(int(printed))
    assert freed[0] > 80e6 > 10e6 > freed[1]


def test_kernels_are_bounded_unless_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, expected in ((None, 256), ("9", 9)):
        monkeypatch.delenv(KERNELS, raising=False) if given is None else monkeypatch.setenv(KERNELS, given)
        bound_kernels()
        assert int(os.environ[KERNELS]) == expected
