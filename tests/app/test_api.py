"""The endpoints of a running app: what they answer, their limits, and columns whose model is broken."""

import contextlib
import itertools
import json
from collections import Counter, deque

import gradio as gr
import numpy as np
import pytest
from app_models import GOOD, MARKUP, serving, write_models
from conftest import ROOT

import cse
from cse.app.state.corpora import Demo
from cse.app.state.own_corpora import GONE
from cse.evaluation.tasks import TASKS
from index import BuildSettings, VectorIndex

SHOWN = (  # handlers of the page that run models
    "compare draw find show describe map_points change find_pairs look put take explain try_it"
).split()
PAIR = ["the dog was running in the park", "a man is playing guitar"]
CORPUS = ["the cat is eating", "a woman is happy in the rain", "the sun was big and red", "they mean it", "a dog"]

KEEP_ONE = "The text to keep is unknown; choose first or longest or central."


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
def answers(folders, indexes):
    """The functions of the endpoints by name, as the server calls them."""
    from cse.app.serving import build_app

    functions = build_app([str(folder) for folder in folders.values()], indexes).fns.values()
    return {function.api_name: function.fn for function in functions if function.api_visibility == "public"}


@pytest.fixture(scope="module")
def client(folders, indexes):
    from clients import app_client

    with serving([str(folder) for folder in folders.values()], indexes) as url:
        yield app_client(url)


def test_the_api_is_what_was_promised(client):
    info = client.view_api(return_format="dict", print_info=False)
    found = {name: [p["parameter_name"] for p in end["parameters"]] for name, end in info["named_endpoints"].items()}
    assert found == {
        "/encode": ["texts", "model", "normalize"],
        "/similarity": ["s1", "s2"],
        "/words": ["s1", "s2"],
        "/pairs": ["lines"],
        "/search": ["query", "k", "corpus", "threshold", "key"],
        "/tokens": ["sentence", "k", "share"],
        "/template": ["sentence", "template", "k"],
        "/map": ["source", "lines", "most", "seed", "groups", "corpus", "key"],
        "/selection": ["points", "model", "source", "lines", "most", "groups", "corpus", "key"],
        "/changes": ["sentence", "variants"],
        "/disagreements": ["source", "lines", "corpus", "key"],
        "/xray": ["s1", "s2", "off"],
        "/attention": ["sentence"],
        "/texts": ["texts", "labels", "key"],
        "/vectors": ["model", "corpus", "key", "start"],
        "/forget": ["key"],
        "/duplicates": ["model", "corpus", "nines", "keep", "page", "key"],
        "/judge": ["first", "second", "corpus", "questions", "key"],
        "/verdict": ["first", "second", "same"],
        "/models": [],
        "/add_model": ["name"],
        "/results": ["task"],
        "/ledger": [],
    }
    assert info["unnamed_endpoints"] == {}
    kinds = {p["parameter_name"]: p["type"]["type"] for p in info["named_endpoints"]["/map"]["parameters"]}
    whole = dict.fromkeys(("most", "seed", "groups"), "integer")
    assert kinds == {**dict.fromkeys(("source", "lines", "corpus", "key"), "string"), **whole}


def test_similarity_is_the_encoders_cosine_and_a_broken_model_says_why(client, encoders):
    found = client.predict(*PAIR, api_name="/similarity")
    assert list(found) == [*GOOD, MARKUP, "broken"]
    assert "damaged" in found.pop("broken")["error"]
    for name, cosine in found.items():
        first, second = encoders[name].encode(PAIR)
        assert cosine == pytest.approx(first @ second / np.linalg.norm(first) / np.linalg.norm(second), abs=1e-5)


def test_texts_become_the_encoders_vectors(client, encoders):
    texts = [*PAIR, *(f"the cat number {number} is eating" for number in range(70)), PAIR[0]]
    for name in ("simcse", "promptbert"):
        found = client.predict(texts, name, api_name="/encode")
        assert (found["model"], found["fingerprint"]) == (name, encoders[name].fingerprint)
        np.testing.assert_allclose(found["vectors"], encoders[name].encode(texts), atol=1e-5)
        assert found["dimension"] == encoders[name].dim
        unit = client.predict(texts, name, True, api_name="/encode")["vectors"]
        np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(unit, encoders[name].encode(texts, normalize_embeddings=True), atol=1e-5)


