"""Bounds on one visitor's resources: names, open requests, unfinished bodies, and answers that are not fetched."""

import asyncio
import json
import socket
import time
from collections import defaultdict
from types import SimpleNamespace
from urllib.parse import urlparse

import gradio as gr
import httpx
import pytest
from gradio.queueing import Queue
from gradio.server_messages import EstimationMessage, ProcessCompletedMessage
from ports import free_port

from cse.app.page import Page, launch_options
from cse.app.server.hosts import Names

WRONG = ("\ud800", "", "x" * 65, "a b", "caf\u00e9", "a/b", 5, ["a"])


@pytest.fixture(scope="module")
def url():
    def say(text: str) -> str:
        return text * 1000

    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.api(say, api_name="say")
    blocks.queue()
    from cse.app.server.answers import bound_answers

    bound_answers(blocks)
    _, address, _ = blocks.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, **launch_options())
    yield f"{address}gradio_api"
    blocks.close()


def test_a_server_at_rest_seldom_looks_at_its_queue(monkeypatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(Queue, "__len__", lambda _: looks.append(1) or 0)
    with Page(analytics_enabled=False) as blocks:
        gr.Markdown("Nobody is here.")
    begun = time.monotonic()
    blocks.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, **launch_options())
    while len(looks) < 10 and time.monotonic() < begun + 30:
        time.sleep(0.1)
    passed = time.monotonic() - begun
    blocks.close()
    assert 10 <= len(looks) < 100 * passed  # Gradio's 1,000 a second take 6 % of a core


def post(url, sent):
    return httpx.post(url, content=json.dumps(sent), headers={"content-type": "application/json"}, timeout=60)


@pytest.mark.parametrize("name", WRONG)
def test_a_session_is_called_in_plain_characters(url, capfd, name) -> None:
    line = f"session_hash is {json.dumps(name)[:60]}; give 1 to 64 letters a-z, digits, hyphens, underscores or dots."
    for path, sent in {
        "call/say": {"data": ["a"]},
        "queue/join": {"data": ["a"], "fn_index": 0},
        "run/say": {"data": ["a"]},
        "cancel": {"event_id": "x", "fn_index": 0},
        "component_server": {"data": [], "component_id": 1, "fn_name": "x"},
    }.items():
        answer = post(f"{url}/{path}", {**sent, "session_hash": name})
        assert (answer.status_code, answer.json().get("error")) == (422, line), path
    event = post(f"{url}/call/say", {"data": ["a"]}).json()["event_id"]
    assert httpx.get(f"{url}/call/say/{event}", timeout=60).text.startswith("event: complete")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["%ED%A0%80", "", "x" * 65, "a%20b", "caf%C3%A9"])
def test_a_stream_is_asked_for_by_a_plain_name(url, name) -> None:
    for path in (f"queue/data?session_hash={name}", f"queue/data?session_hash=a&session_hash={name}"):
        assert httpx.get(f"{url}/{path}", timeout=5).status_code == 422
    assert not name or httpx.get(f"{url}/heartbeat/{name}", timeout=5).status_code == 422


def test_plain_names_are_taken(url) -> None:
    for name in ("a", "x" * 64, "0f-A_b.c", None):
        assert post(f"{url}/call/say", {"data": ["a"], "session_hash": name}).status_code == 200
    with httpx.stream("GET", f"{url}/heartbeat/0f-A_b.c", timeout=5) as beat:
        assert beat.status_code == 200


def test_answers_that_nobody_fetches_make_room_for_later_ones(url, monkeypatch) -> None:
    monkeypatch.setattr("cse.app.server.answers.ALL_BYTES", 100_000)
    events = [post(f"{url}/call/say", {"data": [letter * 20]}).json()["event_id"] for letter in "abcdefghij"]
    last = httpx.get(f"{url}/call/say/{events[-1]}", timeout=60).text  # comes once all others are there
    assert last == f'event: complete\ndata: ["{"j" * 20_000}"]\n\n'
    first = httpx.get(f"{url}/call/say/{events[0]}", timeout=60).text
    said = "The answer was not fetched in time, or was too large to be kept; call again."
    assert json.loads(first.removeprefix("event: error\ndata: "))["error"] == said


def mailboxes():
    from cse.app.server.answers import Mailboxes

    events: dict[str, set[str]] = {}
    return Mailboxes(events, lambda session: None), events


def ended(number, size=0):
    return ProcessCompletedMessage(output={"data": ["x" * size]}, success=True, event_id=str(number))


def test_a_session_keeps_a_bounded_number_of_bytes(monkeypatch) -> None:
    monkeypatch.setattr("cse.app.server.answers.SESSION_BYTES", 40_000)
    boxes, events = mailboxes()
    for name in ("greedy", "other"):
        boxes[name] = asyncio.Queue()
        events[name] = set(map(str, range(50)))
        boxes[name].put_nowait(EstimationMessage(rank=0, queue_size=1, rank_eta=None))
    boxes["other"].put_nowait(ended(0, 1000))
    for number in range(50):
        boxes["greedy"].put_nowait(ended(number, 1000))
    assert boxes.size <= 2 * 40_000
    told = boxes["greedy"].emptied()
    assert told[0].output["error"].startswith("The answer was not fetched in time")
    assert told[-1].output == {"data": ["x" * 1000]}
    assert {message.event_id for message in told} == events["greedy"]  # what was forgotten is not waited for
    assert boxes["other"].emptied()[-1].output == {"data": ["x" * 1000]}
    assert boxes.size == 0


