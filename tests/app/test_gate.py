"""The checks before the app: names, origins, sizes, and calls that cannot be answered."""

import json

import httpx
import pytest
from app_models import GOOD, serving, write_model

from cse.app.models.models import Models, error_line
from cse.app.server import bodies
from cse.app.server.access import served_names
from cse.app.server.gate import security_headers
from cse.app.validation import MAX_FILE_BYTES

FILE = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
MAX_UPLOAD = MAX_FILE_BYTES + bodies.FORM


@pytest.fixture(scope="module")
def url(tmp_path_factory, bert_folder):
    root = tmp_path_factory.mktemp("gate")
    with serving([str(write_model(root / name, bert_folder, name)) for name in GOOD[:2]]) as address:
        yield address.rstrip("/")


@pytest.fixture
def names(monkeypatch):
    """The names of a server on this machine, called `box`."""
    monkeypatch.setattr("socket.gethostname", lambda: "Box")
    for variable in ("SPACE_HOST", "CSE_ALLOWED_HOSTS"):
        monkeypatch.delenv(variable, raising=False)
    return served_names


@pytest.mark.parametrize(
    ("host", "served"),
    [
        ("127.0.0.1:7860", True),
        ("localhost", True),
        ("LOCALHOST.:9000", True),  # another port: a tunnel, a container
        ("192.168.1.5:7860", True),  # an address was not looked up, so nobody can have redirected it
        ("box:7860", True),
        ("", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_a_server_answers_to_its_names_and_to_addresses(names, host, served):
    assert names().serves(host) == served
    assert names(allowed=["*"]).serves(host)


def test_further_names_are_those_listened_on_allowed_shared_and_of_a_space(names, monkeypatch):
    share = "https://1234.gradio.live"
    assert not names().serves("1234.gradio.live")
    assert names().serves("1234.gradio.live", share)
    assert names("lab.example").serves("lab.example:7860")
    assert names(allowed=["https://proxy.example/app"]).serves("proxy.example")
    monkeypatch.setenv("CSE_ALLOWED_HOSTS", "a.example, b.example:80")
    monkeypatch.setenv("SPACE_HOST", "me-mine.hf.space")
    assert all(names().serves(host) for host in ("a.example", "b.example", "me-mine.hf.space"))
    assert not names().serves("c.example")


@pytest.mark.parametrize(
    ("origin", "host", "trusted"),
    [
        ("http://localhost:7860", "localhost:7860", True),
        ("https://proxy.example", "127.0.0.1:7860", True),  # a proxy that says the app's own address
        ("http://127.0.0.1:3000", "127.0.0.1:7860", False),  # another program of this machine
        ("http://evil.example", "localhost:7860", False),
        ("http://localhost.evil.example:7860", "localhost:7860", False),
        ("null", "localhost:7860", False),
    ],
)
def test_a_page_may_ask_the_server_it_came_from(names, monkeypatch, origin, host, trusted):
    assert names(allowed=["proxy.example"]).trusts(origin, host) == trusted
    assert names(allowed=["*"]).trusts(origin, host)
    monkeypatch.setenv("SPACE_HOST", "me-mine.hf.space")
    assert names().trusts(origin, host)  # other sites embed Spaces


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("host", "evil.example", 421),
        ("origin", "http://evil.example", 403),
        ("host", "localhost:1", 200),
    ],
)
def test_a_foreign_page_gets_one_line_and_no_answer(url, header, value, status):
    call = f"{url}/gradio_api/call/similarity"
    for answer in (
        httpx.get(url, headers={header: value}, timeout=60),
        httpx.post(call, json={"data": "ab"}, headers={header: value}, timeout=60),
    ):
        if status == 200:
            assert answer.status_code != 421
        else:
            assert answer.status_code == status
            assert repr(value) in answer.json()["detail"]
            assert "--allow-host NAME" in answer.json()["detail"]
            assert "access-control-allow-origin" not in answer.headers or status == 403


@pytest.mark.parametrize(
    ("path", "sent", "status", "line"),
    [
        ("call/similarity", {"data": ["a"]}, 422, "/similarity takes 5 values (s1, s2, corpus, key, models), not 1."),
        ("call/v2/similarity", {"s1": "a"}, 422, "/similarity takes s1, s2, corpus, key, models; s2 is missing."),
        ("call/nowhere", {"data": []}, 404, "There is no endpoint /nowhere; choose /similarity, /pairs, "),
        ("queue/join", {"data": [], "fn_index": 9999, "session_hash": "x"}, 404, "There is no endpoint 9999; choose"),
    ],
)
def test_a_call_that_cannot_be_answered_gets_the_reason(url, capfd, path, sent, status, line):
    kind = {"content-type": "application/json"}
    answer = httpx.post(f"{url}/gradio_api/{path}", content=json.dumps(sent), headers=kind, timeout=60)
    assert answer.status_code == status
    said = answer.json()["detail"]
    assert (said if status == 404 else said[-1]["message"]).startswith(line)
    assert capfd.readouterr().err == ""  # no traceback in the log


def test_nobody_has_a_sessions_values_written_to_the_disk(url):
    call = f"{url}/gradio_api/call/ledger"
    event = httpx.post(call, json={"data": [], "session_hash": "stored"}, timeout=60).json()["event_id"]
    httpx.get(f"{call}/{event}", timeout=60)
    answer = httpx.get(f"{url}/gradio_api/deep_link", params={"session_hash": "stored"}, timeout=60)
    assert (answer.status_code, answer.json()) == (
        404,
        {"detail": "This app stores no pages; share the page's address."},
    )


def test_a_waiting_calls_values_cannot_be_replaced(url):
    call = f"{url}/gradio_api/call/ledger"
    event = httpx.post(call, json={"data": []}, timeout=60).json()["event_id"]
    answer = httpx.post(f"{url}/gradio_api/stream/{event}", json={"data": [FILE]}, timeout=60)
    line = "No part of this app takes streams; call an endpoint."
    assert (answer.status_code, answer.json()) == (404, {"detail": line})
    assert httpx.get(f"{call}/{event}", timeout=60).text.startswith("event: complete")


def test_no_call_reads_a_file_of_the_server(url):
    config = httpx.get(f"{url}/config", timeout=60).json()
    (field, *_) = [part["id"] for part in config["components"] if part["type"] == "file"]
    (call, *_) = [each for each in config["dependencies"] if field in each["inputs"]]
    with_file = [FILE if part == field else "" for part in call["inputs"]]
    for name, data in (("similarity", ["a", FILE]), ("search", [[{"x": FILE}]]), (call["api_name"], with_file)):
        sent = httpx.post(f"{url}/gradio_api/call/{name}", json={"data": data}, timeout=60)
        assert sent.status_code == 200, sent.text
        answer = httpx.get(f"{url}/gradio_api/call/{name}/{sent.json()['event_id']}", timeout=60).text
        assert answer.startswith("event: error"), name
        assert "root:" not in answer


@pytest.mark.parametrize("announced", [True, False])
def test_requests_are_bounded_before_they_are_read(url, announced):
    def post(path, content, kind):
        body = content if announced else iter([content[: len(content) // 2], content[len(content) // 2 :]])
        return httpx.post(f"{url}/gradio_api/{path}", content=body, headers={"content-type": kind}, timeout=60)

    kind = "multipart/form-data; boundary=b"
    form = b'--b\r\ncontent-disposition: form-data; name="files"; filename="a.txt"\r\n\r\n%s\r\n--b--\r\n'
    call = b'{"data": ["a", "%s"]}'
    for size, status in ((100, 200), (MAX_UPLOAD, 413)):
        answer = post("upload", form % (b"x" * size), kind)
        assert answer.status_code == status
    if announced:  # where it is not, Gradio may count a file's 16 MB before all of the request's are counted here
        assert answer.text == f"The request has more than {MAX_UPLOAD:,} bytes; send less."
    for size, status in ((100, 200), (bodies.MAX_BODY, 413)):
        assert post("call/similarity", call % (b"x" * size), "application/json").status_code == status
    assert post("process_recording", form % b"x", kind).status_code == 415


def test_an_error_tells_no_path_of_the_server(tmp_path):
    folder = tmp_path / "my models (old)" / "mine"
    missing = FileNotFoundError(2, "No such file", str(folder / "config.json"))
    for error in (
        missing,
        ValueError(f"cannot read {folder}/config.json"),
        ValueError(f"{folder.parent}/other is bad"),
    ):
        said = error_line(error, str(folder), "mine")
        assert "my models" not in said
        assert str(tmp_path) not in said
    caused = ValueError(f"{folder}/x y: damaged")
    caused.__cause__ = OSError(2, "gone", f"{folder}/x y")
    assert error_line(caused) == "x y: damaged"
    broken = Models([str(folder)])
    assert "my models" not in broken.apply(lambda *_: None)["mine"].reason


def test_every_answer_says_what_may_be_loaded_and_that_nobody_may_frame_it(url):
    answers = [
        httpx.get(url, timeout=60),
        httpx.head(url, timeout=60),
        httpx.get(f"{url}/config", timeout=60),
        httpx.get(f"{url}/nowhere", timeout=60),
        httpx.get(url, headers={"host": "evil.example"}, timeout=60),
        httpx.post(f"{url}/gradio_api/call/nowhere", json={"data": []}, timeout=60),
        httpx.post(f"{url}/gradio_api/upload", files={"files": ("a.txt", b"x")}, timeout=60),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 404, 421, 404, 200]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
        assert "http" not in answer.headers["content-security-policy"]  # nothing is loaded from elsewhere


def test_a_space_may_be_framed_by_the_hub_alone(names, monkeypatch):
    monkeypatch.setenv("SPACE_HOST", "me-mine.hf.space")
    found = security_headers(names().public)
    assert found["Content-Security-Policy"].endswith(
        "; frame-ancestors https://huggingface.co https://*.huggingface.co https://*.hf.space"
    )
    assert "X-Frame-Options" not in found  # which knows no list
