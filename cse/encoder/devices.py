"""Devices and what suits them: lookup by name, memory limits, groups of rows, and precision."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from cse.encoder.encoder import Encoder

DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/proc/driver/nvidia")  # NVIDIA's, AMD's and WSL's on Linux


def gpu_is_possible() -> bool:
    """True if this machine may have a GPU, which PyTorch then knows; on Linux without a driver there is none."""
    return sys.platform != "linux" or any(map(os.path.exists, DRIVERS)) or shutil.which("nvidia-smi") is not None


def device_of(name: str | int | torch.device, asked_by: str = "`device`") -> torch.device:
    """Return the device of a name such as cpu, cuda, cuda:1 or mps; errors call its source `asked_by`.

    Raises ValueError, with the available ones, for a device that PyTorch does not know or this machine lacks.
    """
    import torch

    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    known = available()
    count = 1 if device is None or device.type == "cpu" else torch.accelerator.device_count()
    if device is None or device.type not in known or (device.index or 0) >= count:
        raise ValueError(f"{asked_by} is {str(name)!r}, which is not available; choose from {', '.join(known)}")
    return device


def best_device() -> torch.device:
    """Return the device named by the variable CSE_DEVICE, else the GPU (NVIDIA or Apple), else the CPU."""
    return device_of(os.environ.get("CSE_DEVICE") or available()[-1], "CSE_DEVICE")


def available() -> list[str]:
    """Return the kinds of devices that PyTorch can use here, the best one last."""
    import torch

    gpu = torch.accelerator.current_accelerator(check_available=True)
    return ["cpu"] if gpu is None else ["cpu", gpu.type]


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


def bound_kernels(limit: int = 64) -> None:
    """Limit oneDNN to `limit` compiled kernels in this process, unless the environment sets a number.

    Both engines compile one for every new shape, of up to a megabyte, and would keep 1,024. Call it before either runs.
    """
    if CAPACITY not in os.environ:
        os.environ.update({CAPACITY: str(limit), BOUNDED: str(limit)})


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


FORWARD_COST = 64  # overhead of a forward pass in tokens, measured with bundled models on a CPU


def row_groups(lengths: Sequence[int], max_rows: int | None = None, cost: float = FORWARD_COST) -> list[list[int]]:
    """Return the numbers of rows of these `lengths` (tokens) in groups of similar length, short ones first.

    Each group is padded to its longest row. The groups minimise padding plus `cost` tokens per group; larger ones are
    then split into groups of at most `max_rows` rows.
    """
    import numpy as np

    order = np.argsort(lengths, kind="stable")
    ordered = np.asarray(lengths)[order]
    ends = [*(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]  # rows of one length stay together
    total, start_of = {0: 0}, {}
    for index, end in enumerate(ends):
        starts, longest = (0, *ends[:index]), int(ordered[end - 1])
        costs = [total[start] + (end - start) * longest + cost for start in starts]
        best = costs.index(min(costs))
        total[end], start_of[end] = costs[best], starts[best]
    groups, end = [], len(ordered)
    while end:
        groups.append(order[start_of[end] : end])
        end = start_of[end]
    parts = (np.array_split(group, -(-len(group) // (max_rows or len(group)))) for group in reversed(groups))
    return [part.tolist() for group in parts for part in group]


INT8 = "int8"
PRECISIONS = ("auto", "no", "bf16", INT8)
BF16_EXTENSIONS = {"AVX512-BF16", "AMX"}


def computes_in_bf16(precision: str, device: str) -> bool:
    """True if `precision` (no, bf16, int8, or auto: bf16 if the device is fast at it) means bfloat16 on `device`.

    Raises ValueError for any other value.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"`precision` is {precision!r}; choose from {', '.join(PRECISIONS)}")
    fast = gpu_has_bf16() if device.startswith("cuda") else bool(BF16_EXTENSIONS & set(extensions()))
    return precision == "bf16" or (precision == "auto" and fast)


def in_precision(encoder: Encoder, precision: str) -> Encoder:
    """Return the encoder, computing in bfloat16 if `computes_in_bf16`, or in int8; vectors are float32 in any case.

    PyTorch rounds the weights, which changes them and the fingerprint for good: do not save such an encoder.
    """
    if precision == INT8:
        return encoder.computing_in(INT8)
    return encoder.computing_in("bf16") if computes_in_bf16(precision, str(encoder.device)) else encoder
