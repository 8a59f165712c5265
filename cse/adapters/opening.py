"""What every adapter begins with: the encoder, and the library that it is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import cse

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder


def opened(model: str | Encoder) -> Encoder:
    """The encoder itself, or what `cse.load` opens by a name, folder or id."""
    from cse.encoding.encoder import Encoder

    return model if isinstance(model, Encoder) else cse.load(model)


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Imports from a package, whose absence is an ImportError of one line that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package.replace("-", "_"):
            raise  # the package is there, and something that it needs is not
        raise ImportError(f"{package} is not installed; run `pip install {package}`") from error
