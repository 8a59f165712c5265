"""Devices: lookup by name, and the best one of this machine."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/proc/driver/nvidia")  # NVIDIA's, AMD's and WSL's on Linux


def named_device(device: str | None) -> str | None:
    """Return the requested device, given by an argument or by the variable CSE_DEVICE; None for the best one."""
    return device or os.environ.get("CSE_DEVICE") or None


def gpu_is_possible() -> bool:
    """True if this machine may have a GPU, which PyTorch then knows; on Linux without a driver there is none."""
    return sys.platform != "linux" or any(map(os.path.exists, DRIVERS)) or shutil.which("nvidia-smi") is not None


def device_of(wanted: str | int | torch.device, asked_by: str = "`device`") -> torch.device:
    """Return the device of a name such as cpu, cuda, cuda:1 or mps; errors call its source `asked_by`.

    Raises ValueError, with the available ones, for a device that PyTorch does not know or this machine lacks.
    """
    import torch

    try:
        device = torch.device(wanted)
    except (RuntimeError, TypeError):
        device = None
    if device is None or (device.index or 0) >= _count(device.type):
        raise ValueError(f"{asked_by} is {str(wanted)!r}, which is not available; choose from {', '.join(available())}")
    return device


def best_device() -> torch.device:
    """Return the device named by the variable CSE_DEVICE, else the GPU (NVIDIA or Apple), else the CPU."""
    return device_of(os.environ.get("CSE_DEVICE") or available()[-1], "CSE_DEVICE")


def available() -> list[str]:
    """Return the kinds of devices that PyTorch can use here, the best one last."""
    import torch

    gpu = torch.accelerator.current_accelerator(check_available=True)
    return ["cpu"] if gpu is None else ["cpu", gpu.type]


def _count(kind: str) -> int:
    import torch

    if kind not in available():
        return 0
    return 1 if kind == "cpu" else torch.accelerator.device_count()
