"""Security headers of every response: allowed sources of the page, and sites that may frame it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Gradio's page has inline scripts, and compiles the JavaScript functions of events.
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
    """Return a server's headers; Hugging Face's pages may frame a `public` Space."""
    policy = {**SOURCES, "frame-ancestors": HUGGING_FACE if public else "'none'"}
    found = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
    }
    return found if public else {**found, "X-Frame-Options": "DENY"}


def with_headers(send: Send, added: dict[str, str]) -> Send:
    """Return a `send` that adds the headers that a response lacks."""

    async def each(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return each
