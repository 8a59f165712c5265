"""Settings of the memory allocator for training and servers, and of oneDNN's kernel cache."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from typing import Any

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # parameters of mallopt, from malloc.h
KEPT, MOST_BEFORE_2_35 = 2**30, 2**25  # bytes; older versions of glibc refuse a larger mmap threshold
ARENAS, LARGE = 2, 2**20  # bytes
GIVEN_BACK = 30.0  # seconds between two calls of `give_back`

KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
MOST_KERNELS = 256  # a step of pretraining needs about 30; oneDNN keeps 1,024, of a megabyte and more in bfloat16


def bound_kernels() -> None:
    """Limit oneDNN's cache of compiled kernels, unless the environment sets its size.

    It compiles a kernel for every new shape, and shapes change from step to step. Call before the first product.
    """
    os.environ.setdefault(KERNELS, str(MOST_KERNELS))


def keep_freed_memory() -> None:
    """Make glibc reuse the memory of freed tensors instead of returning it to the system.

    By default every tensor above 32 MB is mapped anew, and the system clears each page at its first use. Does nothing
    with another C library.
    """
    mallopt = _mallopt()
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, KEPT) or mallopt(MMAP_THRESHOLD, MOST_BEFORE_2_35)
        mallopt(TRIM_THRESHOLD, KEPT)


def keep_memory_flat() -> None:
    """Make glibc return the memory of a server's large tensors at once and share the rest among its threads.

    By default threads have arenas of their own (8 per core), and the size above which a block is mapped separately
    grows with the blocks freed, so each thread keeps the memory of its largest answer. Threads that already run keep
    their arenas. Free pages between used blocks are returned every half minute. Does nothing with another C library
    or if `MALLOC_ARENA_MAX` is set.
    """
    mallopt = _mallopt()
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(ARENA_MAX, ARENAS)
        mallopt(MMAP_THRESHOLD, LARGE)
        threading.Thread(target=_give_back_for_ever, daemon=True).start()


def give_back() -> None:
    """Return the free pages between used blocks to the system, which glibc does not do by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _give_back_for_ever() -> None:
    while True:
        time.sleep(GIVEN_BACK)
        give_back()


def _mallopt() -> Any:
    return getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
