"""Who may ask a server: pages of its own names, and the owner by the token. No address or proxy gives rights.

A browser sends with each request the name it was sent to (`Host`) and the page that sent it (`Origin`). A page whose
name resolves to this machine after it was loaded (DNS rebinding) sends its own name as `Host`; a page that posts across
sites sends its own origin.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from hmac import compare_digest, digest
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

Scope = MutableMapping[str, Any]

OPTION, VARIABLE = "--allow-host", "CSE_ALLOWED_HOSTS"
SPACE = "SPACE_HOST"  # the variable with the host name of a Hugging Face Space
PROXIES = "127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"  # possible proxies of a Space
ANY = "*"
DEFAULT_PORTS = {"http": 80, "https": 443}
NETWORK = 64  # bits of an IPv6 address that name a network; a single client usually owns all addresses in it
PARAMETER = "token"
COOKIE = re.compile(r"(?P<name>[0-9a-f]{32})(?P<mark>[0-9a-f]{64})")
MARKED = ("/", "/config")  # what a page and a program ask first


@dataclass(frozen=True)
class Names:
    """The host names that are served: the machine's `own`, and the `allowed` ones of proxies.

    IP addresses are always served, because DNS rebinding needs a name; with `ANY` allowed nothing is checked. Pages of
    any site may use a `public` server, as pages do that embed a Space.
    """

    own: frozenset[str] = frozenset({"localhost"})
    allowed: frozenset[str] = frozenset()
    public: bool = False

    def check(self, host: str, origin: str | None, share: str | None = None) -> None:
        """Raise HTTPException for a request to another name, or of another site's page; `share` is a public URL."""
        if not self.serves(host, share):
            cure = f"if it should, start it with {OPTION} NAME, or set {VARIABLE}"
            line = f"This app does not answer to the name {host[:200]!r}; {cure}."
            raise HTTPException(HTTPStatus.MISDIRECTED_REQUEST, line)
        if origin is not None and not self.trusts(origin, host, share):
            cure = f"if its site should, start the app with {OPTION} NAME, or set {VARIABLE}"
            raise HTTPException(HTTPStatus.FORBIDDEN, f"A page of {origin[:200]!r} may not use this app; {cure}.")

    def serves(self, host: str, share: str | None = None) -> bool:
        """True if a request with the header `host` is for this server."""
        name = hostname(host)
        return ANY in self.allowed or is_address(name) or name in self.own | self._elsewhere(share)

    def trusts(self, origin: str, host: str, share: str | None = None) -> bool:
        """True if a page with the header `origin` may use the server: same name and port as `host`, or allowed."""
        if self.public or ANY in self.allowed or hostname(origin) in self._elsewhere(share):  # any port: a proxy's
            return True
        try:
            page, requested = urlsplit(origin), urlsplit(f"//{host}")
            default = DEFAULT_PORTS.get(page.scheme)
            same_port = (page.port or default) == (requested.port or default)
        except ValueError:
            return False
        return default is not None and same_port and hostname(origin) == hostname(host)

    def _elsewhere(self, share: str | None) -> frozenset[str]:
        return self.allowed | {hostname(share)} if share else self.allowed


def served_names(host: str = "", allowed: Iterable[str] = ()) -> Names:
    """Return the names of a server on `host`: that one, the machine's own, the `allowed` ones, the Space's."""
    space, machine = os.environ.get(SPACE, ""), socket.gethostname().lower()
    further = [*allowed, *os.environ.get(VARIABLE, "").split(","), *space.split(",")]
    names = {ANY if name.strip() == ANY else hostname(name.strip()) for name in further}
    own = {"localhost", machine, f"{machine}.local", hostname(host)}
    return Names(frozenset(own - {""}), frozenset(names - {""}), public=bool(space))


def audience(host: str, port: int, share: bool, *, everyone: bool = False) -> list[str]:
    """Return warnings about who can use a server on `host`, and if `everyone` has the owner's rights; else none."""
    lines = ["Open: everyone who reaches the app may train and open folders of this machine."] if everyone else []
    if not (host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)):
        lines.append(
            f"Listening on {host}: everyone who can reach port {port} of this machine can use the app; there is no "
            f"password. It answers to addresses and to this machine's name; {OPTION} NAME adds others."
        )
    if share:
        lines.append("Sharing: everyone who has the public link can use the app; there is no password.")
    return lines


