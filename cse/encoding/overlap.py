"""Work beside that of a device: copies that nobody waits for, and items that are made while others are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

Item = TypeVar("Item")


def to_device(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """The values as a tensor on `device`.

    Those for a GPU go from page-locked memory, so that the caller goes on at once. PyTorch keeps that memory until the
    copy is done and then uses it again, so a pass is filled while the one before is still copied.
    """
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def beside(device: torch.device, items: Iterable[Item]) -> Iterable[Item]:
    """The items, made `ahead` of what a GPU computes; in turn for a CPU, which would have to do both."""
    return items if device.type == "cpu" else ahead(items)


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The items in order, each made in a second thread while the one before it is used."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield item  # type: ignore[misc]  # all but the end is an item
