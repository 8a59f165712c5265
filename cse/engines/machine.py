"""The matrix extensions of this processor and GPU."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

CPU = Path("/proc/cpuinfo")
CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
BOUNDED = "CSE_KERNELS"  # the number that `bound_kernels` set
# What the app sets of glibc's allocator: the variable of the environment, its number in malloc.h, the value.
ALLOCATOR = (("MALLOC_ARENA_MAX", -8, 2), ("MALLOC_MMAP_THRESHOLD_", -3, 2**20))
EXTENSIONS = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX512-BF16", "amx_bf16": "AMX"}


def extensions() -> list[str]:
    """Return the matrix extensions of the processor; none if the system does not report them."""
    flags = re.search(r"^flags\s*: (.+)$", read(CPU), re.MULTILINE)
    return [shown for flag, shown in EXTENSIONS.items() if flags and flag in flags[1].split()]


def gpu_has_bf16() -> bool:
    """True if there is a GPU that multiplies bfloat16 natively; older ones emulate it, slower than float32."""
    import torch

    return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)


def bound_kernels(most: int = 64) -> None:
    """Limit oneDNN to `most` compiled kernels in this process, unless the environment sets a number.

    Both engines compile one for every new shape, of up to a megabyte, and would keep 1,024. Call it before either runs.
    """
    if CAPACITY not in os.environ:
        os.environ.update({CAPACITY: str(most), BOUNDED: str(most)})


def bound_arenas() -> None:
    """Have all threads share two arenas of glibc's allocator and return large blocks, unless the environment says else.

    By default each thread has an arena, which keeps what its largest answer freed. Call it before threads begin; other
    allocators stay as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    for variable, number, value in ALLOCATOR:
        if mallopt and variable not in os.environ:
            mallopt(number, value)


def without_bound(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the limit of `bound_kernels`; one that was given by the user stays."""
    ours = {CAPACITY, BOUNDED} if environment.get(BOUNDED) == environment.get(CAPACITY) else {BOUNDED}
    return {name: value for name, value in environment.items() if name not in ours}


def read(path: Path) -> str:
    """Return the text of a system file; empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
