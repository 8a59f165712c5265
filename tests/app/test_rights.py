"""The owner's rights: by the token that the server prints, never by an address; and no client pushes others out."""

import json
import os
import re
import time
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from threading import Thread
from types import SimpleNamespace

import httpx
import pytest
from app_models import write_model
from command_line import exit_code, options_of
from gradio.context import LocalContext
from gradio_client import Client as Program
from gradio_client.exceptions import AppError
from ports import free_port

from cse.app import serving
from cse.app.corpus.own import MAX_KEPT, OwnCorpora, OwnCorpus
from cse.app.models.naming import Admission
from cse.app.models.recent import Bounds, current_client
from cse.app.server.access import Client
from cse.app.training import training as training_module
from cse.app.training.request import REFUSED, Rules, TrainingRequest
from cse.app.training.trainings import FOLDERS_REFUSED, Trainings
from cse.app.validation import MAX_FILE_BYTES
from cse.files import hub

KEY = "5" * 32
TEXTS = ["A cat sits on the mat.", "A train is late today."]
SECRET = "s3cret-of-the-owner"
PROXIED = {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "127.0.0.1", "X-Real-IP": "127.0.0.1"}


class Server:
    """A running app as its owner starts it: `url`, what it `said`, and its Gradio blocks."""

    def __init__(self, *options):
        port = free_port()
        self.url, self.said = f"http://127.0.0.1:{port}", StringIO()
        self.options = options_of("--port", str(port), *options)

    def has_said(self):
        """True if the address was printed, or is not."""
        return self.options.open or (self.said.getvalue().endswith("\n") and "token=" in self.said.getvalue())

    def token(self):
        """The token of the printed address."""
        (found,) = re.findall(rf"{self.url}/\?token=(\S+)", self.said.getvalue())
        return found

    def opens(self, folder, **sent):
        """What the page answers to a client that opens a folder of the server; `sent` are its headers and cookies."""
        return self.call("put", [folder, None, KEY, []], **sent)[1]

    def call(self, name, values, **sent):
        """The outputs of a function of the page, which no named endpoint has."""
        numbers = {function.name: number for number, function in self.blocks.fns.items()}
        api, session = f"{self.url}/gradio_api", os.urandom(4).hex()
        with httpx.Client(**sent, trust_env=False, timeout=60) as client:
            call = {"fn_index": numbers[name], "data": values, "session_hash": session}
            joined = client.post(f"{api}/queue/join", json=call)
            assert joined.status_code == 200, joined.text
            with client.stream("GET", f"{api}/queue/data", params={"session_hash": session}) as stream:
                for line in stream.iter_lines():
                    message = json.loads(line.removeprefix("data: ")) if line else {}
                    if message.get("msg") == "process_completed":
                        return message["output"]["data"]
        raise AssertionError("the call did not end")


@contextmanager
def started(shown, *options):
    """A server with the column `shown`."""
    server, build = Server(*options), serving.build_app

    def built(*words):
        server.blocks = build([shown], *words[1:])
        return server.blocks

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(server.said):
        patch.setattr(serving, "build_app", built)
        for variable in ("CSE_TOKEN", "SPACE_ID", "SPACE_HOST", "CSE_TRAIN", "CSE_ALLOWED_HOSTS"):
            patch.delenv(variable, raising=False)
        thread = Thread(target=serving.serve_from, args=[server.options], daemon=True)
        thread.start()
        ends = time.monotonic() + 60
        while not (getattr(server, "blocks", None) and server.blocks.is_running and server.has_said()):
            assert thread.is_alive()
            assert time.monotonic() < ends
            thread.join(0.05)
    yield server
    server.blocks.close(verbose=False)
    thread.join(30)


@pytest.fixture(scope="module")
def shown(tmp_path_factory, bert_folder):
    return str(write_model(tmp_path_factory.mktemp("rights") / "simcse", bert_folder, "simcse"))


@pytest.fixture(scope="module")
def server(shown):
    with started(shown) as running:
        yield running


def page_of(server, **sent):
    """A browser's client of the server."""
    return httpx.Client(base_url=server.url, trust_env=False, **sent, timeout=60)


def trains(server, **sent):
    """What the page says to a client that presses Adapt, for a model that there is not."""
    return str(server.call("adapt", ["demo", KEY, "nowhere at all", "", "both", 5, []], **sent)[-1])


