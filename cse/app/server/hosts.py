"""The host names that a server answers to, so that pages of other sites can neither use nor read a local app.

A browser sends with each request the name it was sent to (`Host`) and the page that sent it (`Origin`). A page whose
name resolves to this machine after it was loaded (DNS rebinding) sends its own name as `Host`; a page that posts across
sites sends its own origin.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

OPTION, VARIABLE = "--allow-host", "CSE_ALLOWED_HOSTS"
SPACE = "SPACE_HOST"  # the variable with the host name of a Hugging Face Space
PROXIES = "127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"  # possible proxies of a Space
ANY = "*"
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Names:
    """The host names that are served: the machine's `own`, and those `given` for proxies.

    IP addresses are always served; with `ANY` given nothing is checked. Pages of any site may use a `public` server, as
    pages do that embed a Space.
    """

    own: frozenset[str] = frozenset({"localhost"})
    given: frozenset[str] = frozenset()
    public: bool = False

    def serves(self, host: str, share: str | None = None) -> bool:
        """True if a request with the header `host` is for this server, which may also have a `share` URL.

        An IP address always is, because DNS rebinding needs a name.
        """
        name = hostname(host)
        return ANY in self.given or is_address(name) or name in self.own | self._elsewhere(share)

    def trusts(self, origin: str, host: str, share: str | None = None) -> bool:
        """True if a page with the header `origin` may use the server: same origin as `host`, or a given name."""
        return (
            self.public
            or ANY in self.given
            or same_place(origin, host)
            or hostname(origin) in self._elsewhere(share)  # any port: that of the proxy
        )

    def _elsewhere(self, share: str | None) -> frozenset[str]:
        return self.given | {hostname(share)} if share else self.given


def served_names(host: str = "", allowed: Iterable[str] = ()) -> Names:
    """Return the names of a server on `host`: that one, the machine's own, the `allowed` ones, the Space's."""
    space, machine = os.environ.get(SPACE, ""), socket.gethostname().lower()
    named = [*allowed, *os.environ.get(VARIABLE, "").split(","), *space.split(",")]
    given = {ANY if name.strip() == ANY else hostname(name.strip()) for name in named}
    own = {"localhost", machine, f"{machine}.local", hostname(host)}
    return Names(frozenset(own - {""}), frozenset(given - {""}), public=bool(space))


def audience(host: str, port: int, share: bool, *, everyone: bool = False) -> list[str]:
    """Return warnings about who can use a server on `host`, and if `everyone` has the owner's rights; else none."""
    lines = ["Open: everyone who reaches the app may train and open folders of this machine."] if everyone else []
    if not is_loopback(host):
        lines.append(
            f"Listening on {host}: everyone who can reach port {port} of this machine can use the app; there is no "
            f"password. It answers to addresses and to this machine's name; {OPTION} NAME adds others."
        )
    if share:
        lines.append("Sharing: everyone who has the public link can use the app; there is no password.")
    return lines


def is_loopback(host: str) -> bool:
    """True if only this machine can reach a server that listens on `host`."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def hostname(header: str) -> str:
    """Return the name in a `Host` header, an origin or a URL: lower case, without port, brackets and last dot."""
    try:
        return (urlsplit(header if "//" in header else f"//{header}").hostname or "").rstrip(".")
    except ValueError:  # unbalanced brackets
        return ""


def same_place(origin: str, host: str) -> bool:
    """True if an origin and a `Host` header have the same name and port."""
    try:
        page = urlsplit(origin)
        requested, default = urlsplit(f"//{host}"), DEFAULT_PORTS.get(page.scheme)
        ports = page.port or default, requested.port or default
    except ValueError:
        return False
    return default is not None and hostname(origin) == hostname(host) and ports[0] == ports[1]


def is_address(name: str) -> bool:
    """True if a name is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
