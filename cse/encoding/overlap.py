"""Asynchronous copies to a device, and prefetching of items in a second thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

Item = TypeVar("Item")


def to_device(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """Return the values as a tensor on `device`.

    A copy to a GPU is asynchronous, from page-locked memory. PyTorch keeps and later reuses that memory, so a pass can
    be filled while the one before is still copied.
    """
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def beside(device: torch.device, items: Iterable[Item]) -> Iterable[Item]:
    """Return the items, made `ahead` for a GPU; unchanged for a CPU, which would have to do both."""
    return items if device.type == "cpu" else ahead(items)


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items in order, each made in a second thread while the one before it is used."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield item  # type: ignore[misc]  # not `end`, so an item
