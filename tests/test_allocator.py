"""Memory that training frees is used again."""

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, resource
from cse.allocator import keep_freed_memory
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
