"""Budgets: the amount that clients may hold at once, each and all together."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

NETWORK = 64  # bits of an IPv6 address that name a network; a single client usually owns all addresses in it


class Budget:
    """Amounts held by clients: at most `each` per client and `total` in all."""

    def __init__(self, each: int, total: int) -> None:
        self.each, self.total = each, total
        self._held: Counter[str] = Counter()

    def exceeded(self, client: str, amount: int = 1) -> int | None:
        """Return 429 if `amount` more exceeds the client's bound, 503 if it exceeds the total, otherwise None."""
        if self._held[client] + amount > self.each:
            return HTTPStatus.TOO_MANY_REQUESTS
        return HTTPStatus.SERVICE_UNAVAILABLE if self._held.total() + amount > self.total else None

    def add(self, client: str, amount: int) -> None:
        """Add `amount`, which may be negative, to what a client holds."""
        self._held[client] += amount
        if not self._held[client]:
            del self._held[client]

    @contextmanager
    def held(self, client: str, amount: int = 1) -> Iterator[None]:
        """Hold `amount` for the client within this context."""
        self.add(client, amount)
        try:
            yield
        finally:
            self.add(client, -amount)


def client_of(scope: MutableMapping[str, Any]) -> str:
    """Return the client's address as the server or a trusted proxy reports it; for IPv6, its network."""
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # not an IP address, as with a Unix socket
        return host
    if address.version == 4:
        return host
    return str(ipaddress.ip_network((int(address), NETWORK), strict=False))
