"""The endpoints as tools of the Model Context Protocol; needs the extra `mcp`, without which one line says so."""

import ast
import asyncio
from importlib.util import find_spec

import pytest
from app_models import GOOD, serving, write_model
from command_line import exit_code

from cse.app import serving as app


def test_without_the_extra_one_line_says_what_to_install(capsys, monkeypatch):
    known = find_spec("gradio")
    monkeypatch.setattr(app, "find_spec", lambda name: None if name == "mcp" else known)
    assert exit_code("app", ["--mcp"]) == 3
    expected = "Error: --mcp needs the package mcp; install it with: pip install 'gradio[mcp]'\n"
    assert capsys.readouterr().err == expected


@pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed (2026-11: it pins pydantic)")
def test_the_public_endpoints_are_tools_that_say_what_they_take(tmp_path, bert_folder):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async def ask(url):
        async with (
            streamable_http_client(f"{url}gradio_api/mcp/") as (read, write, _),
            ClientSession(read, write) as one,
        ):
            await one.initialize()
            tools = {tool.name: tool for tool in (await one.list_tools()).tools}
            return tools, await one.call_tool("similarity", {"s1": "the cat", "s2": "the dog"})

    with serving([str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]], mcp_server=True) as url:
        tools, answer = asyncio.run(ask(url))
    assert {"similarity", "search", "tokens", "map", "models"} < set(tools)
    for tool in tools.values():
        assert len(tool.description) > 60
        assert all(known.get("description") for known in tool.inputSchema["properties"].values()), tool.name
    assert "1 to 256 texts" in tools["encode"].inputSchema["properties"]["texts"]["description"]
    assert not answer.isError
    assert set(ast.literal_eval(answer.content[0].text)) == set(GOOD[:2])  # Gradio sends what Python prints
