"""A model's recorded prompts in every ranking, beside encode_query and encode_document of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import ran, refused, run
from conftest import SENTENCES
from page_state import encode_own
from typer.testing import Result

from cse.app.corpus.corpora import DEMO_KEY, OWN_KEY
from cse.app.corpus.own import OwnCorpus
from cse.app.results.search import Search
from cse.app.show import ask
from cse.app.state import chosen_corpus, open_state
from cse.evaluation.retrieval import score
from index import VectorIndex
from index.export import fill

pytest.importorskip("sentence_transformers", reason="sentence-transformers (tests/requirements.txt) is not installed")

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

QUERY = "a cat in the sun"
BOTH = {"query": "a dog : ", "document": "it is sad : "}
TOLERANCE = 1e-4  # of four printed decimals, and of products of two libraries
KINDS: dict[str, dict] = {
    "both": {"prompts": BOTH},
    "left-out": {"prompts": BOTH, "include_prompt": False},  # of the pooling
    "query-alone": {"prompts": {"query": "a dog : "}},
    "document-alone": {"prompts": {"document": "the "}},
    "passage": {"prompts": {"query": "a dog : ", "passage": "the "}},  # "document", which is empty, is the first
    "default": {"prompts": {"sad": "it is sad : "}, "default_prompt_name": "sad"},  # neither queries nor documents
    "default-query": {"prompts": {"query": "a dog : ", "document": "the "}, "default_prompt_name": "query"},
    "none": {},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> dict[str, Path]:
    """A folder of each kind, saved by sentence-transformers."""
    made: dict[str, Path] = {}
    for kind, options in KINDS.items():
        options, transformer = dict(options), Transformer(str(bert_folder))
        include = options.pop("include_prompt", True)
        pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean", include_prompt=include)
        made[kind] = tmp_path_factory.mktemp("prompts") / kind
        SentenceTransformer(modules=[transformer, pooling], device="cpu", **options).save(str(made[kind]))
    return made


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n")
    return path


def cosines(folder: Path, texts: Sequence[str], prompts: bool = True) -> np.ndarray:
    """The cosine of QUERY with each text, by sentence-transformers; without `prompts`, by its `encode`."""
    model = SentenceTransformer(str(folder), device="cpu")
    encode_query, encode_document = (model.encode_query, model.encode_document) if prompts else (model.encode,) * 2
    query = encode_query(QUERY, normalize_embeddings=True)
    return encode_document(list(texts), normalize_embeddings=True) @ query


def searched(index: Path, folder: Path, prompts: bool = True) -> Result:
    """The search for QUERY, whose scores are those of sentence-transformers."""
    done = ran("search", index, QUERY, "-k", len(SENTENCES))
    scores = {text: float(score) for _, score, text in (line.split(maxsplit=2) for line in done.stdout.splitlines())}
    expected = dict(zip(SENTENCES, cosines(folder, SENTENCES, prompts), strict=True))
    assert scores == pytest.approx(expected, abs=TOLERANCE)
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_ranks_as_sentence_transformers_does(folders, corpus, tmp_path, kind):
    done = ran("build_index", corpus, "--model", folders[kind], "--output", tmp_path / "x")
    answer = searched(tmp_path / "x", folders[kind])
    model = SentenceTransformer(str(folders[kind]), device="cpu")
    for texts, prompt, stderr in (
        ("documents", model.prompts["document"], done.stderr),
        ("queries", model.prompts["query"], answer.stderr),
    ):
        line = f"{texts} are encoded with the model's prompt {prompt!r}"
        assert [said for said in stderr.splitlines() if "prompt" in said] == ([line] if prompt else [])


def test_encoded_parts_say_with_which_prompt(folders, corpus, tmp_path):
    folder = folders["left-out"]
    words = ("--model", folder, "--input", corpus, "--shards", 2, "--output", tmp_path / "parts")
    assert run("encode", *words, "--prompt-name", "document").exit_code == 0
    ran("build_index", corpus, "--vectors", tmp_path / "parts", "--output", tmp_path / "x")
    searched(tmp_path / "x", folder)
    ran("encode", "--model", folder, "--input", corpus, "--output", tmp_path / "v.npy")
    model = SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), model.encode(SENTENCES), atol=1e-4)
    refused(run("encode", *words[:4], "--output", tmp_path / "w.npy", "--prompt-name", "odd"), 3, "'odd'", "document")


def test_parts_of_encode_alone_are_said_to_lack_the_prompt(folders, corpus, tmp_path):
    words = ("--input", corpus, "--shards", 2)
    done = run("encode", "--model", folders["both"], *words, "--output", tmp_path / "parts")
    assert "'it is sad : ', is not used; for an index give --prompt-name" in done.stderr
    ran("build_index", corpus, "--vectors", tmp_path / "parts", "--output", tmp_path / "x")
    searched(tmp_path / "x", folders["both"], prompts=False)
    done = run("encode", "--model", folders["query-alone"], *words, "--output", tmp_path / "documents")
    assert "prompt" not in done.stderr  # documents have none
    ran("build_index", corpus, "--vectors", tmp_path / "documents", "--output", tmp_path / "y")
    searched(tmp_path / "y", folders["query-alone"])


def test_added_and_resumed_documents_have_the_prompt(folders, tmp_path):
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("\n".join(SENTENCES[:4]))
    second.write_text("\n".join(SENTENCES[4:]))
    words = ("--model", folders["both"], "--output", tmp_path / "x")
    ran("build_index", first, *words, "--resume")
    ran("build_index", second, *words, "--append")
    searched(tmp_path / "x", folders["both"])
    (tmp_path / "export").mkdir()
    fill(VectorIndex.load(tmp_path / "x"), "parquet", tmp_path / "export")
    assert "Encode queries with the prompt 'a dog : '." in (tmp_path / "export" / "README.md").read_text()


def test_retrieval_is_scored_with_the_prompts(folders, tmp_path):
    """Sentences of the demo, each the query of the next two."""
    folder = tmp_path / "demo"
    folder.mkdir()
    texts = [line.split("\t")[1] for line in Path("cse/bundled/demo/corpus.tsv").read_text().splitlines()[:120]]
    (folder / "corpus.tsv").write_text("".join(f"d{row}\t{text}\n" for row, text in enumerate(texts)))
    (folder / "queries.tsv").write_text("".join(f"q{row}\t{texts[row]}\n" for row in range(0, 120, 4)))
    judged = "".join(f"q{row}\td{row + after}\t1\n" for row in range(0, 118, 4) for after in (1, 2))
    (folder / "qrels.tsv").write_text(judged)
    for kind in ("both", "default"):
        done = ran("evaluate", "retrieval", "--model", folders[kind], "--data", folder, "--json", "-")
        (record,) = json.loads(done.stdout)["models"].values()
        model = SentenceTransformer(str(folders[kind]), device="cpu")

        def search(corpus: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
            return np.argsort(-(queries @ corpus.T), axis=1, kind="stable")[:, :k]

        def encode(texts: list[str], prompt: str | None = None, model: SentenceTransformer = model) -> np.ndarray:
            return model.encode(texts, prompt=prompt, normalize_embeddings=True)

        expected = score(encode, folder, search, model.prompts["query"], model.prompts["document"])
        assert record["scores"]["demo"] == expected != score(encode, folder, search)
        for texts, name in (("queries", "query"), ("documents", "document")):
            said = f"{texts} are encoded with the model's prompt {model.prompts[name]!r}" in done.stderr
            assert said == bool(model.prompts[name])


def test_the_page_searches_with_the_prompts(folders, corpus, tmp_path):
    folder = folders["left-out"]
    ran("build_index", corpus, "--model", folder, "--output", tmp_path / "x")
    state, key = open_state([str(folder)], [tmp_path / "x"]), "a" * 32
    encode_own(state, key, OwnCorpus("mine", SENTENCES))
    for name in ("corpus.txt", OWN_KEY, DEMO_KEY):
        chosen = chosen_corpus(state, name, key)
        hits = ask(state, Search, {"query": QUERY, "corpus": name, "key": key}).frame
        expected = cosines(folder, chosen.texts)
        # Own vectors are kept as float16, and made in bfloat16 where the processor is fast at it.
        assert hits["cosine"].tolist() == pytest.approx([expected[row] for row in hits["position"]], abs=1e-3)
        assert hits["cosine"][0] == pytest.approx(max(expected), abs=1e-3)
