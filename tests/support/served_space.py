"""A staged Space that runs in a process of its own, for the tests that ask it."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clients import app_client
from gradio_client import Client
from ports import free_port


@contextmanager
def served(folder: Path, python: str = sys.executable) -> Iterator[Client]:
    """A client of the Space in a folder."""
    port = free_port()
    command = [python, "space.py", "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    running = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(1800):
            assert running.poll() is None, running.stderr.read()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/config").close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        yield app_client(f"http://127.0.0.1:{port}")
    finally:
        running.terminate()
        running.communicate()
