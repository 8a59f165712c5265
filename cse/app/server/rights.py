"""The owner's rights: by the token of the server, kept in a cookie, or by `--open`. No address or proxy gives them."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from hmac import compare_digest, digest
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from cse.app.server.bodies import Scope
from cse.app.server.budget import client_of

PARAMETER = "token"
COOKIE = re.compile(r"(?P<name>[0-9a-f]{32})(?P<mark>[0-9a-f]{64})")
MARKED = ("/", "/config")  # what a page and a program ask first


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
        return Client(client_of(scope), name, self.everyone or owner)

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

    def mark_headers(self, scope: Scope, client: Client) -> dict[str, str]:
        """Return the headers that give a new client its cookie; none for one that has it, and for other requests."""
        new = not client.name and scope["path"] in MARKED
        return {"Set-Cookie": self.cookie(scope)} if new else {}

    def cookie(self, scope: Scope, name: str = "", *, owner: bool = False) -> str:
        """Return a `Set-Cookie` header that no script can read, and that other sites' pages do not send."""
        name = name or secrets.token_hex(16)
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        value = f"{cookie_name(scope)}={name}{self._mark(name, owner=owner)}"
        return f"{value}; Path={root_of(scope) or '/'}; HttpOnly; SameSite=Lax{secure}"

    def _mark(self, name: str, *, owner: bool) -> str:
        return digest(self.token.encode() if owner else self.key, name.encode(), "sha256").hex()


def cookie_name(scope: Scope) -> str:
    """Return the cookie's name: a browser sends the cookies of an address to all of its ports."""
    return f"cse-{(scope.get('server') or ('', 0))[1]}"


def root_of(scope: Scope) -> str:
    """Return the path under which a proxy serves the app, as Gradio was told; empty for the root."""
    return urlsplit(scope["app"].get_blocks().root_path or "").path.rstrip("/")


def rights_of(token: str | None, everyone: bool, *, space: bool) -> Rights:
    """Return the rights on a server with the owner's `token`, by default a random one, or none on a Space."""
    if everyone:
        return Rights(everyone=True)
    return Rights(token or ("" if space else secrets.token_urlsafe(32)))


def owner_address(url: str, token: str) -> str:
    """Return the address by which a browser gets the owner's rights."""
    return f"{url.rstrip('/')}/?{PARAMETER}={quote(token, safe='')}"