def test_a_model_added_by_one_client_is_seen_by_no_other(client):
    from clients import app_client

    visitor = app_client(client.src)
    assert visitor.predict("bundled", api_name="/add_model")["name"] == "bundled"
    mine, theirs = (each.predict(*PAIR, api_name="/similarity") for each in (visitor, client))
    first, second = cse.load("bundled").encode(PAIR, normalize_embeddings=True)
    assert mine.pop("bundled") == pytest.approx(first @ second, abs=1e-5)
    assert mine.keys() == theirs.keys()
    with pytest.raises(Exception, match="There is no model"):
        visitor.predict("../broken", api_name="/add_model")


def test_words_are_the_cosines_lost_without_them_and_a_broken_model_says_why(client, encoders):
    def cosine(encoder, *pair):
        first, second = encoder.encode(list(pair)).astype(np.float64)
        return first @ second / np.linalg.norm(first) / np.linalg.norm(second)

    found = client.predict("the big dog!", "a cat", api_name="/words")
    assert "damaged" in found.pop("broken")["error"]
    for name, answer in found.items():
        whole, encoder = cosine(encoders[name], "the big dog!", "a cat"), encoders[name]
        first, second = (dict(words) for words in answer["words"])
        assert answer["cosine"] == pytest.approx(whole, abs=1e-5)
        wanted = {"the": "big dog!", "big": "the dog!", "dog": "the big!"}
        assert first == pytest.approx({w: whole - cosine(encoder, t, "a cat") for w, t in wanted.items()}, abs=1e-5)
        wanted = {"a": "cat", "cat": "a"}
        assert second == pytest.approx(
            {w: whole - cosine(encoder, "the big dog!", t) for w, t in wanted.items()}, abs=1e-5
        )
        assert answer["errors"][0] == pytest.approx(
            sum(first.values()) - whole + cosine(encoder, "!", "a cat"), abs=1e-5
        )


def test_all_pairs_of_a_list_have_each_models_cosines_and_percentiles(client, encoders):
    from scipy.stats import percentileofscore

    found, state = client.predict("\n".join(CORPUS), api_name="/pairs"), Demo()
    assert found["sentences"] == CORPUS
    assert "damaged" in found["models"]["broken"]["error"]
    for name in ("simcse", "conpvp"):
        rows = encoders[name].encode(CORPUS, normalize_embeddings=True)
        np.testing.assert_allclose(found["models"][name]["cosines"], rows @ rows.T, atol=1e-4)
        reference = state.random_cosines(encoders[name])
        wanted = [[percentileofscore(reference, cosine, "mean") for cosine in row] for row in rows @ rows.T]
        np.testing.assert_allclose(found["models"][name]["percentiles"], wanted, atol=0.02)


def test_search_finds_what_a_loop_over_the_demo_corpus_finds(client, encoders):
    query, sentences = "my dog is happy in the park", Demo().sentences
    found = client.predict(query, 7, "demo", api_name="/search")
    assert "damaged" in found["broken"]["error"]
    for name in ("simcse", "conpvp"):
        rows = encoders[name].encode(sentences, normalize_embeddings=True)
        scores = rows @ encoders[name].encode(query, normalize_embeddings=True)
        assert [hit["rank"] for hit in found[name]] == [1, 2, 3, 4, 5, 6, 7]
        assert set(found[name][0]) == {"rank", "score", "text"}
        np.testing.assert_allclose([hit["score"] for hit in found[name]], np.sort(scores)[::-1][:7], atol=1e-5)
        for hit in found[name]:
            assert scores[sentences.index(hit["text"])] == pytest.approx(hit["score"], abs=1e-5)


def test_search_of_an_index_folder_has_a_column_per_model_that_indexed_it(client):
    found = client.predict(CORPUS[2], k=50, corpus="pets.txt", api_name="/search")
    assert list(found) == ["simcse", "promptbert", "dcpcse"]
    assert found["dcpcse"]["error"].startswith("dcpcse: built by dcpcse (00000000")  # of another fingerprint
    assert "/" not in found["dcpcse"]["error"]  # where the server has them is its own affair
    for name in ("simcse", "promptbert"):
        assert sorted(hit["text"] for hit in found[name]) == sorted(CORPUS)  # k is cut to what there is
        assert found[name][0]["text"] == CORPUS[2]
        assert found[name][0]["score"] == pytest.approx(1, abs=1e-5)


