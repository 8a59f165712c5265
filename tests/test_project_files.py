"""The files that forges, citation tools and container builders read: they parse, and speak of things that exist."""

import json
import os
import re
from collections.abc import Iterator

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement

from cse.app.serving import PORT, parser
from cse.methods.catalogue import CONPVP, DCPCSE, PROMPTBERT, SIMCSE

DOCKERFILE, PROJECT = ((ROOT / name).read_text() for name in ("Dockerfile", "pyproject.toml"))


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile, each with its arguments in one line."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, arguments = line.partition(" ")
            yield name, arguments.strip()


def of(name: str) -> list[str]:
    return [arguments for each, arguments in instructions(DOCKERFILE) if each == name]


def test_the_citation_names_the_papers_of_the_four_methods() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (found["cff-version"], found["type"], found["license"]) == ("1.2.0", "software", "Apache-2.0")
    assert found["message"]
    assert found["title"]
    assert found["authors"]
    wanted = [f"https://arxiv.org/abs/{method.arxiv}" for method in (SIMCSE, PROMPTBERT, DCPCSE, CONPVP)]
    assert [each["url"] for each in found["references"]] == wanted
    for paper, method in zip(found["references"], (SIMCSE, PROMPTBERT, DCPCSE, CONPVP), strict=True):
        names = [author["family-names"] for author in paper["authors"]]
        cited = re.fullmatch(r"(\w+)(?:, (\w+) and (\w+)| et al\.) (\d{4}) \((.*)\)", method.citation)
        assert cited
        assert names[0] == cited[1]
        assert cited[2] is None or names == [cited[1], cited[2], cited[3]]
        assert (str(paper["year"]), paper["collection-title"]) == (cited[4], cited[5])


def test_the_workflow_runs_the_tests_with_a_supported_python() -> None:
    found = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert found[True] == {"push": {"branches": ["main"]}, "pull_request": None}  # YAML 1.1 reads "on" as true
    steps = found["jobs"]["test"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands == ["scripts/test"]
    assert os.access(ROOT / commands[0], os.X_OK)
    (python,) = (step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {}))
    assert f"Programming Language :: Python :: {python}" in PROJECT


def test_every_extra_says_what_it_is_for() -> None:
    _, section = PROJECT.split("[project.optional-dependencies]\n")
    lines = section.split("\n[")[0].splitlines()
    begins = [number for number, line in enumerate(lines) if re.match(r"[\w-]+ = \[", line)]
    assert {lines[number].split()[0] for number in begins} >= {"app", "dev", "mcp", "milvus", "onnx", "openvino"}
    assert all(lines[number - 1].startswith("# ") for number in begins)


def test_the_image_holds_files_that_exist_and_are_not_ignored() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [name for arguments in of("COPY") for name in arguments.split()[:-1]]
    assert sorted(copied) == sorted(kept)
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_installs_the_lock_without_what_it_says_is_left_out() -> None:
    (run,) = of("RUN")
    assert "for_cpu requirements.txt" in run
    left_out = re.search(r"grep -vE '\^\((.*)\)=='", run)
    assert left_out
    locked = {need.name for need in map(Requirement, (ROOT / "requirements.txt").read_text().splitlines())}
    assert set(left_out[1].split("|")) < locked
    said = re.search(r"so (.*?) are left out", " ".join(DOCKERFILE.replace("\n# ", " ").split()))
    assert said
    assert re.split(r", | and ", said[1].lower().replace("pytorch", "torch")) == left_out[1].split("|")


def test_the_image_is_served_by_a_user_without_rights_and_checks_itself() -> None:
    assert of("USER") == ["visitor"]
    assert "useradd --create-home visitor" in of("RUN")[0]
    names = [name for name, _ in instructions(DOCKERFILE)]
    assert names.index("USER") > max(number for number, name in enumerate(names) if name in ("RUN", "COPY"))
    python, script, *options = json.loads(of("CMD")[0])
    assert (python, (ROOT / script).is_file()) == ("python", True)
    given = parser().parse_args(options)
    assert (given.host, given.port) == ("0.0.0.0", PORT)
    assert of("EXPOSE") == [str(PORT)]
    check = json.loads(of("HEALTHCHECK")[0].partition("CMD ")[2])
    assert check[:2] == ["python", "-c"]
    assert f"http://127.0.0.1:{PORT}" in check[2]
    compile(check[2], "health check", "exec")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CITATION.cff"])
def test_paths_that_a_file_speaks_of_exist(name: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(), flags=re.DOTALL)
    for path in re.findall(r"`((?:cse|index|tests|scripts|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
