"""Checks of session names, which clients choose and Gradio uses in its tables, logs and tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from starlette.datastructures import QueryParams

from cse.app.server.bodies import Scope

FIELD = "session_hash"  # Gradio's name in bodies and queries
HEARTBEAT = "heartbeat/"  # the route, after `cse.app.server.calls.API`, whose path ends in a session's name
PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def wrong_name(name: Any) -> str | None:
    """Return why a session name is invalid; None if it is valid or missing."""
    if name is None or (isinstance(name, str) and PLAIN.fullmatch(name)):
        return None
    return f"{FIELD} is {json.dumps(name)[:60]}; give 1 to 64 letters a-z, digits, hyphens, underscores or dots."


def names_in(scope: Scope, path: str) -> Iterator[str]:
    """Yield the session names in a request's address; `path` is the part after `cse.app.server.calls.API`."""
    yield from QueryParams(scope["query_string"]).getlist(FIELD)
    if path.startswith(HEARTBEAT):
        yield path.removeprefix(HEARTBEAT)