@pytest.mark.parametrize(
    "headers",
    [
        {},  # a program, or `proxy_pass http://127.0.0.1:…`
        {"Host": "127.0.0.1", **PROXIED, "Forwarded": "for=127.0.0.1;by=owner", "X-Forwarded-User": "owner"},
        {"Authorization": f"Bearer {SECRET}"},
        {"Cookie": f"cse-PORT={'0' * 96}; token={SECRET}"},
    ],
)
def test_no_address_makes_an_owner_and_no_answer_tells_which_paths_exist(server, shown, tmp_path, headers):
    headers = {name: value.replace("PORT", server.url.rpartition(":")[2]) for name, value in headers.items()}
    answers = {server.opens(path, headers=headers) for path in (shown, str(tmp_path), "/nowhere", "~")}
    assert len(answers) == 1
    assert FOLDERS_REFUSED in answers.pop()
    assert REFUSED in trains(server, headers=headers)


def test_the_printed_address_gives_the_rights_by_a_cookie_that_no_script_reads(server, shown, tmp_path):
    token = server.token()
    assert len(token) >= 43  # 256 bits
    with page_of(server) as browser:
        answer = browser.get("/", params={"lesson": "vector", "token": token, "s": "a & b"}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/?lesson=vector&s=a+%26+b")
        assert answer.headers["cache-control"] == "no-store"
        cookie = answer.headers["set-cookie"]
        assert token not in cookie
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        page = browser.get(answer.headers["location"])
        assert page.status_code == 200
        assert token not in page.text
        assert "set-cookie" not in page.headers
        owner = dict(browser.cookies)
    assert "no config.json in it" in server.opens(str(tmp_path), cookies=owner)
    assert "is on your page already" in server.opens(shown, cookies=owner)
    assert "There is no model" in trains(server, cookies=owner)
    foreign = {name: value[:-1] + ("0" if value[-1] != "0" else "1") for name, value in owner.items()}
    assert FOLDERS_REFUSED in server.opens(shown, cookies=foreign)
    with page_of(server, cookies=owner) as browser:
        crossed = browser.post("/gradio_api/queue/join", headers={"Origin": "http://evil.example"}, json={})
        assert crossed.status_code == 403


def test_a_wrong_token_leaves_the_address_too_and_gives_nothing(server, shown):
    with page_of(server) as browser:
        for wrong in ("wrong", "é", server.token()[:-1]):
            answer = browser.get("/", params={"token": wrong}, follow_redirects=False)
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert FOLDERS_REFUSED in server.opens(shown, cookies=dict(browser.cookies))
        assert browser.get("//evil.example/?token=x", follow_redirects=False).headers.get("location", "/")[:2] != "//"


def test_a_program_gives_the_token_as_a_header(server, shown):
    sent = {"Authorization": f"Bearer {server.token()}"}
    assert "is on your page already" in server.opens(shown, headers=sent)
    program = Program(server.url, verbose=False, headers=sent, httpx_kwargs={"trust_env": False, "timeout": 60})
    assert "simcse" in program.predict(*TEXTS, api_name="/similarity")


def test_the_owner_may_send_larger_files_than_visitors(server):
    model = {"files": ("model.zip", bytes(MAX_FILE_BYTES + 2**20))}
    with page_of(server) as browser:
        assert browser.post("/gradio_api/upload", files=model).status_code == 413
        browser.get("/", params={"token": server.token()})
        assert browser.post("/gradio_api/upload", files=model).status_code == 200


def test_a_token_may_be_the_owners_own_and_open_says_that_there_is_none(shown, monkeypatch, capsys):
    with started(shown, "--token", SECRET, "--train") as server:
        assert server.token() == SECRET
        assert "is on your page already" in server.opens(shown, headers={"Authorization": f"bearer {SECRET}"})
        assert FOLDERS_REFUSED in server.opens(shown)
        assert "There is no model" in trains(server)  # --train is for everyone
    with started(shown, "--open") as server:
        assert "token" not in server.said.getvalue()
        assert "is on your page already" in server.opens(shown)
        assert "There is no model" in trains(server)
    assert capsys.readouterr().err.startswith("Open: everyone who reaches the app may train and open folders")
    monkeypatch.setenv("CSE_TOKEN", f" {SECRET}\n")
    assert options_of().token == SECRET
    assert exit_code("app", ["--open"]) == 3
    assert capsys.readouterr().err.startswith("Error: --open gives everyone the owner's rights; leave it out")


@pytest.mark.parametrize("own", [None, SECRET])
def test_a_space_has_visitors_alone_unless_its_secret_is_a_token(monkeypatch, capsys, own):
    launched = {}
    blocks = SimpleNamespace(launch=launched.update, is_running=False, close=lambda verbose: None)
    monkeypatch.setattr(serving, "build_app", lambda *_: blocks)
    monkeypatch.setenv("SPACE_ID", "me/mine")
    monkeypatch.setenv("CSE_TOKEN", own or "")
    serving.serve_from(options_of())
    rights = launched["app_kwargs"]["middleware"][0].kwargs["rights"]
    assert (rights.token, rights.owned) == (own or "", bool(own))
    assert capsys.readouterr().out == ""


def test_a_name_of_a_model_does_not_tell_which_folders_there_are(tmp_path, monkeypatch):
    (tmp_path / "private" / "model").mkdir(parents=True)
    (tmp_path / "private" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "download_size", lambda name: 5 if name == "private" else None)
    monkeypatch.setattr(hub, "_answers", lambda: False)
    for admission in (Admission(), Admission(fetch=True), Admission(tmp_path / "private")):
        reasons = set()
        for name in ("private", "private/model", "missing", "missing/model"):
            if admission.root and name == "private/model":
                continue
            with pytest.raises(ValueError, match=name) as error:
                admission.model(name)
            reasons.add(str(error.value).replace(name, "NAME"))
        assert len(reasons) == 1, reasons


@contextmanager
def client(address="198.51.100.1", name="", owner=False):
    """Requests of this client."""
    before = LocalContext.request.get(None)
    request = SimpleNamespace(scope={"user": Client(address, name, owner)})
    LocalContext.request.set(SimpleNamespace(request=request, session_hash=None))
    try:
        yield current_client()
    finally:
        LocalContext.request.set(before)


def keys(count, start=0):
    return [f"{number:032x}" for number in range(start, start + count)]


def test_fresh_cookies_of_one_address_push_out_its_own_and_leave_room_for_others():
    kept = OwnCorpora(SimpleNamespace(), bounds=Bounds(16, own=8))
    visitors = keys(8)
    for number, key in enumerate(visitors):
        with client(f"198.51.100.{number}"):
            kept.put(key, OwnCorpus(key, TEXTS), [])
    for number, key in enumerate(keys(66, 100)):
        with client("192.0.2.7", f"fresh {number}"):
            kept.put(key, OwnCorpus(key, TEXTS), [])
    assert all(map(kept.corpus, visitors))


def test_a_client_loses_its_own_trainings_and_the_owner_none_to_visitors(tmp_path, monkeypatch):
    monkeypatch.setattr(training_module.Training, "begin", lambda training: None)
    now, day = [0.0], 24 * 3600.0
    visitors = Rules(allowed=True, runs=2, all_runs=4, kept=10.0)
    kept = Trainings(visitors, tmp_path, lambda: now[0], Rules(allowed=True, own=True, runs=3, all_runs=3, kept=day))
    request = TrainingRequest("mine", "adapt", TEXTS)
    owned, *others = keys(3)
    with client(owner=True):
        assert [len(kept.of(owned)) for _ in range(3) if kept.begin(owned, request)] == [1, 2, 3]
    for key, address in zip(others, ("198.51.100.7", "198.51.100.8"), strict=True):
        with client(address):
            kept.begin(key, request)
    greedy = keys(20, 100)
    for number, key in enumerate(greedy):
        with client("192.0.2.7", str(number // 10)):
            kept.begin(key, request)
    assert [len(kept.of(key)) for key in (owned, *others)] == [3, 1, 1]
    assert [key for key in greedy if kept.of(key)] == [greedy[9], greedy[19]]  # the newest of each cookie
    now[0] = 11.0
    assert [len(kept.of(key)) for key in (owned, *others)] == [3, 0, 0]
    kept.close()


def test_a_visitors_corpus_survives_another_program_with_many_keys(server):
    api = {"verbose": False, "httpx_kwargs": {"trust_env": False, "timeout": 60}}
    visitor = Program(server.url, **api)
    mine = visitor.predict(TEXTS, [], "", api_name="/texts")["key"]
    with page_of(server) as careless:  # no cookie is kept
        for key in keys(20):
            call = careless.post("/gradio_api/call/texts", json={"data": [TEXTS, [], key]}).json()["event_id"]
            assert "complete" in careless.get(f"/gradio_api/call/texts/{call}").text
    assert visitor.predict([], [], mine, api_name="/texts")["texts"] == len(TEXTS)
    left = []
    for key in keys(20)[-MAX_KEPT.own - 2 :]:
        with suppress(AppError):
            left += [visitor.predict([], [], key, api_name="/texts")["key"]]
    assert left == keys(20)[-MAX_KEPT.own :]
