"""A model hub on loopback that keeps what is pushed: as much of the hub's HTTP API as uploads and downloads ask for."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

Files = dict[str, bytes]


@dataclass
class Hub:
    """Repositories as `models/me/name`: the files of each commit, and the commits of branches; what was asked."""

    commits: dict[str, dict[str, Files]] = field(default_factory=dict)
    branches: dict[str, dict[str, str]] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def create(self, asked: dict[str, Any]) -> dict[str, str]:
        repository = f"{asked.get('type') or 'model'}s/{asked['organization']}/{asked['name']}"
        self.created.append(asked)
        if repository not in self.commits:
            self.commits[repository], self.branches[repository] = {}, {}
            self.commit(repository, "main", {})
        return {"url": self.place(repository), "id": repository.partition("/")[2]}

    def place(self, repository: str) -> str:
        return f"{self.url}/{repository.removeprefix('models/')}"

    def commit(self, repository: str, branch: str, files: Files, deleted: Sequence[str] = ()) -> str:
        before = self.commits[repository].get(self.branches[repository].get(branch, ""), {})
        assert before.keys() >= set(deleted), "the hub refuses to delete what is not there"
        after = {**{name: content for name, content in before.items() if name not in deleted}, **files}
        lines = [*after, *(hashlib.sha1(content).hexdigest() for content in after.values())]
        oid = hashlib.sha1("\n".join([branch, *lines]).encode()).hexdigest()
        self.commits[repository][oid], self.branches[repository][branch] = after, oid
        return oid

    def find(self, repository: str, revision: str) -> tuple[str, Files] | None:
        oid = self.branches.get(repository, {}).get(revision, revision)
        found = self.commits.get(repository, {})
        whole = next((each for each in found if each == oid or (len(oid) > 6 and each.startswith(oid))), None)
        return None if whole is None else (whole, found[whole])


class Answers(BaseHTTPRequestHandler):
    """One request to a `Hub`."""

    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: object) -> None:
        pass

    def say(self, value: object, status: int = 200, **headers: str) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code: str) -> None:
        self.say({"error": code}, 404, X_Error_Code=code, X_Error_Message=code)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlparse(self.path).path)
        if path == "/api/repos/create":
            return self.say(self.hub.create(json.loads(body)))
        if path == "/api/validate-yaml":
            return self.say({"errors": [], "warnings": []})
        match = re.fullmatch(r"/api/(\w+/[^/]+/[^/]+)/(preupload|commit|branch)/(.+)", path)
        assert match, path
        repository, what, revision = match.groups()
        if what == "branch":
            first = next(iter(self.hub.branches[repository].values()))
            self.hub.branches[repository].setdefault(revision, first)
            return self.say({})
        if what == "preupload":
            names = [file["path"] for file in json.loads(body)["files"]]
            return self.say({"files": [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]})
        lines = [json.loads(line) for line in body.splitlines()]
        files = {
            line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"
        }
        deleted = [line["value"]["path"] for line in lines if line["key"] == "deletedFile"]
        assert len(lines) == 1 + len(files) + len(deleted), lines  # the first is the message
        oid = self.hub.commit(repository, revision, files, deleted)
        return self.say({"success": True, "commitOid": oid, "commitUrl": f"{self.hub.place(repository)}/commit/{oid}"})

    def do_GET(self) -> None:
        path = unquote(urlparse(self.path).path)
        if match := re.fullmatch(r"/api/(\w+/[^/]+/[^/]+)(?:/(revision|tree)/([^/]+)(/.+)?)?", path):
            repository, what, revision, below = match[1], match[2], match[3] or "main", match[4]
            if repository not in self.hub.commits:
                return self.refuse("RepoNotFound")
            found = self.hub.find(repository, revision)
            if found is None:
                return self.refuse("RevisionNotFound")
            if below:  # no subfolder is asked for but where it may be missing
                return self.refuse("EntryNotFound")
            if what == "tree":
                return self.say(
                    [
                        {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                        for name, content in found[1].items()
                    ]
                )
            siblings = [{"rfilename": name, "size": len(content)} for name, content in found[1].items()]
            return self.say({"id": repository.partition("/")[2], "sha": found[0], "siblings": siblings})
        match = re.fullmatch(r"/((?:datasets/)?[^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if not match:
            return self.refuse("EntryNotFound")
        repository = match[1] if match[1].startswith("datasets/") else f"models/{match[1]}"
        if repository not in self.hub.commits:
            return self.refuse("RepoNotFound")
        found = self.hub.find(repository, match[2])
        if found is None:
            return self.refuse("RevisionNotFound")
        oid, files = found
        if match[3] not in files:
            return self.say(
                {"error": "none"}, 404, X_Error_Code="EntryNotFound", X_Repo_Commit=oid, X_Error_Message="none"
            )
        content = files[match[3]]
        return self.say(content, X_Repo_Commit=oid, ETag=f'"{hashlib.sha1(content).hexdigest()}"')

    do_HEAD = do_GET


@contextmanager
def hub_at_hand(monkeypatch: pytest.MonkeyPatch, cache: Any) -> Iterator[Hub]:
    """A running hub that this process takes for the hub, with an empty cache and a token."""
    from huggingface_hub import constants

    from cse.files import hub

    standing = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Answers,), {"hub": standing}))
    standing.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    values = {
        "HF_HUB_OFFLINE": False, "ENDPOINT": standing.url, "HF_HUB_CACHE": str(cache), "HF_HUB_DISABLE_XET": True,
        "HUGGINGFACE_CO_URL_TEMPLATE": standing.url + "/{repo_id}/resolve/{revision}/{filename}",
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setattr(constants, name, value)
    # transformers keeps a client with the address of the first hub that it asks
    monkeypatch.setattr("transformers.utils.hub._hf_api", None, raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_stand_in")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub._answers.cache_clear()
    try:
        yield standing
    finally:
        server.shutdown()
        server.server_close()
        hub._answers.cache_clear()
