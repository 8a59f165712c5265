"""Uploaded files: one path each, a bound for each client and for all, and a folder that ends with its server."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import httpx
import pytest
from conftest import ROOT
from ports import free_port

from cse.app.corpus import reading
from cse.app.page import launch_options
from cse.app.server.access import Names
from cse.app.validation import MAX_FILE_BYTES
from cse.corpus.corpus import Corpus


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    def read(path: str) -> str:
        try:
            return f"{Path(path).name}: {Path(path).read_text()}"
        finally:
            Path(path).unlink()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("uploads")))
        with gr.Blocks(analytics_enabled=False) as blocks:
            file = gr.File(label="File", file_types=[".txt"])
            gr.Button().click(read, file, gr.Textbox(), api_name="read")
        _, address, _ = blocks.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, **launch_options())
        yield f"{address}gradio_api"
        blocks.close()


def upload(url, content, name="a.txt", **options):
    return httpx.post(f"{url}/upload", files={"files": (name, content)}, timeout=60, **options)


def read(url, path):
    data = [path and {"path": path, "meta": {"_type": "gradio.FileData"}}]
    event = httpx.post(f"{url}/call/read", json={"data": data, "session_hash": "mine"}, timeout=60).json()["event_id"]
    return httpx.get(f"{url}/call/read/{event}", timeout=60).text


def test_two_visitors_with_one_file_have_two_paths(url, capfd) -> None:
    (one,), (other,) = (upload(url, b"the same").json() for _ in range(2))
    assert one != other
    assert (Path(one).name, Path(other).name) == ("a.txt", "a.txt")
    for path in (one, other):  # the first reading deletes its file
        assert read(url, path) == 'event: complete\ndata: ["a.txt: the same"]\n\n'
    assert not Path(one).exists()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("../../x.txt", "x.txt"),
        ("", None),
        ("..", "file"),
        ("x" * 300 + ".txt", "x" * 196 + ".txt"),
    ],
)
def test_a_file_keeps_its_name_in_a_folder_of_its_own(url, name, stored) -> None:
    answer = upload(url, b"x", name)
    if stored is None:
        assert (answer.status_code, answer.text) == (400, "The form has no file called files.")
    else:
        path = Path(answer.json()[0])
        assert path.name == stored
        assert path.parent.parent.name.startswith("uploads")
        assert httpx.get(f"{url}/file={path}", timeout=60).content == b"x"


def test_what_is_no_upload_is_one_line(url, capfd) -> None:
    two = [("files", ("a.txt", b"1")), ("files", ("b.txt", b"2"))]
    kind = {"content-type": "multipart/form-data; boundary=b"}
    assert httpx.post(f"{url}/upload", files=two, timeout=60).text.startswith("Too many files")
    assert httpx.post(f"{url}/upload", content=b"rubbish", headers=kind, timeout=60).status_code == 400
    large = upload(url, b"x" * (MAX_FILE_BYTES + 1))
    assert (large.status_code, large.text) == (413, f"The request has more than {MAX_FILE_BYTES:,} bytes; send less.")
    assert capfd.readouterr().err == ""


def test_a_client_and_all_of_them_leave_a_bounded_number_of_bytes(tmp_path, monkeypatch) -> None:
    from cse.app.server import bodies
    from cse.app.server.bodies import Budget
    from cse.app.server.gate import Gate

    with gr.Blocks() as blocks:
        gr.File()
    scope = {"app": SimpleNamespace(get_blocks=lambda: blocks, uploaded_file_dir=str(tmp_path))}
    gate = Gate(None, Names(), uploads=bodies.Uploads(budget=Budget(3_000, 4_000)))

    def send(host, size):
        async def app(asked, receive, answer) -> None:
            await gate({**asked, **scope}, receive, answer)

        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(app=app, client=(host, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.post("/gradio_api/upload", files={"files": ("a.txt", b"x" * size)})

        return asyncio.run(sent())

    first = send("10.0.0.1", 2_000)
    assert [answer.status_code for answer in (first, send("10.0.0.1", 900), send("10.0.0.2", 1_900))] == [200, 429, 503]
    line = "This address has too many uploads that wait to be read; try again later."
    assert send("10.0.0.1", 900).text == line
    Path(first.json()[0]).unlink()  # as who indexes it does
    assert send("10.0.0.1", 2_000).status_code == 200
    kept = list(tmp_path.glob("*/a.txt"))
    now = time.monotonic() + bodies.AGE + 1
    monkeypatch.setattr(bodies, "time", SimpleNamespace(monotonic=lambda: now))
    assert send("10.0.0.1", 2_000).status_code == 200  # those that were left are gone
    assert [path.is_file() for path in kept] == [False]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_servers_folder_ends_with_it_and_leftovers_of_killed_ones_with_the_next(tmp_path) -> None:
    from cse.app.serving import LOCK, run_folder

    with run_folder(tmp_path / "new") as running:
        (running / "upload").write_text("x")
        killed = running.with_name("cse-run-killed")
        killed.mkdir()
        killed.with_suffix(LOCK).touch()
        (killed / "upload").write_text("x")
        with run_folder(tmp_path / "new") as second:
            assert {path.name for path in (tmp_path / "new").iterdir()} == {
                running.name, running.name + LOCK, second.name, second.name + LOCK,
            }  # fmt: skip
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals (2026-11)")
def test_a_server_that_is_stopped_while_it_encodes_ends_at_once_and_leaves_no_files(tmp_path) -> None:
    """The encoding thread is inside a native library, which a normal exit of Python would break."""
    script = (
        "import os, pathlib, threading, time\nimport cse\nfrom cse.app import serving\n"
        "def encode(warm, encoder):\n"
        "    while True:\n"
        "        encoder.encode(['a dog runs'] * 64)\n"
        "        warm.set()\n"
        "def serve_from(options):\n"
        "    folder, warm = pathlib.Path(os.environ['GRADIO_TEMP_DIR']), threading.Event()\n"
        "    (folder / 'upload').write_text('x')\n"
        "    threading.Thread(target=encode, args=(warm, cse.load('simcse')), daemon=True).start()\n"
        "    warm.wait()\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(60)\n"
        "serving.serve_from = serve_from\n"
        "serving.serve(None)\n"
    )
    environment = {**os.environ, "GRADIO_TEMP_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment, text=True,
    ) as server:  # fmt: skip
        folder = Path(server.stdout.readline().strip())
        assert (folder / "upload").is_file()
        server.send_signal(signal.SIGTERM)
        assert (server.wait(60), server.stderr.read()) == (-signal.SIGTERM, "")
    assert list(tmp_path.iterdir()) == []


def test_a_visitor_cannot_make_the_app_read_an_address(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("id,text\n1,a secret\n")
    address = f"file://{tmp_path}/secret.csv"
    assert Corpus.read(address).texts == ["a secret"]  # as the owner's commands do
    for read in (reading.preview, lambda path: reading.file_corpus(path, "text", None)):
        with pytest.raises(ValueError, match=r"^secret\.csv: is no longer on the server"):
            read(address)
