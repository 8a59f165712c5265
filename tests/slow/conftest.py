"""A browser for the slow tests."""

from collections.abc import Iterator
from typing import Any

import pytest
from app_pages import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened
