"""Whether the model hub can be reached, asked once, so that a wrong name fails at once without a network."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from urllib.parse import urlparse

TIMEOUT = 3.0
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@lru_cache(maxsize=1)
def reachable() -> bool:
    """True where the hub answers, or may answer behind a proxy; False in offline mode."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if any(os.environ.get(name) for name in PROXIES):
        return True
    address = urlparse(constants.ENDPOINT)
    try:
        socket.create_connection((address.hostname, address.port or 443), TIMEOUT).close()
    except OSError:
        return False
    return True