def test_an_old_answer_is_dropped_and_one_that_is_waited_for_is_not(monkeypatch) -> None:
    boxes, _ = mailboxes()
    now = [0.0]
    monkeypatch.setattr("cse.app.server.answers.time", SimpleNamespace(monotonic=lambda: now[0]))
    for name in ("left", "reading", "new"):
        boxes[name] = asyncio.Queue()

    async def passed() -> object:
        boxes["left"].put_nowait(ended(0, 50_000))
        now[0] = 601.0
        reading = asyncio.create_task(boxes["reading"].get())
        await asyncio.sleep(0)
        boxes["reading"].put_nowait(ended(1, 50_000))
        boxes["new"].put_nowait(ended(2, 50_000))
        return (await reading).output

    assert asyncio.run(passed()) == {"data": ["x" * 50_000]}
    assert "error" in boxes["left"].emptied()[0].output
    assert list(boxes) == ["left", "new", "reading"]


def test_of_too_many_sessions_the_longest_unread_is_forgotten(monkeypatch) -> None:
    monkeypatch.setattr("cse.app.server.answers.MOST_SESSIONS", 3)
    boxes, events = mailboxes()

    async def passed() -> None:
        for name in ("a", "b", "c"):
            boxes[name] = asyncio.Queue()
            events[name] = {"1"}
            boxes[name].put_nowait(ended(1, 10))
        await boxes["a"].get()
        boxes["d"] = asyncio.Queue()

    asyncio.run(passed())
    assert (sorted(boxes), sorted(events)) == (["a", "c", "d"], ["a", "c"])
    boxes["b"].put_nowait(ended(1))  # its call ends later, to nobody
    del boxes["b"]
    del boxes["c"]
    assert boxes.size == 0


def test_a_body_that_does_not_end_is_answered_and_its_connection_closed(url, monkeypatch) -> None:
    monkeypatch.setattr("cse.app.server.bodies.SECONDS", 0.05)
    place = urlparse(url)
    head = f"POST {place.path}/call/say HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        client.sendall(f'{head}Content-Length: 100\r\n\r\n{{"data": ['.encode())
        said = b"".join(iter(lambda: client.recv(4096), b"")).decode()
    assert said.startswith("HTTP/1.1 408 ")
    assert said.endswith('{"detail":"The request\'s body was not complete after 0 seconds; send it again."}')


def test_unfinished_bodies_hold_a_bounded_number_of_bytes() -> None:
    from starlette.exceptions import HTTPException

    from cse.app.server.bodies import read
    from cse.app.server.budget import Budget

    budget, sent = Budget(100, 150), asyncio.Event

    async def body(client, size, end) -> tuple[bytes, bool]:
        waiting = [{"type": "http.request", "body": b"x" * size, "more_body": True}]

        async def receive():
            if waiting:
                return waiting.pop()
            await end.wait()
            return {"type": "http.request", "body": b"y", "more_body": False}

        return await read(receive, budget, client)

    async def passed() -> list[object]:
        end = sent()
        jobs = [asyncio.create_task(body(client, 60, end)) for client in ("a", "a", "b", "c")]
        await asyncio.sleep(0)
        end.set()
        found = await asyncio.gather(*jobs, return_exceptions=True)
        assert await body("a", 99, end) == (b"x" * 99 + b"y", True)  # all of it is free again
        return [each.status_code if isinstance(each, HTTPException) else each for each in found]

    whole = (b"x" * 60 + b"y", True)
    assert asyncio.run(passed()) == [whole, 429, whole, 503]


def test_a_client_holds_a_bounded_number_of_requests_open_and_so_do_all() -> None:
    from cse.app.server.budget import Budget
    from cse.app.server.gate import Gate

    blocks = SimpleNamespace(share_url=None)

    async def opened() -> None:
        end = asyncio.Event()

        async def app(scope, receive, send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await end.wait()
            await send({"type": "http.response.body", "body": b""})

        gate = Gate(app, Names(), open=defaultdict(lambda: Budget(2, 3)))

        def beat(host, kind="heartbeat") -> tuple[list[int], asyncio.Task[None]]:
            statuses: list[int] = []

            async def send(message) -> None:
                statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

            scope = {
                "type": "http", "method": "GET", "path": f"/gradio_api/{kind}/a", "query_string": b"",
                "headers": [(b"host", b"localhost")], "client": (host, 1),
                "app": SimpleNamespace(get_blocks=lambda: blocks),
            }  # fmt: skip
            return statuses, asyncio.create_task(gate(scope, None, send))

        # Two addresses of one IPv6 network are one client.
        beats = [beat(host) for host in ("2001:db8::1", "2001:db8::2", "2001:db8::3", "10.0.0.2", "10.0.0.3")]
        await asyncio.sleep(0)
        assert [statuses for statuses, _ in beats] == [[200], [200], [429], [200], [503]]
        beats.append(beat("2001:db8::3", "mcp"))
        await asyncio.sleep(0)
        assert beats[-1][0] == [200]  # who opens too many streams is not kept from the rest
        end.set()
        await asyncio.gather(*(task for _, task in beats))
        statuses, task = beat("2001:db8::3")
        await task
        assert statuses == [200]

    asyncio.run(opened())
