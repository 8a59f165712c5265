"""The names a server answers to, so that a foreign page can neither drive a local app nor read what it says.

A browser says with each request which name it was sent to (`Host`) and which page sent it (`Origin`). A page whose name
is pointed at this machine after it was loaded (DNS rebinding) sends its own name; a page that merely posts here sends
its own origin.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

OPTION, VARIABLE = "--allow-host", "CSE_ALLOWED_HOSTS"
SPACE = "SPACE_HOST"  # what Hugging Face calls a Space's name
PROXIES = "127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"  # what can stand before a Space
ANY = "*"
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Names:
    """Host names that are served: its `own`, and those it was `given`, whatever is in front of it there.

    Addresses always are; with `ANY` given nothing is checked. Pages of any site may ask a `public` server, as those do
    that embed a Space.
    """

    own: frozenset[str] = frozenset({"localhost"})
    given: frozenset[str] = frozenset()
    public: bool = False

    def serves(self, host: str, share: str | None = None) -> bool:
        """Whether a request to the header `host` is for this server, which may have a `share` URL as well.

        An address is: what is asked for by its number no name server has sent here.
        """
        name = hostname(host)
        return ANY in self.given or is_address(name) or name in self.own | self._elsewhere(share)

    def trusts(self, origin: str, host: str, share: str | None = None) -> bool:
        """Whether a page of the header `origin` may ask: of the place it asks, or of a name that was given."""
        return (
            self.public
            or ANY in self.given
            or same_place(origin, host)
            or hostname(origin) in self._elsewhere(share)  # the port is that of what is in front
        )

    def _elsewhere(self, share: str | None) -> frozenset[str]:
        return self.given | {hostname(share)} if share else self.given


def served_names(host: str = "", allowed: Iterable[str] = ()) -> Names:
    """The names of a server that listens on `host`: that one, this machine's own, the `allowed` ones, the Space's."""
    space, machine = os.environ.get(SPACE, ""), socket.gethostname().lower()
    named = [*allowed, *os.environ.get(VARIABLE, "").split(","), *space.split(",")]
    given = {ANY if name.strip() == ANY else hostname(name.strip()) for name in named}
    own = {"localhost", machine, f"{machine}.local", hostname(host)}
    return Names(frozenset(own - {""}), frozenset(given - {""}), public=bool(space))


def audience(host: str, port: int, share: bool) -> list[str]:
    """Who can use a server that listens on `host`, a line each; none where that is this machine alone."""
    lines = []
    if host != "localhost" and not (is_address(host) and ipaddress.ip_address(host).is_loopback):
        lines.append(
            f"Listening on {host}: everyone who can reach port {port} of this machine can use the app; there is no "
            f"password. It answers to addresses and to this machine's name; {OPTION} NAME adds others."
        )
    if share:
        lines.append("Sharing: everyone who has the public link can use the app; there is no password.")
    return lines


def hostname(header: str) -> str:
    """The name in a `Host` header, an origin or a URL: lower case, without port, brackets and last dot."""
    try:
        return (urlsplit(header if "//" in header else f"//{header}").hostname or "").rstrip(".")
    except ValueError:  # brackets that do not belong together
        return ""


def same_place(origin: str, host: str) -> bool:
    """Whether an origin and a `Host` header have the same name and port."""
    try:
        page = urlsplit(origin)
        asked, default = urlsplit(f"//{host}"), DEFAULT_PORTS.get(page.scheme)
        ports = page.port or default, asked.port or default
    except ValueError:
        return False
    return default is not None and hostname(origin) == hostname(host) and ports[0] == ports[1]


def is_address(name: str) -> bool:
    """Whether a name is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
