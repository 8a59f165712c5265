"""Refusals of calls: invalid sessions, unknown endpoints, missing or surplus values, and those a field cannot take."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.components.api_component import Api
from starlette.datastructures import QueryParams

from cse.app import validation
from cse.app.server.bodies import Scope
from cse.app.server.fields import current, reason_of_value

API = "/gradio_api/"
MOST_NAMED = 20  # endpoints listed in a message

Refusal = tuple[dict[str, Any], int]
FIELD = "session_hash"  # Gradio's name of a session, which clients choose, in bodies and queries
HEARTBEAT = "heartbeat/"  # the route, after `API`, whose path ends in a session's name
PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def refusal(blocks: gr.Blocks, path: str, body: bytes) -> Refusal | None:
    """Return JSON values and status that refuse an invalid call; None for any other request.

    `path` is the part after `API`. The JSON has the form of Gradio's own validation errors, which its clients show.
    """
    kind, _, name = path.partition("/")
    named = name.startswith("v2/")
    name = name.removeprefix("v2/")
    if kind == "stream":  # Gradio would replace the values of a waiting call by unchecked ones
        return refused("No part of this app takes streams; call an endpoint.", HTTPStatus.NOT_FOUND)
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return None  # Gradio reports it
    if not isinstance(sent, dict):
        return None
    if (wrong := wrong_name(sent.get(FIELD))) is not None:
        return refused(wrong, HTTPStatus.UNPROCESSABLE_ENTITY)
    if (kind, name) != ("queue", "join") and kind not in ("call", "run", "api"):
        return None
    # Of Gradio's routes only `call` uses the name and ignores a number.
    number = None if kind == "call" else sent.get("fn_index")
    function = function_of(blocks, number, None if kind == "queue" else name)
    if function is None:
        requested = number if kind == "queue" else f"/{name}"
        return refused(f"There is no endpoint {str(requested)[:60]}; {choices(blocks)}.", HTTPStatus.NOT_FOUND)
    wrong, values = in_order(function, sent) if named else (None, sent.get("data"))
    place, reason = (0, wrong) if wrong else reason_of(function, values, blocks, sent.get(FIELD))
    return None if reason is None else refused(reason, HTTPStatus.UNPROCESSABLE_ENTITY, place)


def completed(blocks: gr.Blocks, path: str, body: bytes) -> bytes:
    """Return the body of a call of an endpoint with the defaults of the last values that it leaves out."""
    kind, _, name = path.partition("/")
    function = function_of(blocks, None, name) if kind == "call" else None
    if function is None or not callable(function.fn) or function.api_visibility != "public":
        return body
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return body
    values = sent.get("data") if isinstance(sent, dict) else None
    if not isinstance(values, list):
        return body
    defaults = [each.default for each in inspect.signature(function.fn).parameters.values()]
    rest = defaults[len(values) :]
    if not rest or inspect.Parameter.empty in rest:
        return body
    return json.dumps({**sent, "data": [*values, *rest]}).encode()


def unknown_event(blocks: gr.Blocks, path: str) -> Refusal | None:
    """Return the refusal of a request for the results of an unknown or dropped call; None for any other.

    `path` is the part after `API`. Gradio notices only after its response has begun, and logs a traceback.
    """
    requested = path.removeprefix("call/").removeprefix("v2/").split("/")
    if not path.startswith("call/") or len(requested) != 2:
        return None
    number, queue = requested[1], blocks._queue
    event = queue.event_ids_to_events.get(number)
    waiting = (session for session, events in list(queue.pending_event_ids_session.items()) if number in events)
    if (next(waiting, None) if event is None else event.session_hash) in queue.pending_messages_per_session:
        return None
    line = f"There is no call {number[:60]}, or its results were fetched; call /{requested[0][:60]} again."
    return refused(line, HTTPStatus.NOT_FOUND)


def refused(line: str, status: int, place: int = 0) -> Refusal:
    """Return the refusal `line`, which the page shows at the call's value of that `place`.

    A lone surrogate, which JSON can contain but UTF-8 cannot encode, becomes `?`.
    """
    line = line.encode("utf-8", "replace").decode()
    valid = {"__type__": "validate", "is_valid": True, "message": "", "parameter_name": ""}
    detail = [*[valid] * place, {**valid, "is_valid": False, "message": line, "parameter_name": "the call"}]
    invalid = status == HTTPStatus.UNPROCESSABLE_ENTITY
    return ({"detail": detail, "error": line} if invalid else {"detail": line}), status


def function_of(blocks: gr.Blocks, number: Any, name: str | None) -> BlockFunction | None:
    """Return the function of a call by its number, or by its name without a number."""
    if name is None or number is not None:
        return blocks.fns.get(number) if isinstance(number, int) else None
    return next((function for function in blocks.fns.values() if function.api_name == name), None)


def reason_of(
    function: BlockFunction, values: Any, blocks: gr.Blocks, session: str | None = None
) -> tuple[int, str | None]:
    """Return the place of a value that a function cannot take, and why; (0, None) if it can or Gradio reports it."""
    if not isinstance(values, list):
        return 0, None
    fields, name = list(zip(names_of(function), function.inputs, strict=True)), function.api_name or function.name
    if function.fn is None:
        return 0, f"/{name} runs in the page alone; {choices(blocks)}."
    shown = [(what, field) for what, field in fields if not field.skip_api]
    if len(values) not in (len(fields), len(shown)):
        named = f" ({', '.join(what for what, _ in shown)})" if shown else ""
        return 0, f"/{name} takes {validation.counted(len(shown), 'value')}{named}, not {len(values)}."
    taken = zip(fields if len(values) == len(fields) else shown, values, strict=True)
    reasons = (reason_of_value(what, current(field, blocks, session), value, blocks) for (what, field), value in taken)
    return next(((place, reason) for place, reason in enumerate(reasons) if reason is not None), (0, None))


def in_order(function: BlockFunction, sent: dict[str, Any]) -> tuple[str | None, list[Any]]:
    """Return a reason if a named value is missing or unknown, else None, and the values in the function's order."""
    parameters = inspect.signature(function.fn).parameters.values() if callable(function.fn) else ()
    known = {each.name: each.default for each in parameters}
    odd = [name for name in sent if name not in known]
    missing = [name for name, default in known.items() if default is inspect.Parameter.empty and name not in sent]
    if odd or missing:
        wrong = f"{odd[0][:60]} is none of them" if odd else f"{missing[0]} is missing"
        return f"/{function.api_name} takes {', '.join(known) or 'no values'}; {wrong}.", []
    return None, [sent.get(name, default) for name, default in known.items()]


