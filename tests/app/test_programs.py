"""The endpoints of a running app: their names and inputs, their lanes, errors in one line, and broken columns."""

import inspect
import time

import gradio as gr
import httpx
import numpy as np
import pytest
from app_models import serving, write_models
from conftest import SENTENCES
from gradio_client.exceptions import AppError

import cse
from cse.app.corpus.own import GONE
from index import BuildSettings, VectorIndex

PAIR = ["the dog was running in the park", "a man is playing guitar"]
CORPUS = ["the cat is eating", "a woman is happy in the rain", "the sun was big and red", "they mean it", "a dog"]
SHARED = ["corpus", "key", "models"]
ENDPOINTS = {
    "similarity": ["s1", "s2", *SHARED], "pairs": ["lines", "measure", *SHARED], "words": ["s1", "s2", "models"],
    "changes": ["sentence", "variants", *SHARED], "disagreements": SHARED,
    "search": ["query", "k", "threshold", "where", *SHARED], "tokens": ["sentence", "k", "share", "models"],
    "template": ["sentence", "template", "k", "models"], "attention": ["sentence", "layer", "head", "models"],
    "prefix": ["sentence", "other", *SHARED], "prototypes": ["sentence", "models"],
    "map": ["most", "seed", "groups", *SHARED], "groups": ["model", "groups", "most", *SHARED],
    "neighbours": ["first", "second", "most", *SHARED],
    "duplicates": ["model", "nines", "keep", "page", "rejected", *SHARED],
    "judge": ["first", "second", "votes", *SHARED], "scores": ["task", "models"], "labels": SHARED,
    "ledger": ["models"], "models": ["models"], "encode": ["texts", "model", "normalize"],
    "texts": ["texts", "labels", "key", "models"], "forget": ["key"],
    "add_model": ["name"],
}  # fmt: skip
LANES = {"map": "maps", "groups": "maps", "neighbours": "maps", "labels": "maps", "duplicates": "links",
         "judge": "comparisons"}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory, bert_folder):
    return {folder.name: folder for folder in write_models(tmp_path_factory.mktemp("columns"), bert_folder)}


@pytest.fixture(scope="module")
def encoders(folders):
    return {name: cse.load(str(folder)) for name, folder in folders.items() if name != "broken"}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory, folders, encoders):
    """Two models' indexes of one corpus, and a third that names the wrong fingerprint."""
    root = tmp_path_factory.mktemp("indexes")
    for name, fingerprint in (("simcse", None), ("promptbert", None), ("dcpcse", "0" * 12)):
        settings = BuildSettings(
            model=str(folders[name]), fingerprint=fingerprint or encoders[name].fingerprint, corpus="data/pets.txt"
        )
        VectorIndex.build([(CORPUS, encoders[name].encode(CORPUS))], root / name, settings=settings)
    return [root / name for name in ("simcse", "promptbert", "dcpcse")]


@pytest.fixture(scope="module")
def public(folders, indexes):
    """The endpoints by name, as the server has them."""
    from cse.app.serving import build_app

    functions = build_app([str(folder) for folder in folders.values()], indexes).fns.values()
    return {function.api_name: function for function in functions if function.api_visibility == "public"}


@pytest.fixture(scope="module")
def client(folders, indexes):
    from clients import app_client

    with serving([str(folder) for folder in folders.values()], indexes) as url:
        yield app_client(url)


def test_the_endpoints_are_what_was_promised_and_each_has_its_lane(public):
    assert {name: list(inspect.signature(each.fn).parameters) for name, each in public.items()} == ENDPOINTS
    for name, each in public.items():
        if name not in ("scores", "ledger"):  # which run no model
            assert each.concurrency_id == LANES.get(name, "encode"), name
        assert each.queue, name


def test_similarity_is_the_encoders_cosine_and_a_broken_model_says_why(client, encoders):
    found = client.predict(*PAIR, api_name="/similarity")
    assert "damaged" in found.pop("broken")["error"]
    for name, cosine in found.items():
        first, second = encoders[name].encode(PAIR, normalize_embeddings=True)
        assert cosine == pytest.approx(float(first @ second), abs=1e-5)


def test_texts_become_the_encoders_vectors(client, encoders):
    texts = [*PAIR, *(f"the cat number {number} is eating" for number in range(70)), PAIR[0]]
    found = client.predict(texts, "promptbert", api_name="/encode")
    assert (found["model"], found["fingerprint"]) == ("promptbert", encoders["promptbert"].fingerprint)
    np.testing.assert_allclose(found["vectors"], encoders["promptbert"].encode(texts), atol=1e-5)
    start = client.predict(PAIR, "promptbert (before)", api_name="/encode")
    assert start["fingerprint"] != found["fingerprint"]
    assert np.abs(np.array(start["vectors"]) - encoders["promptbert"].encode(PAIR)).max() > 1e-3
    unit = client.predict(texts, "promptbert", True, api_name="/encode")["vectors"]
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)


