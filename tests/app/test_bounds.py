"""Bounds on one visitor: session names, streams, open requests, unfinished bodies, and answers that are not fetched."""

import asyncio
import json
import socket
from collections import defaultdict
from types import SimpleNamespace
from urllib.parse import urlparse

import gradio as gr
import httpx
import pytest
from ports import free_port

from cse.app.page import launch_options
from cse.app.server import gradio_adapter
from cse.app.server.access import Names
from cse.app.server.bodies import Budget
from cse.app.server.gate import Gate


@pytest.fixture(scope="module")
def url():
    def say(text: str) -> str:
        return text * 1000

    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.api(say, api_name="say")
    blocks.queue()
    gradio_adapter.set_up_queue(blocks)
    _, address, _ = blocks.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, **launch_options())
    yield f"{address}gradio_api"
    blocks.close()


def post(url, sent):
    return httpx.post(url, content=json.dumps(sent), headers={"content-type": "application/json"}, timeout=60)


@pytest.mark.parametrize("name", ["\ud800", "x" * 65, "a/b", ["a"]])
def test_a_session_is_called_in_plain_characters(url, capfd, name) -> None:
    line = f"session_hash is {json.dumps(name)[:60]}; give 1 to 64 letters a-z, digits, hyphens, underscores or dots."
    for path, sent in {
        "call/say": {"data": ["a"]},
        "queue/join": {"data": ["a"], "fn_index": 0},
        "run/say": {"data": ["a"]},
    }.items():
        answer = post(f"{url}/{path}", {**sent, "session_hash": name})
        assert (answer.status_code, answer.json().get("error")) == (422, line), path
    assert capfd.readouterr().err == ""


def test_a_stream_is_asked_for_by_a_plain_name(url) -> None:
    name = "x" * 65
    for path in (f"queue/data?session_hash={name}", f"queue/data?session_hash=a&session_hash={name}"):
        assert httpx.get(f"{url}/{path}", timeout=30).status_code == 422
    assert httpx.get(f"{url}/heartbeat/{name}", timeout=30).status_code == 422


def test_answers_that_nobody_fetches_make_room_for_later_ones(url, monkeypatch) -> None:
    monkeypatch.setattr(gradio_adapter, "MAX_BYTES", 100_000)
    events = [post(f"{url}/call/say", {"data": [letter * 20]}).json()["event_id"] for letter in "abcdefghij"]
    last = httpx.get(f"{url}/call/say/{events[-1]}", timeout=60).text  # comes once all others are there
    assert last == f'event: complete\ndata: ["{"j" * 20_000}"]\n\n'
    first = httpx.get(f"{url}/call/say/{events[0]}", timeout=60)
    assert (first.status_code, first.json()["detail"].split(",")[0]) == (404, f"There is no call {events[0]}")


def test_a_body_that_does_not_end_is_answered_and_its_connection_closed(url, monkeypatch) -> None:
    monkeypatch.setattr("cse.app.server.bodies.SECONDS", 0.05)
    place = urlparse(url)
    head = f"POST {place.path}/call/say HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        client.sendall(f'{head}Content-Length: 100\r\n\r\n{{"data": ['.encode())
        said = b"".join(iter(lambda: client.recv(4096), b"")).decode()
    assert said.startswith("HTTP/1.1 408 ")
    assert said.endswith('{"detail":"The request\'s body was not complete after 0 seconds; send it again."}')


def test_a_client_holds_a_bounded_number_of_requests_open_and_so_do_all() -> None:

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
