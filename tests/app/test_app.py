"""The app's command line: what it refuses in one line, and the host and port it is served on."""

import asyncio
import socket
from types import SimpleNamespace

import pytest
import uvicorn
from command_line import exit_code, options_of

from cse.app import serving as app
from cse.app.server.access import client_address


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nowhere"], "no model 'nowhere'; choose simcse, promptbert"),
        (["--model", "EMPTY"], "no config.json in it"),
        (["--index", "nowhere"], "no such index folder"),
    ],
)
def test_a_wrong_model_or_index_is_one_line_and_exit_code_4(tmp_path, capsys, arguments, message):
    (tmp_path / "EMPTY").mkdir()
    paths = [str(tmp_path / value) if value.isupper() else value for value in arguments]
    assert exit_code("app", paths) == 4
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.fixture
def served(monkeypatch):
    """The arguments that `app.main` would have served with; nothing is started."""
    calls = []
    monkeypatch.setattr(app, "serve", calls.append)
    monkeypatch.setenv("GRADIO_SERVER_NAME", "")  # as if it were not set
    return calls


def test_a_port_in_use_is_one_line_and_exit_code_3(capsys, served):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert exit_code("app", ["--port", str(port)]) == 3
    assert capsys.readouterr().err.startswith(f"Error: cannot use port {port} (Address already in use)")
    assert not served


def test_a_host_that_is_not_this_machines_is_one_line_and_exit_code_3(capsys, served):
    assert exit_code("app", ["--host", "192.0.2.1"]) == 3
    line = capsys.readouterr().err
    assert line.startswith("Error: cannot listen on '192.0.2.1' (")
    assert line.count("\n") == 1
    assert not served


def test_behind_a_spaces_proxy_a_visitors_own_address_counts(monkeypatch):
    blocks = SimpleNamespace(launch=lambda **_: None, is_running=False, close=lambda verbose: None)
    monkeypatch.setattr(app, "build_app", lambda *_: blocks)
    found = []

    async def asked(scope, receive, send):
        found.append(client_address(scope))

    for variable in ("SPACE_HOST", "FORWARDED_ALLOW_IPS"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    headers = [(b"x-forwarded-for", b"1.1.1.1, 203.0.113.7, 10.0.0.9")]  # the visitor may have written the first one
    for space in (None, "me-mine.hf.space"):
        if space:
            monkeypatch.setenv("SPACE_HOST", space)
        app.serve_from(options_of())
        config = uvicorn.Config(asked, log_config=None)
        config.load()
        scope = {"type": "http", "client": ("10.1.2.3", 1), "headers": headers}
        asyncio.run(config.loaded_app(scope, None, None))
    assert found == ["10.1.2.3", "203.0.113.7"]
