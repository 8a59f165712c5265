"""The memory allocator during training."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt's numbers, from malloc.h
KEPT, MOST_BEFORE_2_35 = 2**30, 2**25  # bytes; older versions of glibc refuse a larger threshold for mapping


def keep_freed_memory() -> None:
    """Let glibc reuse the memory of freed tensors instead of giving it back to the system and asking for it again.

    By default every tensor above 32 MB is mapped anew, and the system clears each page of it at its first use. Does
    nothing where the C library is another.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, KEPT) or mallopt(MMAP_THRESHOLD, MOST_BEFORE_2_35)
        mallopt(TRIM_THRESHOLD, KEPT)
