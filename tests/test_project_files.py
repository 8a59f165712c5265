"""The files that forges, citation tools and container builders read: they parse, and speak of things that exist."""

import re

import pytest
import yaml
from conftest import ROOT
from dockerfile import of

from cse.methods.catalogue import CONPVP, DCPCSE, PROMPTBERT, SIMCSE


def test_the_citation_names_the_papers_of_the_four_methods():
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


def test_the_image_holds_files_that_exist_and_are_not_ignored():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [name for arguments in of("COPY") for name in arguments.split()[:-1]]
    assert sorted(copied) == sorted(kept)
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CITATION.cff"])
def test_paths_that_a_file_speaks_of_exist(name):
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(), flags=re.DOTALL)
    for path in re.findall(r"`((?:cse|index|tests|scripts|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
