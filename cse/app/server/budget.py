"""Budgets: how much clients may hold at once, each of them and all together."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

TOO_MANY, BUSY = 429, 503
NETWORK = 64  # bits of an IPv6 address that name a network; a single client usually owns all addresses in it


class Budget:
    """Amounts that clients hold: at most `each` per client, and at most `total` of all clients together."""

    def __init__(self, each: int, total: int) -> None:
        self.each, self.total = each, total
        self._held: Counter[str] = Counter()

    def exceeded(self, client: str, amount: int = 1) -> int | None:
        """429 where the client's own share is too small for `amount` more, 503 where the whole is; otherwise None."""
        if self._held[client] + amount > self.each:
            return TOO_MANY
        return BUSY if self._held.total() + amount > self.total else None

    def add(self, client: str, amount: int) -> None:
        """Note that a client holds `amount` more, or less where it is negative."""
        self._held[client] += amount
        if not self._held[client]:
            del self._held[client]

    @contextmanager
    def held(self, client: str, amount: int = 1) -> Iterator[None]:
        """The client holds `amount` for as long as this is open."""
        self.add(client, amount)
        try:
            yield
        finally:
            self.add(client, -amount)


def client_of(scope: MutableMapping[str, Any]) -> str:
    """The address that a request came from, as the server or a proxy it trusts gives it; of IPv6 the network."""
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # none, as over a socket file
        return host
    if address.version == 4:
        return host
    return str(ipaddress.ip_network((int(address), NETWORK), strict=False))
