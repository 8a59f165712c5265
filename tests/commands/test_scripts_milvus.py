"""build_index, search, evaluate and the app with --store, on a loopback server, beside the same with a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from app_models import write_model
from command_line import exit_code, options_of, ran, refused, run
from conftest import SENTENCES
from milvus_server import free_port, needs_server, served

from cse.app import serving as app
from cse.app.results.search import Search
from cse.app.show import ask
from cse.app.state import open_state

pytestmark = needs_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("milvus") / "data") as address:
        yield address


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: write_model(folder / name, bert_folder, name) for name in ("promptbert", "simcse")}


@pytest.fixture(scope="module")
def built(server: str, models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The same sentences in a collection and in a folder."""
    work = tmp_path_factory.mktemp("built")
    (work / "corpus.txt").write_text("\n".join(SENTENCES))
    for location in (f"{server}/built", work / "folder"):
        done = ran("build_index", work / "corpus.txt", "--model", models["promptbert"], "--store", location)
    assert done.stdout.endswith(" MB\n")
    return f"{server}/built", work / "folder"


def test_a_search_prints_what_that_of_the_folder_does(built):
    location, folder = built
    expected = run("search", folder, "a dog in the park", "-k", 3).stdout
    assert len(expected.splitlines()) == 3
    assert run("search", "--store", location, "a dog in the park", "-k", 3).stdout == expected
    assert run("search", location, "a dog in the park", "-k", 3).stdout == expected
    answer = json.loads(run("search", "--store", location, "a dog in the park", "--json").stdout)
    of_folder = json.loads(run("search", folder, "a dog in the park", "--json").stdout)
    assert answer == [{**hit, "score": pytest.approx(hit["score"], abs=1e-6)} for hit in of_folder]
    assert [len(answer), *answer[0]] == [5, "row", "score", "text", "fields"]


def test_a_table_has_conditions_of_milvus_and_columns_to_show(server, models, tmp_path):
    location, corpus = f"{server}/table", tmp_path / "table.csv"
    corpus.write_text(f"id,label,text\n1,billing,{SENTENCES[0]}\n2,other,\n3,other,{SENTENCES[1]}\n")
    assert run("build_index", corpus, "--model", models["simcse"], "--store", location).exit_code == 0
    words = ("--store", location, SENTENCES[0])
    found = run("search", *words, "--where", 'label == "other"', "--json")
    (hit,) = json.loads(found.stdout)
    assert (hit["row"], hit["fields"], found.stderr.splitlines()[-1]) == (
        3, {"id": "3", "label": "other"}, "searched 1 of 2 rows",
    )  # fmt: skip
    assert run("search", *words, "-k", 1, "--show", "label,id").stdout == f"  1  1.0000  billing  1  {SENTENCES[0]}\n"
    assert run("search", *words, "--where", 'lable == "other"', "--json").stdout == "[]\n"
    refused(run("search", *words, "--where", "label = 'other'"), 3, "of the columns text, id, label")
    refused(run("search", *words, "--model", models["promptbert"]), 4, "built by")


def test_the_app_searches_it_and_names_no_server(built, capsys):
    location, folder = built
    options = options_of("--store", location, "--index", str(folder), "--port", str(free_port()))
    app.check(options)
    state = open_state((), options.index)
    (key,) = set(state.corpora) - {"demo"}
    assert key == "corpus.txt"
    columns = ask(state, Search, {"query": "a dog in the park", "k": 3, "corpus": key}).json()
    assert len(columns) == 2  # a column of the folder, one of the collection
    by_folder, by_server = ([(hit["row"], hit["text"]) for hit in hits] for hits in columns.values())
    assert by_folder == by_server
    assert exit_code("app", ["--store", f"milvus://127.0.0.1:{free_port()}/x"]) == 4
    assert "no Milvus server there" in capsys.readouterr().err