def test_a_threshold_leaves_what_is_closer_than_that_share_of_random_pairs(client, encoders):
    demo, query = Demo(), "my dog is happy in the park"
    everything = client.predict(query, 50, "demo", api_name="/search")
    found = client.predict(query, 50, "demo", 90, api_name="/search")
    for name in ("simcse", "conpvp"):
        reference = demo.random_cosines(encoders[name])
        least = np.sort(reference)[int(0.9 * len(reference))]
        assert found[name] == [hit for hit in everything[name] if hit["score"] >= least]
    assert 0 < sum(len(found[name]) for name in GOOD) < 50 * len(GOOD)


def test_a_template_is_tried_beside_each_models_own(client, encoders):
    from cse.corpus.supervised import scored_pairs
    from cse.evaluation.metrics import spearman

    pairs = scored_pairs(ROOT / "cse/bundled/demo/pairs.tsv")
    found = client.predict(PAIR[0], '"[X]" is a [MASK] one', 3, api_name="/template")
    assert "damaged" in found["broken"]["error"]
    for name in ("simcse", "conpvp"):
        own, other = found[name]["own"], found[name]["other"]
        assert (own["template"], other["template"]) == (encoders[name].reading.template.text, '"[X]" is a [MASK] one')
        assert own["score"] == pytest.approx(spearman(encoders[name].encode, pairs), abs=0.006)
        assert [word for word, _ in own["words"]] == [word for word, _ in encoders[name].top_tokens(PAIR[0], 3)]
        assert other["score"] != own["score"]


def test_tokens_are_the_encoders_before_and_after_denoising(client, encoders):
    found = client.predict(PAIR[0], k=4, api_name="/tokens")
    assert set(found) == {*GOOD, MARKUP, "broken"}
    for name, encoder in encoders.items():
        for key, denoise in (("before", False), ("after", True)):
            expected = encoder.top_tokens(PAIR[0], 4, denoise)
            assert [token for token, _ in found[name][key]] == [token for token, _ in expected]
            assert [p for _, p in found[name][key]] == pytest.approx([p for _, p in expected], abs=1e-5)
    whole = client.predict(PAIR[0], k=4, share=0.0, api_name="/tokens")
    assert all(whole[name]["after"] == whole[name]["before"] for name in encoders)


def test_map_of_lines_is_the_projection_of_the_encoders_vectors(client, encoders):
    from cse.analysis.maps import project

    found = client.predict("lines", "\n".join([*CORPUS, "", "  "]), api_name="/map", seed=3)
    assert found["texts"] == CORPUS
    assert found["labels"] is None
    assert "damaged" in found["maps"]["broken"]["error"]
    vectors = {name: encoder.encode(CORPUS) for name, encoder in encoders.items()}
    *_, expected = project(vectors, seed=3)
    for name, xy in expected.items():
        np.testing.assert_allclose(found["maps"][name]["xy"], xy, atol=1e-4)
        assert found["maps"][name]["trustworthiness"] is None  # of five points it says nothing
        rows = vectors[name] / np.linalg.norm(vectors[name], axis=1, keepdims=True)
        order = np.argsort(-(rows @ rows.T), axis=1)
        assert [near[:3] for near in found["maps"][name]["near"]] == order[:, 1:4].tolist()


def test_map_of_the_demo_corpus_is_an_even_sample_with_groups_and_their_labels(client):
    from gradio_client.exceptions import AppError

    found, demo = client.predict("corpus", most=120, groups=3, api_name="/map"), Demo()
    assert found["texts"] == demo.sentences[::10]
    assert found["labels"] == demo.topics[::10]
    drawn = found["maps"]["simcse"]
    assert np.array(drawn["xy"]).shape == (120, 2)
    same = [
        [found["labels"][other] == label for other in near]
        for label, near in zip(found["labels"], drawn["near"], strict=True)
    ]
    assert drawn["same_topic"] == pytest.approx(np.mean(same))
    assert 0 < drawn["trustworthiness"] < 1
    groups = drawn["groups"]
    for group, (name, share) in enumerate(groups["labels"]):
        labels = [label for label, of in zip(found["labels"], groups["of"], strict=True) if of == group]
        assert max(Counter(labels).values()) == labels.count(name) == round(share * len(labels))
    members = [row for row, of in enumerate(groups["of"]) if of == 0]
    asked = {"model": "simcse", "most": 120, "groups": 3, "api_name": "/selection"}
    told = client.predict(members, **asked)
    assert (told["size"], told["words"]) == (len(members), told["words"][:8])
    assert told["spread"]["simcse"] == [[0, len(members)]]
    assert sum(count for _, count in told["spread"]["dcpcse"]) == len(members)
    assert dict(told["labels"]) == Counter(found["labels"][row] for row in members)
    assert not set(told["typical"]) & set(told["odd"])
    assert {*told["typical"], *told["odd"]} <= set(members)
    for wrong, reason in (([], "1 to 120 points"), ([120], "from 0 to 119"), ([0.5], "a whole number")):
        with pytest.raises(AppError, match=reason):
            client.predict(wrong, **asked)
    with pytest.raises(AppError, match="elsewhere has no vectors of these texts; choose simcse or"):
        client.predict([0], **{**asked, "model": "elsewhere"})