def network_address() -> str:
    """Return the address by which other machines of the network reach this one; empty without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        try:
            unsent.connect(("192.0.2.1", 9))  # an address of documentation; a datagram socket sends nothing by this
        except OSError:
            return ""
        return str(unsent.getsockname()[0])


def hostname(header: str) -> str:
    """Return the name in a `Host` header, an origin or a URL: lower case, without port, brackets and last dot."""
    try:
        return (urlsplit(header if "//" in header else f"//{header}").hostname or "").rstrip(".")
    except ValueError:  # unbalanced brackets
        return ""


def is_address(name: str) -> bool:
    """True if a name is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Client:
    """A client by its address and the `name` in its cookie, empty without one; `owner`: it has the owner's rights."""

    address: str
    name: str = ""
    owner: bool = False


@dataclass(frozen=True)
class Rights:
    """The owner of a server is who knows its `token`, or `everyone`. Without either there are only visitors.

    Each client gets a cookie: a random name, marked by the token for the owner and by `key` for visitors.
    """

    token: str = field(default="", repr=False)
    everyone: bool = False
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def owned(self) -> bool:
        """True if a client can have the owner's rights."""
        return self.everyone or bool(self.token)

    def client(self, scope: Scope) -> Client:
        """Return the client of a request. The token is read from `Authorization: Bearer`, not from an address."""
        headers = Headers(scope=scope)
        cookie = COOKIE.fullmatch(cookie_parser(headers.get("cookie", "")).get(cookie_name(scope), ""))
        name, mark = cookie.group("name", "mark") if cookie else ("", "")
        owner = bool(self.token and name) and compare_digest(mark, self._mark(name, owner=True))
        if not (owner or (name and compare_digest(mark, self._mark(name, owner=False)))):
            name = ""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        owner = owner or (scheme.lower() == "bearer" and self.knows(token.strip()))
        return Client(client_address(scope), name, self.everyone or owner)

    def knows(self, token: str) -> bool:
        """True if a text is the token."""
        return bool(self.token) and compare_digest(token.encode(), self.token.encode())

    def entrance(self, scope: Scope, client: Client) -> Response | None:
        """Return the answer to a page's address with a token: the address without it, and the cookie if it is right."""
        fields = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in fields if name == PARAMETER]
        if scope["path"] != "/" or scope["method"] not in ("GET", "HEAD") or not tokens:
            return None
        rest = urlencode([(name, value) for name, value in fields if name != PARAMETER])
        answer = RedirectResponse(f"{root_of(scope)}/{rest and f'?{rest}'}", 303)
        answer.headers.update({"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
        if any(map(self.knows, tokens)):
            answer.headers["Set-Cookie"] = self.cookie(scope, client.name, owner=True)
        return answer

    def cookie(self, scope: Scope, name: str = "", *, owner: bool = False) -> str:
        """Return a `Set-Cookie` header that no script can read, and that other sites' pages do not send."""
        name = name or secrets.token_hex(16)
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        value = f"{cookie_name(scope)}={name}{self._mark(name, owner=owner)}"
        return f"{value}; Path={root_of(scope) or '/'}; HttpOnly; SameSite=Lax{secure}"

    def _mark(self, name: str, *, owner: bool) -> str:
        return digest(self.token.encode() if owner else self.key, name.encode(), "sha256").hex()


def client_address(scope: Scope) -> str:
    """Return the client's address as the server or a trusted proxy reports it; for IPv6, its network."""
    host = str((scope.get("client") or ("",))[0])
    if not is_address(host) or ":" not in host:  # no IP address with a Unix socket
        return host
    return str(ipaddress.ip_network((int(ipaddress.ip_address(host)), NETWORK), strict=False))


def cookie_name(scope: Scope) -> str:
    """Return the cookie's name: a browser sends the cookies of an address to all of its ports."""
    return f"cse-{(scope.get('server') or ('', 0))[1]}"


def root_of(scope: Scope) -> str:
    """Return the path under which a proxy serves the app, as Gradio was told; empty for the root."""
    return urlsplit(scope["app"].get_blocks().root_path or "").path.rstrip("/")


def owner_address(url: str, token: str) -> str:
    """Return the address by which a browser gets the owner's rights."""
    return f"{url.rstrip('/')}/?{PARAMETER}={quote(token, safe='')}"
