"""build_index and search from the command line, with real checkpoints on a tiny backbone."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_models import write_model
from command_line import refused, run
from typer.testing import Result

import cse
from cse.encoder.openvino_encoder import OpenVinoEncoder
from cse.models import loading
from cse.vectors import smoothed
from index import VectorIndex

CORPUS = ["a man plays guitar", "a dog runs", "two cats sleep", "the stock market fell", "a woman plays the piano"]
FOLDERS: dict[str, str] = {}  # the tests' model names, and where these models lie


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> dict[str, str]:
    """A PromptBERT and a SimCSE checkpoint, and the backbone they were made from."""
    folder = tmp_path_factory.mktemp("checkpoints")
    made = {name: str(write_model(folder / f"my-{name}", bert_folder, name)) for name in ("promptbert", "simcse")}
    FOLDERS.update(made, bert=str(bert_folder))
    return FOLDERS


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n\n".join(CORPUS) + "\n", encoding="utf-8")
    return path


def run_build(*arguments: object) -> Result:
    return run("build_index", *(FOLDERS.get(str(argument), argument) for argument in arguments))


def run_search(*arguments: object) -> Result:
    return run("search", *(FOLDERS.get(str(argument), argument) for argument in arguments))


def built(*arguments: object) -> Result:
    done = run_build(*arguments)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def folder(tmp_path: Path, corpus: Path) -> Path:
    built(corpus, "--model", "promptbert", "--output", tmp_path / "demo")
    return tmp_path / "demo"


def test_fewer_hits_than_asked_for_are_said_with_the_option_that_finds_more(tmp_path):
    (tmp_path / "many.txt").write_text("".join(f"{text} {number}\n" for text in CORPUS for number in range(20)))
    built(tmp_path / "many.txt", "--model", "promptbert", "--output", tmp_path / "ivf", "--factory", "IVF32,Flat")
    few, all_of_them = (run_search(tmp_path / "ivf", "a dog", "-k", 90, "--probe", probe) for probe in (1, 32))
    line = few.stderr.splitlines()[-1]
    assert line.startswith(
        f"found {len(few.stdout.splitlines())} of 90 hits, since this IVF32,Flat index searched 1 of"
    )
    assert "a larger --probe, such as 4, finds more" in line
    assert (len(all_of_them.stdout.splitlines()), "hits" in all_of_them.stderr) == (90, False)


def test_build_prints_one_line(corpus, tmp_path):
    result = run_build(corpus, "--model", "promptbert", "--output", tmp_path / "x")
    files = [(tmp_path / "x" / name).stat().st_size for name in ("index.faiss", "texts.arrow")]
    assert result.stdout == f"{tmp_path / 'x'}: 5 rows, 32 dimensions, Flat, {sum(files) / 1e6:.2f} MB\n"
    assert "5 sentences" in result.stderr
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == ["index.faiss", "manifest.json", "texts.arrow"]
    words = ("--pooling", "cls", "--factory", "IVF2,Flat", "--json")
    manifest = json.loads(run_build(corpus, "--model", "bert", "--output", tmp_path / "y", *words).stdout)
    assert manifest == json.loads((tmp_path / "y" / "manifest.json").read_text())
    assert manifest["fingerprint"] == cse.load(FOLDERS["bert"], "cls").fingerprint


def test_a_model_folder_is_remembered_from_anywhere(tmp_path, corpus, monkeypatch, models):
    monkeypatch.chdir(Path(models["bert"]).parent)
    bert = Path(models["bert"]).name
    built(corpus, "--model", f"./{bert}", "--output", tmp_path / "x", "--pooling", "cls")
    built(corpus, "--model", f"./{bert}", "--output", tmp_path / "y")
    assert run_search(tmp_path / "x", "a dog", "--model", f"./{bert}").exit_code == 0  # the index knows the pooling
    monkeypatch.chdir("/")
    for folder, pooling in ((tmp_path / "x", "cls"), (tmp_path / "y", "mean")):
        manifest = json.loads((folder / "manifest.json").read_text())
        assert (manifest["model"], manifest["pooling"]) == (models["bert"], pooling)
        assert run_search(folder, "a dog").exit_code == 0
        assert run_search(folder, "a dog", "--model", models["bert"]).exit_code == 0


def test_search_prints_rank_score_text(folder, models):
    result = run_search(folder, "a man plays guitar", "-k", 2)
    lines = result.stdout.splitlines()
    stored = cse.load(models["promptbert"]).encode(CORPUS)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    cosines = stored @ stored[0]
    second = int(np.argsort(-cosines)[1])
    assert lines == ["  1  1.0000  a man plays guitar", f"  2  {cosines[second]:.4f}  {CORPUS[second]}"]


def test_search_prints_json_with_the_lines_of_the_text_file(folder):
    hits = json.loads(run_search(folder, "a dog runs", "-k", 99, "--json").stdout)
    assert hits[0] == {"row": 3, "score": pytest.approx(1, abs=1e-6), "text": "a dog runs", "fields": {}}
    lines = "\n\n".join(CORPUS).split("\n")  # every second one is blank
    assert [lines[hit["row"] - 1] for hit in hits] == [hit["text"] for hit in hits]
    assert sorted(hit["row"] for hit in hits) == [1, 3, 5, 7, 9]
    model = FOLDERS["promptbert"]
    refused(run_search(folder, "a dog", "--model", "simcse"), 4, f"built by {model} (", f"search with --model {model}")


def test_search_answers_each_line_of_standard_input(folder):
    alone = [json.loads(run_search(folder, text, "-k", 2, "--json").stdout) for text in ("a dog, a man", "two cats")]
    answers = json.loads(run("search", folder, "-", "-k", 2, "--json", stdin="a dog, a man\n\n two cats").stdout)
    assert [answer["query"] for answer in answers] == ["a dog, a man", "two cats"]
    for answer, hits in zip(answers, alone, strict=True):
        scores = [pytest.approx(hit.pop("score"), abs=1e-6) for hit in hits]
        assert [hit.pop("score") for hit in answer["hits"]] == scores
        assert answer["hits"] == hits


def test_search_refuses_what_is_no_index(tmp_path, corpus, folder):
    refused(run_search(tmp_path / "nothing", "a dog"), 4, "no such index folder")
    refused(run_search(corpus, "a dog"), 4, "is a file")
    (folder / "index.faiss").write_bytes(b"cut")
    refused(run_search(folder, "a dog"), 4, "index.faiss has 3 bytes", "it with python -m scripts.build_index")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["blank.txt"], ("blank.txt",)), (["no.txt"], ("no.txt",)),
        (["corpus.txt", "--factory", "Flatt"], ("'Flatt'", "HNSW32,Flat IVF{n},Flat")),
        (["corpus.txt", "--output", "blank.txt/x"], ("blank.txt is a file; give a folder as --output",)),
    ],
)  # fmt: skip
def test_what_cannot_be_built_or_written_is_refused_before_anything_is_encoded(
    arguments, parts, tmp_path, corpus, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("blank.txt").write_text("\n  \n")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(OpenVinoEncoder, "encode_ids", lambda *_, **__: pytest.fail("encoded"))
    refused(run_build(arguments[0], "--model", "promptbert", "--output", "x", *arguments[1:]), 3, *parts)
    assert sorted(tmp_path.iterdir()) == before


def test_a_filled_output_is_kept_unless_told(folder, corpus, tmp_path):
    corpus.write_text("only this\n")
    arguments = [corpus, "--model", "simcse", "--output"]
    refused(run_build(*arguments, folder), 3, "--overwrite replaces it, --append adds to it")
    assert VectorIndex.load(folder).texts(range(5)) == CORPUS
    built(*arguments, folder, "--overwrite")
    assert VectorIndex.load(folder).texts([0]) == ["only this"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    refused(run_build(*arguments, tmp_path / "mine", "--overwrite"), 3, "move it away or give another folder")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_append_adds_to_the_same_model_only(folder, tmp_path):
    more = tmp_path / "more.txt"
    more.write_text("a bird sings\na fish swims\n")
    result = run_build(more, "--model", "promptbert", "--output", folder, "--append")
    assert result.stdout.startswith(f"{folder}: 7 rows, 32 dimensions, Flat")
    index = VectorIndex.load(folder)
    assert index.texts(range(7)) == [*CORPUS, "a bird sings", "a fish swims"]
    assert index.manifest.corpora == [str(tmp_path / "corpus.txt"), str(more)]
    refused(run_build(more, "--model", "simcse", "--output", folder, "--append"), 4, "not my-simcse (")
    assert len(VectorIndex.load(folder)) == 7


def test_two_additions_at_once_lose_nothing(folder, tmp_path, monkeypatch):
    """The first finds at its end that a second one came in between."""
    for name in ("first", "second"):
        (tmp_path / name).write_text(f"the {name} sentence\n")
    add, beside = VectorIndex.add, []

    def overtaken(*texts_and_vectors: Any, **options: Any) -> np.ndarray:
        rows = add(*texts_and_vectors, **options)
        if not beside:
            beside.append("begun")
            built(tmp_path / "second", "--model", "promptbert", "--output", folder, "--append")
        return rows

    monkeypatch.setattr(VectorIndex, "add", overtaken)
    done = run_build(tmp_path / "first", "--model", "promptbert", "--output", folder, "--append")
    refused(done, 3, "another program changed it during this run; run this command again")
    assert VectorIndex.load(folder).texts(range(6)) == [*CORPUS, "the second sentence"]
    built(tmp_path / "first", "--model", "promptbert", "--output", folder, "--append")
    assert VectorIndex.load(folder).texts([5, 6]) == ["the second sentence", "the first sentence"]


def test_a_seed_means_nothing_for_texts_that_are_added(corpus: Path, tmp_path: Path) -> None:
    refused = run_build(corpus, "--model", "bundled", "--output", tmp_path / "index", "--append", "--seed", 3)
    assert refused.exit_code == 2
    assert "leave out --seed" in refused.stderr


def encode_in_parts(corpus: Path, output: Path) -> None:
    words = ("--model", FOLDERS["promptbert"], "--input", corpus, "--output", output, "--shards", 2)
    assert run("encode", *words).exit_code == 0


def test_an_index_of_encoded_parts_is_that_of_the_model_which_is_not_opened(corpus, tmp_path, monkeypatch):
    built(corpus, "--model", "promptbert", "--output", tmp_path / "plain")
    encode_in_parts(corpus, tmp_path / "v")
    monkeypatch.setattr(loading, "open_model", lambda *_, **__: pytest.fail("opened"))
    built(corpus, "--vectors", tmp_path / "v", "--output", tmp_path / "parts")
    plain, parts = (VectorIndex.load(tmp_path / name) for name in ("plain", "parts"))
    assert parts.manifest.to_json().keys() == plain.manifest.to_json().keys()
    assert (parts.manifest.model, parts.manifest.fingerprint) == (plain.manifest.model, plain.manifest.fingerprint)
    assert parts.manifest.corpus_sha256 == plain.manifest.corpus_sha256
    query = np.random.default_rng(0).normal(size=(3, plain.manifest.dimension))
    np.testing.assert_allclose(parts.search(query, 5)[0], plain.search(query, 5)[0], atol=1e-6)
    (tmp_path / "more.txt").write_text("another sentence\n")
    more = (tmp_path / "more.txt", "--vectors", tmp_path / "v", "--output", tmp_path / "parts", "--append")
    refused(run_build(*more), 3, "encoded from other sentences")
    assert len(VectorIndex.load(tmp_path / "parts")) == len(CORPUS)


def test_a_smoothed_index_of_any_source_records_it_and_expands_queries(corpus, tmp_path, folder):
    encode_in_parts(corpus, tmp_path / "v")
    sources = {"s": ["--model", "promptbert"], "parts": ["--vectors", tmp_path / "v"]}
    sources["resumed"] = [*sources["s"], "--resume"]
    raw = VectorIndex.load(folder).contents()[1]
    for name, source in sources.items():
        built(corpus, *source, "--output", tmp_path / name, "--smooth", 2)
        index = VectorIndex.load(tmp_path / name)
        assert index.manifest.smooth == 2
        np.testing.assert_allclose(index.contents()[1], smoothed(raw, 2), atol=1e-6)
    query = cse.load(FOLDERS["promptbert"]).encode("a dog sings", normalize_embeddings=False)
    for options, expand in (([], 2), (["--expand", 1], 1)):
        shown = run_search(tmp_path / "s", "a dog sings", "-k", 3, *options).stdout
        hits = index.hits(query, 3, expand=expand)
        assert shown == "".join(f"{hit.rank:>3}  {hit.score:.4f}  {hit.text}\n" for hit in hits)
    again = run_build(corpus, "--model", "promptbert", "--output", tmp_path / "s", "--append")
    refused(again, 3, "smoothed over 2 neighbours", "build it again from all sentences with --smooth 2")


TICKETS = [
    ("T-1", "billing", "a man plays guitar", "7"), ("T-2", "other", "", "8"),
    ("T-3", "billing", " =two cats sleep", "9"), ("T-4", "other", "a dog runs", "12"),
]  # fmt: skip


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("id", "label", "body", "price"), *TICKETS])
    return path


def hits_of(*arguments: object) -> list[dict[str, Any]]:
    result = run_search(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("way", ["resume", "vectors"])
def test_an_index_of_a_table_gives_each_hit_its_row_and_columns(way, tickets, tmp_path):
    words: list[object] = ["--model", "promptbert"]
    if way == "vectors":
        lines = tmp_path / "lines.txt"  # the same sentences
        lines.write_text("".join(f"{text.strip()}\n" for _, _, text, _ in TICKETS))
        encode_in_parts(lines, tmp_path / "v")
        words = ["--vectors", tmp_path / "v"]
    words += ["--resume"] if way == "resume" else []
    done = built(tickets, "--column", "body", *words, "--output", tmp_path / "x")
    assert "tickets.csv: 4 rows, semicolons; texts from `body`; 1 row without a text" in done.stderr
    hits = hits_of(tmp_path / "x", "two cats sleep", "-k", 9)
    assert sorted((hit["row"], hit["text"], *hit["fields"].values()) for hit in hits) == [
        (row, text, name, label, price)
        for row, (name, label, text, price) in enumerate(TICKETS, start=1)
        if text.strip()
    ]
    assert {tuple(hit) for hit in hits} == {("row", "score", "text", "fields")}


@pytest.fixture
def table_index(tickets: Path, tmp_path: Path) -> Path:
    built(tickets, "--column", "body", "--model", "promptbert", "--output", tmp_path / "table")
    return tmp_path / "table"


def test_shown_columns_stand_before_the_text_and_alone_in_json(table_index):
    shown = run_search(table_index, "a dog runs", "-k", 1, "--show", "label, id")
    assert shown.stdout == "  1  1.0000  other  T-4  a dog runs\n"
    (hit,) = hits_of(table_index, "a dog runs", "-k", 1, "--show", "price")
    assert hit == {"row": 4, "score": pytest.approx(1, abs=1e-6), "text": "a dog runs", "fields": {"price": "12"}}
    refused(run_search(table_index, "a dog", "--show", "id,queue"), 3, "no column 'queue' to --show; the index has")


def test_a_condition_limits_a_search_to_rows_and_says_how_many(table_index, folder):
    billing = run_search(table_index, "a dog runs", "--where", "label = 'billing'")
    assert sorted(line.split("  ")[-1] for line in billing.stdout.splitlines()) == [
        "=two cats sleep",
        "a man plays guitar",
    ]
    assert billing.stderr.splitlines()[-1] == "searched 2 of 3 rows"
    assert [hit["row"] for hit in hits_of(table_index, "a dog runs", "--where", "price > 9 and label <> 'x'")] == [4]
    nothing = run_search(table_index, "a dog runs", "--where", "label = 'none'", "--json")
    assert (nothing.exit_code, nothing.stdout) == (0, "[]\n")
    assert "no row meets \"label = 'none'\"; the columns are 'body', 'id', 'label', 'price'" in nothing.stderr
    for condition in ("lable = 'x'", "1; drop table rows"):
        done = run_search(table_index, "a dog", "--where", condition)
        refused(done, 3, f"cannot read the condition {condition!r}", "of the columns body, id, label, price")
    assert [hit["row"] for hit in hits_of(folder, "a dog runs", "--where", "text like '%guitar'")] == [1]


def test_rows_of_an_added_corpus_are_counted_in_their_file_which_is_named(table_index, tmp_path):
    more = tmp_path / "more.jsonl"
    more.write_text('{"body": "a bird sings", "price": 3, "id": "N-1", "label": null}\n')
    words = ("--column", "body", "--model", "promptbert", "--output", table_index, "--append")
    built(more, *words)
    first, *others = hits_of(table_index, "a bird sings", "-k", 9)
    assert first == {
        "row": 1, "score": pytest.approx(1, abs=1e-6), "text": "a bird sings",
        "fields": {"id": "N-1", "label": None, "price": "3"}, "corpus": str(more),
    }  # fmt: skip
    assert {hit["corpus"] for hit in others} == {str(tmp_path / "tickets.csv")}
