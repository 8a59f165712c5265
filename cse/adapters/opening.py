"""Shared by all adapters: open the encoder, and report a missing library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder


def opened(model: str | Encoder) -> Encoder:
    """Return an encoder unchanged; open a name, folder or id with `cse.load`."""
    from cse.encoder.encoder import Encoder
    from cse.models.loading import load

    return model if isinstance(model, Encoder) else load(model)


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Turn the absence of `package` in the block into a one-line ImportError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package.replace("-", "_"):
            raise  # the package is installed, but one of its dependencies is not
        raise ImportError(f"{package} is not installed; run `pip install {package}`") from error
