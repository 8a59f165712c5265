"""Event streams: refused of a session that there is not, and bounded for one that there is."""

import asyncio
import json
from collections import Counter
from types import SimpleNamespace

import gradio as gr
import httpx
import pytest
from ports import free_port

from cse.app.page import launch_options
from cse.app.server import streams
from cse.app.server.gate import Gate
from cse.app.server.hosts import Names


@pytest.fixture(scope="module")
def url():
    def say() -> str:
        return "x"

    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.api(say, api_name="say")
    _, address, _ = blocks.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, **launch_options())
    yield f"{address}gradio_api/queue"
    blocks.close()


def test_a_stream_of_an_unknown_session_ends_with_one_message_and_logs_nothing(url, capfd) -> None:
    answer = httpx.get(f"{url}/data", params={"session_hash": "unknown"}, timeout=5)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/event-stream")
    (message, rest) = answer.text.split("\n\n")
    assert rest == ""
    told = json.loads(message.removeprefix("data: "))
    assert (told["msg"], told["session_not_found"], told["success"]) == ("unexpected_error", True, False)
    assert told["message"] == "There is no such session, or it was forgotten; make a call first."
    assert httpx.get(f"{url}/data", timeout=5).status_code == 422  # Gradio's own word on a session that is not named
    assert capfd.readouterr().err == ""


def test_a_stream_of_a_session_brings_its_results(url) -> None:
    sent = {"data": [], "fn_index": 0, "session_hash": "mine"}
    assert httpx.post(f"{url}/join", json=sent).status_code == 200
    found = httpx.get(f"{url}/data", params={"session_hash": "mine"}, timeout=60)
    assert found.status_code == 200
    assert '"data":["x"]' in found.text
    assert "close_stream" in found.text


def test_a_session_has_a_few_streams_and_a_new_one_once_one_ends() -> None:
    queue = SimpleNamespace(pending_messages_per_session={"mine": None, "others": None})
    blocks = SimpleNamespace(share_url=None, _queue=queue)
    answers: list[int] = []

    async def opened() -> None:
        ends = {name: asyncio.Event() for name in queue.pending_messages_per_session}

        async def app(scope, receive, send) -> None:
            answers.append(200)
            await ends["mine" if b"mine" in scope["query_string"] else "others"].wait()

        async def send(message) -> None:
            answers.extend([message["status"]] if message["type"] == "http.response.start" else [])

        gate = Gate(app, Names())

        def stream(session: str) -> asyncio.Task[None]:
            scope = {
                "type": "http", "method": "GET", "path": "/gradio_api/queue/data", "headers": [(b"host", b"localhost")],
                "query_string": f"session_hash={session}".encode(), "app": SimpleNamespace(get_blocks=lambda: blocks),
            }  # fmt: skip
            return asyncio.create_task(gate(scope, None, send))

        waiting = [stream("mine") for _ in range(streams.MOST + 3)]
        await asyncio.sleep(0)
        assert Counter(answers) == {200: streams.MOST, 429: 3}
        other = stream("others")
        await asyncio.sleep(0)
        assert Counter(answers) == {200: streams.MOST + 1, 429: 3}
        ends["mine"].set()
        await asyncio.gather(*waiting)
        await stream("mine")
        assert Counter(answers) == {200: streams.MOST + 2, 429: 3}
        ends["others"].set()
        await other
        assert not gate.streams._held

    asyncio.run(opened())
