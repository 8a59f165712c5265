"""Where a model computes: the device that is asked for, or the best one that this machine has."""

from __future__ import annotations

import os

import torch


def device_of(wanted: str | torch.device, asked_by: str = "`device`") -> torch.device:
    """The device of a name such as cpu, cuda, cuda:1 or mps, which `asked_by` gives.

    Raises ValueError, with those that are there, for one that PyTorch does not know or that this machine lacks.
    """
    try:
        device = torch.device(wanted)
    except (RuntimeError, TypeError):
        device = None
    if device is None or (device.index or 0) >= _count(device.type):
        raise ValueError(f"{asked_by} is {str(wanted)!r}, which is not here; choose from {', '.join(available())}")
    return device


def best_device() -> torch.device:
    """What the variable CSE_DEVICE names, else the GPU that is here, be it NVIDIA's or Apple's, else the CPU."""
    return device_of(os.environ.get("CSE_DEVICE") or available()[-1], "CSE_DEVICE")


def available() -> list[str]:
    """The kinds of devices that PyTorch can use here, the best one last."""
    gpu = torch.accelerator.current_accelerator(check_available=True)
    return ["cpu"] if gpu is None else ["cpu", gpu.type]


def _count(kind: str) -> int:
    if kind not in available():
        return 0
    return 1 if kind == "cpu" else torch.accelerator.device_count()
