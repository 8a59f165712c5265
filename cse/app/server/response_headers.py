"""Headers of every answer: what a browser may load into the page, and who may frame it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Gradio's page configures itself in scripts within the HTML, and compiles the functions that events run in the browser.
SOURCES = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
HUGGING_FACE = "https://huggingface.co https://*.huggingface.co https://*.hf.space"


def security_headers(public: bool) -> dict[str, str]:
    """The headers of a server, which may be framed where it is a `public` Space, by Hugging Face's own pages."""
    policy = {**SOURCES, "frame-ancestors": HUGGING_FACE if public else "'none'"}
    found = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
    }
    return found if public else {**found, "X-Frame-Options": "DENY"}


def with_headers(send: Send, added: dict[str, str]) -> Send:
    """A `send` that adds headers to an answer which does not have them itself."""

    async def each(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return each
