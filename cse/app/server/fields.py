"""Checks of the values that clients send for fields of the page and of endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import gradio as gr
from gradio.data_classes import FileData
from gradio_client.utils import is_file_obj_with_meta, is_valid_file

A_FILE = '{"path": ..., "meta": {"_type": "gradio.FileData"}}'
MOST_NAMED = 20  # choices listed in a message
WITH_CHOICES = (gr.Dropdown, gr.Radio, gr.CheckboxGroup)
WITH_BOUNDS = (gr.Number, gr.Slider)


def current(field: Any, blocks: gr.Blocks, session: str | None) -> Any:
    """Return a field with the current choices of a session's page."""
    if session is None or not isinstance(field, WITH_CHOICES):
        return field
    state = blocks.state_holder.session_data.get(session)
    return field if state is None else state.blocks_config.blocks.get(field._id, field)


def reason_of_value(what: str, field: Any, value: Any, blocks: gr.Blocks) -> str | None:
    """Return why a field named `what` cannot take a value; None if it can, or if its function checks it."""
    files = list(files_in(value))
    if not isinstance(field, gr.File):
        return f"{what} is a file; send text." if files else reason_of_choice(what, field, value)
    if any(not isinstance(file["meta"], dict) for file in files):
        return f"{what} has a file whose meta is not an object; upload it again."
    if any(file["path"] not in blocks.upload_file_set for file in files):
        return f"{what} was not uploaded here, or too long ago; upload it again."
    if value is not None and not (files == [value] and is_valid(value)):
        return f"{what} takes {A_FILE} that was uploaded here, or null, not {json.dumps(value)[:60]}."
    if value is not None and field.file_types and not is_valid_file(value["path"], field.file_types):
        name = PurePath(value["path"]).name[:60]
        return f"{what} takes {' or '.join(field.file_types)}, not {name}; give another file."
    return None


def reason_of_choice(what: str, field: Any, value: Any) -> str | None:
    """Return why a field with choices or bounds cannot take a value. Gradio's own check logs a traceback."""
    if not isinstance(field, (*WITH_CHOICES, *WITH_BOUNDS)):
        return None
    try:
        field.preprocess(value)
    except (gr.Error, TypeError, ValueError, OverflowError):
        if isinstance(field, WITH_CHOICES):
            cure = f"choose {' or '.join(str(choice) for _, choice in field.choices[:MOST_NAMED])}"
        else:
            cure = f"give a number from {field.minimum} to {field.maximum}"
        return f"{what} cannot be {json.dumps(value)[:60]}; {cure}."
    if isinstance(field, gr.Dropdown) and field.allow_custom_value and not isinstance(value, str | None):
        return (
            f"{what} cannot be {json.dumps(value)[:60]}; send text."  # Gradio takes any value where it takes a new one
        )
    return None


def is_valid(file: dict[str, Any]) -> bool:
    """True if Gradio can read a reference to a file; its own check comes late and logs a traceback."""
    try:
        FileData.model_validate(file)
    except ValueError:
        return False
    return True


def files_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the references to files within a JSON value, and those with an invalid `meta`, on which Gradio fails."""
    waiting: list[Any] = [value]
    while waiting:
        found = waiting.pop()
        known = found if isinstance(found, dict) and isinstance(found.get("path"), str) else {}
        if not isinstance(known.get("meta", {}), dict) or is_file_obj_with_meta(known):
            yield found
        elif isinstance(found, (dict, list)):
            waiting.extend(found.values() if isinstance(found, dict) else found)