def test_map_of_graded_pairs_has_both_sentences_of_a_pair_together(client):
    from cse.corpus.supervised import scored_pairs

    found = client.predict("pairs", api_name="/map")
    pairs = {(first, second): grade for grade, first, second in scored_pairs(ROOT / "cse/bundled/demo/pairs.tsv")}
    assert len(found["texts"]) == 2 * len(pairs)
    for i in range(0, len(found["texts"]), 2):
        grade = pairs[found["texts"][i], found["texts"][i + 1]]
        assert found["labels"][i : i + 2] == [f"{grade:g}"] * 2


def test_models_describe_themselves(client, encoders):
    found = {description.pop("name"): description for description in client.predict(api_name="/models")}
    assert "damaged" in found["broken"]["error"]
    for name, encoder in encoders.items():
        assert found[name]["fingerprint"] == encoder.fingerprint
        assert found[name]["learned"] == encoder.learned_count
    assert found["simcse"]["pooling"] == "at the first token"
    assert found["promptbert"]["pooling"] == "at [MASK]"
    assert found["dcpcse"]["learned"] == 4 * 2 * 2 * 32  # prefix x (key, value) x layers x width


def test_results_are_the_shipped_ones_and_no_model_is_run(client):
    found = client.predict(api_name="/results")
    records = json.loads((ROOT / "cse/bundled/results/sts.json").read_text())["models"]
    shipped = {label: record for label, record in records.items() if not record.get("start")}
    assert found["task"] == "sts"
    names = [f"shipped {label}" if label in GOOD else label for label in shipped]  # the page's own are others
    assert list(found["models"]) == names
    for name, record in zip(names, shipped.values(), strict=True):
        figures = dict(zip([c["unit"] for c in found["columns"]], found["models"][name]["figures"], strict=True))
        assert (found["models"][name]["untrained"] is None) == (record["seed"] is not None)
        for unit, scores in record["scores"].items():
            spread = 3 * (figures[unit]["deviation"] or 0)
            assert figures[unit]["value"] == pytest.approx(scores["spearman"], abs=spread + 1e-9)
    for task in TASKS:
        assert client.predict(task, api_name="/results")["task"] == task