def names_of(function: BlockFunction) -> list[str]:
    """Return the names of a function's values: its parameters, or the labels of the page's fields."""
    if function.inputs and all(isinstance(field, Api) for field in function.inputs) and callable(function.fn):
        return list(inspect.signature(function.fn).parameters)
    return [getattr(field, "label", None) or type(field).__name__ for field in function.inputs]


def choices(blocks: gr.Blocks) -> str:
    """Return a phrase that lists the endpoints."""
    names: Sequence[str] = [f"/{each.api_name}" for each in blocks.fns.values() if each.api_visibility == "public"]
    return f"choose {', '.join(names[:MOST_NAMED])}"


def wrong_name(name: Any) -> str | None:
    """Return why a session name is invalid; None if it is valid or missing."""
    if name is None or (isinstance(name, str) and PLAIN.fullmatch(name)):
        return None
    return f"{FIELD} is {json.dumps(name)[:60]}; give 1 to 64 letters a-z, digits, hyphens, underscores or dots."


def names_in(scope: Scope, path: str) -> Iterator[str]:
    """Yield the session names in a request's address; `path` is the part after `API`."""
    yield from QueryParams(scope["query_string"]).getlist(FIELD)
    if path.startswith(HEARTBEAT):
        yield path.removeprefix(HEARTBEAT)
