"""Calls that no endpoint can answer: unknown ones, those with values missing or too many, files where text belongs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.components.api_component import Api

from cse.app.server.fields import current, reason_of_value
from cse.app.server.sessions import FIELD, wrong_name

API = "/gradio_api/"
MOST_NAMED = 20  # endpoints in a message
UNKNOWN, WRONG = 404, 422

Refusal = tuple[dict[str, Any], int]


def refusal(blocks: gr.Blocks, path: str, body: bytes) -> Refusal | None:
    """The answer, as JSON values and status, to a call that cannot be answered; None for any other request.

    `path` is what follows `API`. Its shape is that of Gradio's own validation, which its clients show.
    """
    kind, _, name = path.partition("/")
    named = name.startswith("v2/")
    name = name.removeprefix("v2/")
    if kind == "stream":  # Gradio would put other values, which nobody saw, in the place of a waiting call's
        return refused("No part of this app takes streams; call an endpoint.", UNKNOWN)
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return None  # Gradio says so itself
    if not isinstance(sent, dict):
        return None
    if (wrong := wrong_name(sent.get(FIELD))) is not None:
        return refused(wrong, WRONG)
    if (kind, name) != ("queue", "join") and kind not in ("call", "run", "api"):
        return None
    # Of Gradio's routes `call` alone goes by names and overlooks a number.
    number = None if kind == "call" else sent.get("fn_index")
    function = function_of(blocks, number, None if kind == "queue" else name)
    if function is None:
        asked = number if kind == "queue" else f"/{name}"
        return refused(f"There is no endpoint {str(asked)[:60]}; {choices(blocks)}.", UNKNOWN)
    wrong, values = in_order(function, sent) if named else (None, sent.get("data"))
    reason = wrong or reason_of(function, values, blocks, sent.get(FIELD))
    return None if reason is None else refused(reason, WRONG)


def unknown_event(blocks: gr.Blocks, path: str) -> Refusal | None:
    """The answer to who asks for the results of a call that there was not, or that is forgotten; None for any other.

    `path` is what follows `API`. Gradio finds it out once its answer has begun, and logs a traceback.
    """
    asked = path.removeprefix("call/").removeprefix("v2/").split("/")
    if not path.startswith("call/") or len(asked) != 2:
        return None
    number, queue = asked[1], blocks._queue
    event = queue.event_ids_to_events.get(number)
    waiting = (session for session, events in list(queue.pending_event_ids_session.items()) if number in events)
    if (next(waiting, None) if event is None else event.session_hash) in queue.pending_messages_per_session:
        return None
    line = f"There is no call {number[:60]}, or its results were fetched; call /{asked[0][:60]} again."
    return refused(line, UNKNOWN)


def refused(line: str, status: int) -> Refusal:
    """The answer that says `line`; half a surrogate pair, which JSON can name and no answer can, becomes `?`."""
    line = line.encode("utf-8", "replace").decode()
    detail = [{"__type__": "validate", "is_valid": False, "message": line, "parameter_name": "the call"}]
    return ({"detail": detail, "error": line} if status == WRONG else {"detail": line}), status


def function_of(blocks: gr.Blocks, number: Any, name: str | None) -> BlockFunction | None:
    """What a call runs: the function of its number, or of its name where it has none."""
    if name is None or number is not None:
        return blocks.fns.get(number) if isinstance(number, int) else None
    return next((function for function in blocks.fns.values() if function.api_name == name), None)


def reason_of(function: BlockFunction, values: Any, blocks: gr.Blocks, session: str | None = None) -> str | None:
    """Why a function cannot take a list of values of a session; None where it can, or where Gradio says so itself."""
    if not isinstance(values, list):
        return None
    fields, name = list(zip(names_of(function), function.inputs, strict=True)), function.api_name or function.name
    if function.fn is None:
        return f"/{name} runs in the page alone; {choices(blocks)}."
    shown = [(what, field) for what, field in fields if not field.skip_api]
    if len(values) not in (len(fields), len(shown)):
        named = f" ({', '.join(what for what, _ in shown)})" if shown else ""
        return f"/{name} takes {counted(len(shown))}{named}; {len(values)} came."
    taken = zip(fields if len(values) == len(fields) else shown, values, strict=True)
    reasons = (reason_of_value(what, current(field, blocks, session), value, blocks) for (what, field), value in taken)
    return next((reason for reason in reasons if reason is not None), None)


def in_order(function: BlockFunction, sent: dict[str, Any]) -> tuple[str | None, list[Any]]:
    """The values of a call by name in the function's order, after a reason where one is missing or has no place."""
    parameters = inspect.signature(function.fn).parameters.values() if callable(function.fn) else ()
    known = {each.name: each.default for each in parameters}
    odd = [name for name in sent if name not in known]
    missing = [name for name, default in known.items() if default is inspect.Parameter.empty and name not in sent]
    if odd or missing:
        wrong = f"{odd[0][:60]} is none of them" if odd else f"{missing[0]} is missing"
        return f"/{function.api_name} takes {', '.join(known) or 'no values'}; {wrong}.", []
    return None, [sent.get(name, default) for name, default in known.items()]


def names_of(function: BlockFunction) -> list[str]:
    """What a function's values are called: its parameters, or the labels of the page's fields."""
    if function.inputs and all(isinstance(field, Api) for field in function.inputs) and callable(function.fn):
        return list(inspect.signature(function.fn).parameters)
    return [getattr(field, "label", None) or type(field).__name__ for field in function.inputs]


def counted(number: int) -> str:
    """A number of values in words."""
    return "1 value" if number == 1 else f"{number} values"


def choices(blocks: gr.Blocks) -> str:
    """The endpoints there are."""
    names: Sequence[str] = [f"/{each.api_name}" for each in blocks.fns.values() if each.api_visibility == "public"]
    return f"choose {', '.join(names[:MOST_NAMED])}"