@pytest.mark.parametrize(
    ("endpoint", "values", "message"),
    [
        ("/similarity", ["", "a"], "Sentence A is empty; write a few words."),
        ("/similarity", ["a", " \n"], "Sentence B is empty; write a few words."),
        ("/similarity", ["a", None], "Sentence B is not text; send a string."),
        ("/similarity", ["a", ["b"]], "Sentence B is not text; send a string."),
        ("/similarity", ["a" * 100_001, "b"], "Sentence A has 100,001 characters; give at most 100,000."),
        ("/encode", ["a", "simcse"], "The texts are not a list; send a list of 1 to 256."),
        ("/encode", [["a"] * 257, "simcse"], "The texts are 257; send a list of 1 to 256."),
        ("/encode", [["a", ""], "simcse"], "Text 2 is empty; write a few words."),
        (
            "/encode",
            [["a" * 50_001] * 2, "simcse"],
            "The texts have 100,002 characters together; give at most 100,000.",
        ),
        ("/encode", [["a"], "broken"], "broken: "),
        ("/words", ["a", "b " * 65], "Sentence B has 65 words; give at most 64, each is left out in turn."),
        ("/words", ["?!", "b"], "Sentence A has no words, only punctuation; write a few."),
        ("/pairs", ["a"], "The list has 1 sentence; paste 2 to 40, one per line."),
        ("/search", [" ", 5, "demo"], "The query is empty; write a few words."),
        ("/search", ["a", 0, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", 51, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", "5", "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", 2.5, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", True, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", 5, "../etc"], "The corpus is unknown; choose demo or own or pets.txt."),
        ("/search", ["a", 5, {}], "The corpus is unknown; choose demo or own or pets.txt."),
        ("/search", ["a", 5, "demo", 101], "The minimum percentile must be a number from 0 to 100."),
        ("/search", ["a", 5, "own", 0], GONE),
        ("/template", ["a", "[MASK]", 5], 'The template "[MASK]" needs one [X], for the sentence, and one [MASK].'),
        ("/template", ["a", "[X]" * 101, 5], "The template has 303 characters; give at most 300."),
        ("/tokens", ["", 5], "The sentence is empty; write a few words."),
        ("/tokens", ["a", 31], "k must be a whole number from 1 to 30."),
        ("/map", ["moon", "", 100, 0], "The source is unknown; choose corpus or pairs or lines."),
        ("/map", ["lines", " \n ", 25, 0], "The list is empty; paste 1 to 2,000 sentences, one per line."),
        ("/map", ["lines", "a\n" * 2001, 25, 0], "The list has 2,001 sentences; paste 1 to 2,000, one per line."),
        ("/map", ["corpus", "", 99, 0], "The most points must be a whole number from 100 to 10000."),
        ("/duplicates", ["broken"], "broken: "),
        ("/duplicates", ["simcse", "own"], GONE),
        ("/duplicates", ["simcse", "demo", 8], "The strictness must be a number from 3 to 7."),
        ("/duplicates", ["simcse", "demo", 5, "best"], KEEP_ONE),
        ("/judge", ["simcse", "broken"], "broken: "),
        ("/judge", ["simcse", "simcse"], "Both models are SimCSE; choose two different ones."),
        ("/judge", ["simcse", "dcpcse", "demo", 61], "The votes must be a whole number from 5 to 60."),
        ("/verdict", [-1, 2], "The votes must be a whole number from 0 to 100000."),
        ("/results", ["glue"], f"The task is unknown; choose {' or '.join(TASKS)}."),
        ("/map", ["pairs", "", 25, -1], "The seed must be a whole number from 0 to 4294967295."),
    ],
)
def test_bad_input_gives_one_line_with_the_cure(answers, endpoint, values, message):
    with pytest.raises(gr.Error) as caught:
        deque(answers[endpoint.strip("/")](*values))  # some answer step by step
    said = caught.value.message
    assert said.startswith(message) if message == "broken: " else said == message
    assert not caught.value.print_exception


def test_the_line_reaches_the_client_and_no_traceback_the_log(client, capfd):
    from gradio_client.exceptions import AppError

    for endpoint, values, message in (
        ("/similarity", ["", "a"], "Sentence A is empty; write a few words."),
        ("/map", ["moon", "", 100, 0], "The source is unknown; choose corpus or pairs or lines."),
        ("/search", ["a", 5, {}], "The corpus is unknown; choose demo or own or pets.txt."),
    ):
        with pytest.raises(AppError) as caught:
            client.predict(*values, api_name=endpoint)
        assert str(caught.value).strip("'\"") == message
        assert "Traceback" not in capfd.readouterr().err


def test_very_long_text_is_cut_by_the_model(client):
    found = client.predict("dog " * 20_000, "the dog", api_name="/similarity")
    assert all(-1.001 <= found[name] <= 1.001 for name in GOOD)


def test_half_a_surrogate_pair_does_not_break_the_answer(client):
    import httpx

    body = json.dumps(
        {"data": ["lines", "the \ud83d cat\na dog", 100, 0, 2, "demo", ""]}
    )  # ASCII escapes: what a script can send
    headers = {"content-type": "application/json"}
    call = f"{client.src}gradio_api/call/map"
    event = httpx.post(call, content=body, headers=headers).json()["event_id"]
    answer = httpx.get(f"{call}/{event}", timeout=30).text
    assert answer.count("event: generating") == len(GOOD) + 2  # a map after the other, and all at the end
    assert json.loads(answer.split("event: complete\ndata: ")[1])[0]["texts"] == ["the ? cat", "a dog"]


