"""A Milvus Lite server on loopback, in a process of its own: what it speaks is the protocol of a cluster."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port

# milvus-lite asks for faiss-cpu, which has the same files as faiss-gpu: scripts/test installs it beside the lock.
needs_server = pytest.mark.skipif(
    not (importlib.util.find_spec("milvus_lite") and importlib.util.find_spec("pymilvus")),
    reason="no Milvus Lite: pip install --no-deps milvus-lite==3.2.2 (2026-11)",
)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server that keeps its data in `folder`, `milvus://HOST:PORT`; it ends with the block."""
    port = free_port()
    words = ["-m", "milvus_lite", "server", "--data-dir", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with (folder.parent / "milvus.log").open("w") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # more wait for each other beside other tests
        process = subprocess.Popen([sys.executable, *words], stdout=log, stderr=log, env=environment)
        try:
            _wait_for(port, process)
            yield f"milvus://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None, "the Milvus server stopped"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("no Milvus server within half a minute")
