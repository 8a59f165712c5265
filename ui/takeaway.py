"""A result to take away: as JSON, as CSV for a spreadsheet, as a report that stands alone, and as code that repeats it.

Every form holds the same: the answer of an endpoint with its inputs, the models by fingerprint, and the version.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import cse
from ui import html

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # what spreadsheets take for the start of a formula, or cut before it
MODEL, PART, VALUE = "model", "part", "value"
ADD = "add_model"  # the endpoint that adds a model to a session
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.2rem .7rem;"
    "border-bottom:1px solid #8884;overflow-wrap:anywhere}pre{overflow:auto;padding:.7rem;border:1px solid #8884}"
)


@dataclass(frozen=True)
class Taken:
    """The `answer` of an endpoint to `inputs`, of `models` by fingerprint, as this `version` gives it.

    `added` are the models among them that the visitor added, by what he asked for. Nothing repeats a `private` answer,
    which is about something that only the visitor's page has.
    """

    endpoint: str
    inputs: dict[str, Any]
    models: dict[str, str]
    answer: Any
    added: tuple[str, ...] = ()
    private: bool = False
    version: str = cse.__version__


def as_json(taken: Taken) -> str:
    """All of it, every number as it was computed."""
    facts = {name: value for name, value in asdict(taken).items() if name != "private"}
    return json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def as_csv(taken: Taken) -> str:
    """The answer as a table below lines that begin with #, which say the rest.

    No cell is a formula to a spreadsheet: text that begins like one gets an apostrophe in front.
    """
    file = io.StringIO()
    writer = csv.writer(file)
    facts = {"endpoint": f"/{taken.endpoint}", "version": taken.version, "inputs": taken.inputs, "models": taken.models}
    facts |= {"added": taken.added} if taken.added else {}
    for name, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        writer.writerow([f"# {name}: {text}"])
    for row in table(taken.answer, taken.models):
        writer.writerow([safe(cell) for cell in row])
    return file.getvalue()


def safe(cell: Any) -> Any:
    """A cell that no spreadsheet computes; numbers stay as they are."""
    if isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA):
        return f"'{cell}"
    return cell


def table(answer: Any, models: Mapping[str, str]) -> list[list[Any]]:
    """An answer as rows below a heading, first where each stands in it: under which model, list or place."""
    rows = list(_rows(answer, ()))
    depth = max((len(place) for place, _ in rows), default=0)
    names = list(dict.fromkeys(name for _, record in rows for name in record))
    first = MODEL if rows and all(place and place[0] in models for place, _ in rows) else f"{PART} 1"
    heads = [first, *(f"{PART} {number}" for number in range(2, depth + 1))][:depth]
    body = [[*place, *[""] * (depth - len(place)), *(record.get(name, "") for name in names)] for place, record in rows]
    return [[*heads, *names], *body]


def _rows(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The records within a value and where they stand: an object or a short list of plain values is one record."""
    if not isinstance(value, (Mapping, list, tuple)):
        yield place, {VALUE: "" if value is None else value}
        return
    items = list(value.items()) if isinstance(value, Mapping) else list(enumerate(value, start=1))
    flat = not any(isinstance(item, (Mapping, list, tuple)) for _, item in items)
    texts = isinstance(value, (list, tuple)) and all(isinstance(item, str) for _, item in items)
    if place and flat and not texts:
        yield place, {str(key): "" if item is None else item for key, item in items}
        return
    for key, item in items:
        yield from _rows(item, (*place, key))


def as_report(taken: Taken, address: str) -> str:
    """A page that needs nothing else: inputs, models, the answer as a table, and the code; every text is escaped."""
    facts = [("Endpoint", f"/{taken.endpoint}"), ("Version", taken.version)]
    facts += [("Added models", ", ".join(taken.added))] if taken.added else []
    head, *body = table(taken.answer, taken.models)
    parts = [
        _html_table(("", ""), facts),
        "<h2>Inputs</h2>", _html_table(("Name", "Value"), taken.inputs.items()),
        "<h2>Models</h2>", _html_table(("Model", "Fingerprint"), taken.models.items()),
        "<h2>Result</h2>", _html_table(head, body),
    ]  # fmt: skip
    for name, code in {} if taken.private else {"Python": python_code, "curl": curl_code}.items():
        parts.append(f"<h2>{name}</h2><pre>{html.escape(code(taken, address))}</pre>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Sentence embeddings: /{html.escape(taken.endpoint)}</title><style>{STYLE}</style></head>"
        f"<body><h1>Sentence embeddings: /{html.escape(taken.endpoint)}</h1>{''.join(parts)}</body></html>\n"
    )


def _html_table(head: Sequence[Any], rows: Any) -> str:
    heads = "".join(f'<th scope="col">{html.escape(str(cell))}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{heads}</tr></thead>' if any(head) else ''}<tbody>{body}</tbody></table>"


def python_code(taken: Taken, address: str) -> str:
    """A program that asks the app again and prints the answer as JSON. Raises ValueError for a private answer."""
    _repeatable(taken)
    given = "".join(f"    {name}={value!r},\n" for name, value in taken.inputs.items())
    added = "".join(f'client.predict({name!r}, api_name="/{ADD}")\n' for name in taken.added)
    return (
        "import json\n\nfrom gradio_client import Client\n\n"
        f"client = Client({address!r}, verbose=False)\n{added}"
        f'answer = client.predict(\n{given}    api_name="/{taken.endpoint}",\n)\n'
        "print(json.dumps(answer))\n"
    )


def curl_code(taken: Taken, address: str) -> str:
    """Two commands of a shell: the first asks, the second waits for the answer, a list with one item after `data:`.

    Models that a visitor added are added before, each by two such commands, to a session that the code names; run
    again, these say that it has them already. Raises ValueError for a private answer.
    """
    _repeatable(taken)
    session = {"session_hash": secrets.token_hex(8)} if taken.added else {}
    calls = [*((ADD, [name]) for name in taken.added), (taken.endpoint, list(taken.inputs.values()))]
    return "".join(_curl(address, endpoint, {"data": data, **session}) for endpoint, data in calls)


def _repeatable(taken: Taken) -> None:
    if taken.private:
        raise ValueError(
            "No code repeats a search of your own sentences, which only your page has; to repeat it, index them with "
            "scripts.build_index and start the app with --index."
        )


def _curl(address: str, endpoint: str, body: dict[str, Any]) -> str:
    given, call = shlex.quote(json.dumps(body)), shlex.quote(f"{address.rstrip('/')}/gradio_api/call/{endpoint}")
    return (
        f"event=$(curl -s {call} -H 'Content-Type: application/json' -d {given} \\\n"
        f'  | sed \'s/.*"event_id": *"\\([^"]*\\)".*/\\1/\')\n'
        f'curl -sN {call}/"$event"\n'
    )


# Each form: its button, the end of the file's name and its type ("" for code that is shown), and what makes it.
FORMS: dict[str, tuple[str, str, Callable[[Taken, str], str]]] = {
    "CSV": ("csv", "text/csv", lambda taken, address: as_csv(taken)),
    "JSON": ("json", "application/json", lambda taken, address: as_json(taken)),
    "Report": ("html", "text/html", as_report),
    "Python": ("py", "", python_code),
    "curl": ("sh", "", curl_code),
}
