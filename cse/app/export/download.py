"""Downloads of a result: as JSON, as a table for a spreadsheet or a paper, and as code that repeats it."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cse.app.drawing.components import file_stem
from cse.app.export.taken import Taken
from cse.app.export.tidy import TABLES
from cse.app.export.typeset import as_latex, as_markdown
from cse.corpus.output import csv_text

ADD = "add_model"  # the endpoint that adds a model to a session
MOST_NAMED = 4  # models listed in a file name
HIDDEN = ("own", "private", "histograms", "colours")  # facts that JSON leaves out
SENDING = """with open("texts.txt", encoding="utf-8") as file:  # your texts, one a line
    texts = [line.strip() for line in file if line.strip()]
key = client.predict(texts, api_name="/texts")["key"]
while any(
    each["done"] < len(texts) and not each["error"]
    for each in client.predict([], key=key, api_name="/texts")["models"].values()
):
    time.sleep(1)
"""


def as_json(taken: Taken) -> str:
    """Return the whole result as JSON, with unrounded numbers and the reasons of failures."""
    facts = {name: value for name, value in asdict(taken).items() if name not in HIDDEN}
    for name in ("percentiles", "seeds"):
        if not facts[name]:
            del facts[name]
    return json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def as_csv(taken: Taken) -> str:
    """Return the answer as a table with a row per observation (`cse.app.export.tidy`)."""
    table = TABLES[taken.endpoint]
    return csv_text(table.columns, table.rows(taken))


def stem(taken: Taken) -> str:
    """Return a result's file name without its suffix: the result and its chosen input, or the models of maps."""
    table = TABLES[taken.endpoint]
    named = sorted(taken.models) if taken.endpoint == "map" else [str(taken.inputs.get(table.chosen, ""))]
    return file_stem(table.name, *([f"{len(named)} models"] if len(named) > MOST_NAMED else named))


def python_code(taken: Taken, address: str) -> str:
    """Return a program that calls the endpoint and prints the answer as JSON. Raises ValueError if it is private.

    About the visitor's corpus, it first sends the texts in `texts.txt` and waits until all models have encoded them.
    """
    _repeatable(taken)
    key = {"key": "key"} if taken.own else {}
    given = "".join(f"    {name}={key.get(name, repr(value))},\n" for name, value in taken.inputs.items())
    added = "".join(f'client.predict({name!r}, api_name="/{ADD}")\n' for name in taken.added)
    imported, sending = ("import json\nimport time", SENDING) if taken.own else ("import json", "")
    return (
        f"{imported}\n\nfrom gradio_client import Client\n\n"
        f"client = Client({address!r}, verbose=False)\n{added}{sending}"
        f'answer = client.predict(\n{given}    api_name="/{taken.endpoint}",\n)\n'
        "print(json.dumps(answer))\n"
    )


def curl_code(taken: Taken, address: str) -> str:
    """Return two shell commands: a call, and a wait for the answer, a list with one item after `data:`.

    Models that a visitor added are first added to a session named in the code, by two such commands each; a second run
    reports that the session has them already. Raises ValueError for an answer about the visitor's corpus or page.
    """
    _repeatable(taken)
    if taken.own:
        raise ValueError("curl does not send your texts; take Python, which reads them from texts.txt.")
    session = {"session_hash": secrets.token_hex(8)} if taken.added else {}
    calls = [*((ADD, [name]) for name in taken.added), (taken.endpoint, list(taken.inputs.values()))]
    return "".join(_curl(address, endpoint, {"data": data, **session}) for endpoint, data in calls)


def _repeatable(taken: Taken) -> None:
    if taken.private:
        raise ValueError("No code repeats this result, which only your page has; save it as CSV or JSON instead.")


def _curl(address: str, endpoint: str, body: dict[str, Any]) -> str:
    given, call = shlex.quote(json.dumps(body)), shlex.quote(f"{address.rstrip('/')}/gradio_api/call/{endpoint}")
    return (
        f"event=$(curl -s {call} -H 'Content-Type: application/json' -d {given} \\\n"
        f'  | sed \'s/.*"event_id": *"\\([^"]*\\)".*/\\1/\')\n'
        f'curl -sN {call}/"$event"\n'
    )


# Each form: its button, the file's suffix and MIME type ("" for code that is shown), and the function that makes it.
FORMS: dict[str, tuple[str, str, Callable[[Taken, str], str]]] = {
    "CSV": ("csv", "text/csv", lambda taken, address: as_csv(taken)),
    "LaTeX": ("tex", "application/x-tex", lambda taken, address: as_latex(taken)),
    "Markdown": ("md", "text/markdown", lambda taken, address: as_markdown(taken)),
    "JSON": ("json", "application/json", lambda taken, address: as_json(taken)),
    "Python": ("py", "", python_code),
    "curl": ("sh", "", curl_code),
}