def test_a_client_that_leaves_stops_its_maps(client, monkeypatch):
    """It goes while the second of five maps is drawn."""
    import threading

    import httpx
    from gradio.queueing import Queue

    drawn, second, left, noticed, forget = [], *(threading.Event() for _ in range(3)), Queue.clean_events

    def embed(rows, seed, start):
        drawn.append(len(rows))
        if len(drawn) == 2:
            second.set()
            assert left.wait(60)
        return rows[:, :2]

    async def clean_events(self, **who):
        await forget(self, **who)
        noticed.set()

    monkeypatch.setattr("cse.analysis.maps.embed", embed)
    monkeypatch.setattr(Queue, "clean_events", clean_events)
    call = f"{client.src}gradio_api/call/map"
    event = httpx.post(call, json={"data": ["lines", "a cat\na dog\na man", 100, 1, 2, "demo", ""]}).json()["event_id"]
    with httpx.stream("GET", f"{call}/{event}", timeout=60) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: generating"
        if not second.wait(30):  # seen twice, in whole runs alone; the lines that follow may tell why
            left.set()
            heard = []
            with contextlib.suppress(httpx.HTTPError):
                heard += (line[:200] for line in itertools.islice(lines, 8))
            pytest.skip(f"the second map was not begun; {len(drawn)} drawn, cleaned {noticed.is_set()}, then {heard}")
    assert noticed.wait(60)
    left.set()
    found = client.predict("lines", "a cat", api_name="/map")  # after it, on the one lane
    assert drawn == [3, 3] + [1] * 5
    assert found["texts"] == ["a cat"]


def test_a_call_cannot_go_around_the_queue(client):
    import httpx

    answer = httpx.post(f"{client.src}gradio_api/run/similarity", json={"data": PAIR})
    assert answer.status_code == 404
    assert "queue" in answer.text


def test_everything_that_runs_a_model_has_its_lane_and_handlers_of_the_page_are_hidden():
    """Maps take long and have a lane of their own."""
    from cse.app.serving import build_app

    functions = build_app(["simcse"]).fns.values()
    public = {function.api_name for function in functions if function.api_visibility == "public"}
    probed = {"changes", "disagreements", "xray", "attention", "add_model"}
    compared = {"encode", "similarity", "words", "pairs", "search", "tokens", "template", "map", "selection"}
    kept = {"texts", "vectors", "forget"}
    assert public == probed | compared | kept | {"models", "results", "ledger", "duplicates", "judge", "verdict"}
    lanes = {"maps": 1, "encode": 8, "links": 1, "comparisons": 1}
    alone = {
        "map": "maps", "map_points": "maps", "duplicates": "links", "find_near": "links", "find_quickly": "links",
        "judge": "comparisons", "begin": "comparisons",
    }  # fmt: skip
    for function in functions:
        if function.api_name in public - {"results", "ledger"} or function.name in (*SHOWN, *alone):
            lane = alone.get(str(function.api_name), alone.get(function.name, "encode"))
            assert (function.concurrency_id, function.concurrency_limit) == (lane, lanes[lane])
    finding = [function for function in functions if function.name == "find"]
    (again,) = [function for function in functions if function.name == "find_again"]
    assert again.concurrency_id == "encode"
    assert again.fn(0, "a", 5, 0, "demo", "key") == [gr.skip()] * len(again.outputs)  # nothing was indexed
    # Nothing that is forgotten when many other sessions come; a restored state before them only repeats the address.
    kinds = {type(component).__name__ for function in finding for component in function.inputs[-5:]}
    assert kinds == {"Textbox", "Slider", "Dropdown"}


def test_near_duplicates_are_numbered_by_the_rows_of_the_corpus(client):
    found = client.predict("simcse", nines=3.5, api_name="/duplicates")
    texts = Demo().sentences
    members = [member for group in found["page"] for member in group]
    assert [texts[member["row"]] for member in members] == [member["text"] for member in members]
    assert all(member["number"] == member["row"] + 1 for member in members)
    assert found["groups"] == len(found["page"]) == sum(member["kept"] for member in members)
    assert found["kept"] == len(texts) - sum(not member["kept"] for member in members)


def test_two_models_are_compared_and_votes_get_a_verdict(client, encoders):
    found = client.predict("simcse", "promptbert", questions=5, api_name="/judge")
    texts = Demo().sentences
    asked = found["questions"][0]
    for side, name in (("first", "simcse"), ("second", "promptbert")):
        vectors = encoders[name].encode(texts, normalize_embeddings=True)
        cosines = vectors @ vectors[texts.index(asked["text"])]
        best = [texts[row] for row in np.argsort(-cosines)[:6] if texts[row] != asked["text"]]
        assert asked[side] == best[:5]
    assert (found["compared"], len(found["questions"]), set(found["scores"])) == (len(texts), 5, {"first", "second"})
    voted = client.predict(3, 14, 2, api_name="/verdict")
    assert voted["sentence"] == "the second model is better: 14 of 17 votes, p = .013"
