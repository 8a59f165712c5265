"""The memory allocator during training and in a server, and the compiled kernels that both keep."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from typing import Any

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # mallopt's numbers, from malloc.h
KEPT, MOST_BEFORE_2_35 = 2**30, 2**25  # bytes; older versions of glibc refuse a larger threshold for mapping
ARENAS, LARGE = 2, 2**20  # bytes
GIVEN_BACK = 30.0  # seconds from one time to the next

KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
MOST_KERNELS = 256  # a step of pretraining needs about 30; oneDNN keeps 1,024, of a megabyte and more in bfloat16


def bound_kernels() -> None:
    """Let oneDNN keep fewer compiled kernels, unless the environment says how many.

    It compiles one for every new shape, and shapes change from step to step. Only what was not yet asked for obeys.
    """
    os.environ.setdefault(KERNELS, str(MOST_KERNELS))


def keep_freed_memory() -> None:
    """Let glibc reuse the memory of freed tensors instead of giving it back to the system and asking for it again.

    By default every tensor above 32 MB is mapped anew, and the system clears each page of it at its first use. Does
    nothing where the C library is another.
    """
    mallopt = _mallopt()
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, KEPT) or mallopt(MMAP_THRESHOLD, MOST_BEFORE_2_35)
        mallopt(TRIM_THRESHOLD, KEPT)


def keep_memory_flat() -> None:
    """Let glibc give the memory of a server's large tensors back at once, and its threads share the rest.

    By default each thread has a place of its own to take memory from (8 a core), and a block is mapped alone only above
    a size that grows with what is freed: what the largest answer of each thread left behind stays. Threads that run
    already keep their places. What becomes free between blocks that stay is given back each half minute. Does nothing
    where the C library is another, and where `MALLOC_ARENA_MAX` says how many.
    """
    mallopt = _mallopt()
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(ARENA_MAX, ARENAS)
        mallopt(MMAP_THRESHOLD, LARGE)
        threading.Thread(target=_give_back_for_ever, daemon=True).start()


def give_back() -> None:
    """Let glibc give the free pages between the blocks in use back to the system, of which it keeps all by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _give_back_for_ever() -> None:
    while True:
        time.sleep(GIVEN_BACK)
        give_back()


def _mallopt() -> Any:
    return getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