def test_a_model_added_by_one_client_is_seen_by_no_other(client):
    from clients import app_client

    visitor = app_client(client.src)
    assert visitor.predict("bundled", api_name="/add_model")["name"] == "bundled"
    mine, theirs = (each.predict(*PAIR, api_name="/similarity") for each in (visitor, client))
    first, second = cse.load("bundled").encode(PAIR, normalize_embeddings=True)
    assert mine.pop("bundled") == pytest.approx(float(first @ second), abs=1e-5)
    assert mine.keys() == theirs.keys()
    with pytest.raises(AppError, match="Folders are for the owner of this server"):
        visitor.predict("../broken", api_name="/add_model")


def test_models_describe_themselves(client, encoders):
    found = {description.pop("name"): description for description in client.predict(api_name="/models")}
    assert "damaged" in found["broken"]["error"]
    for name, encoder in encoders.items():
        assert found[name]["fingerprint"] == encoder.fingerprint
        assert found[name]["learned"] == encoder.learned_count
    assert found["simcse"]["pooling"] == "at the first token"
    assert found["dcpcse"]["learned"] == 4 * 2 * 2 * 32  # prefix x (key, value) x layers x width


def test_search_of_an_index_has_a_column_per_model_that_indexed_it(client):
    found = client.predict("a dog", 2, corpus="pets.txt", api_name="/search")
    assert found["simcse"][0]["text"] == "a dog"
    assert found["simcse"][0]["score"] == pytest.approx(1, abs=1e-5)
    assert set(found) == {"simcse", "promptbert", "dcpcse"}
    assert "built by dcpcse (00000000" in found["dcpcse"]["error"]
    for models, able in ((["simcse", "broken", "simcse (before)"], {"simcse"}), (["broken"], set(found))):
        assert set(client.predict("a dog", 2, corpus="pets.txt", models=models, api_name="/search")) == able


def test_a_program_keeps_texts_searches_them_and_deletes_them(client):
    some = client.predict(SENTENCES, models=["simcse (before)", "simcse"], api_name="/texts")
    assert set(some["models"]) == {"simcse (before)", "simcse"}
    answer = client.predict(SENTENCES, ["x"] * 7, api_name="/texts")
    key = answer["key"]
    while any(
        each["done"] < 7 and not each["error"]
        for each in client.predict([], key=key, api_name="/texts")["models"].values()
    ):
        time.sleep(0.05)
    assert (len(key), answer["texts"]) == (32, 7)
    hits = client.predict("a dog", 3, corpus="own", key=key, where="label = 'x'", api_name="/search")["simcse"]
    assert [hit["fields"] for hit in hits] == [{"label": "x"}] * 3
    deleted = [client.predict(key, api_name="/forget") for _ in range(2)]
    assert deleted == [{"deleted": True}, {"deleted": False}]
    for wrong, cure in (
        ((SENTENCES, ["x"]), "Send a label for each of the 7 texts"),
        ((["a"], None, "guess"), "no key to keep texts under"),
        (([], None, key), "There are no texts of yours"),
    ):
        with pytest.raises(AppError, match=cure):
            client.predict(*wrong, api_name="/texts")


@pytest.mark.parametrize(
    ("endpoint", "values", "message"),
    [
        ("similarity", ["", "a"], "Sentence A is empty; write a few words."),
        ("similarity", ["a" * 100_001, "b"], "Sentence A has 100,001 characters; give at most 100,000."),
        ("encode", [["a"] * 257, "simcse"], "The texts are 257; send a list of 1 to 256."),
        ("encode", [["a" * 50_001] * 2, "simcse"], "The texts have 100,002 characters together; give at most 100,000."),
        ("encode", [["a"], "broken"], "broken: "),
        ("search", ["a", 0], "k must be a whole number from 1 to 50."),
        ("search", ["a", 5, 0, "", "../etc"], "The corpus is unknown; choose demo or own or pets.txt, not '../etc'."),
        ("search", ["a", 5, 0, "", "own"], GONE),
        ("template", ["a", "[MASK]", 5], 'The template "[MASK]" needs one [X], for the sentence, and one [MASK].'),
        ("map", ["moon"], "The most points must be a whole number from 100 to 10000."),
    ],
)
def test_bad_input_gives_one_line_with_the_cure(public, endpoint, values, message):
    with pytest.raises(gr.Error) as caught:
        public[endpoint].fn(*values)
    said = caught.value.message
    assert said.startswith(message) if message == "broken: " else said == message
    assert not caught.value.print_exception


def test_the_line_reaches_the_client_and_no_traceback_the_log(client, capfd):
    with pytest.raises(AppError) as caught:
        client.predict("", "a", api_name="/similarity")
    assert str(caught.value).strip("'\"") == "Sentence A is empty; write a few words."
    assert "Traceback" not in capfd.readouterr().err


def test_a_call_cannot_go_around_the_queue(client):
    answer = httpx.post(f"{client.src}gradio_api/run/similarity", json={"data": [*PAIR, "demo", "", []]}, timeout=60)
    assert answer.status_code == 404
    assert "queue" in answer.text
