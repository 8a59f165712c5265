"""A headless Chromium for what runs in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")  # the first takes two thirds of the second's time
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser of Playwright. Raises ValueError without Playwright or Chromium."""
    if find_spec("playwright") is None:
        raise ValueError("no playwright here; pip install -r tests/requirements.txt")
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise ValueError("no chromium on this machine; install it to open the page")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield opened
        opened.close()
