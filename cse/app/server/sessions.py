"""The names of sessions, which clients choose: plain ones, since Gradio puts them into its tables, logs and tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from starlette.datastructures import QueryParams

from cse.app.server.bodies import Scope

FIELD = "session_hash"  # as Gradio calls it, in bodies and in addresses
HEARTBEAT = "heartbeat/"  # the route, after `cse.app.server.calls.API`, whose path ends in a session's name
PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def wrong_name(name: Any) -> str | None:
    """Why a session cannot be called so; None where it can, or where there is no name."""
    if name is None or (isinstance(name, str) and PLAIN.fullmatch(name)):
        return None
    return f"{FIELD} is {json.dumps(name)[:60]}; give 1 to 64 letters a-z, digits, hyphens, underscores or dots."


def names_in(scope: Scope, path: str) -> Iterator[str]:
    """The names of sessions in a request's address; `path` is what follows `cse.app.server.calls.API`."""
    yield from QueryParams(scope["query_string"]).getlist(FIELD)
    if path.startswith(HEARTBEAT):
        yield path.removeprefix(HEARTBEAT)
