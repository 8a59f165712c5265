"""The app through its server: endpoints, limits, broken columns, and nothing of a user's text becoming markup."""

import base64
import json
import socket
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from app_models import GOOD, MARKUP, serving, write_model, write_models
from conftest import ROOT

import app
import cse
from app import main
from cse.model_names import resolve
from index import BuildSettings, Hit, VectorIndex
from ui import html, validation
from ui.canvas import ModelMap, canvas_value, pack
from ui.corpora import Demo
from ui.models import Column, Failure, Models, columns, free_name
from ui.search import search_html
from ui.similarity import cell_colours, contrast, cosine_html, heat_map_html
from ui.tokens import Reading, reading_html

# Gradio 6.31.0's own statistics use what pandas 3 is about to drop.
pytestmark = pytest.mark.filterwarnings(
    "ignore:'future.no_silent_downcasting' is deprecated", "ignore:The copy keyword is deprecated"
)
PAIR = ["the dog was running in the park", "a man is playing guitar"]
CORPUS = ["the cat is eating", "a woman is happy in the rain", "the sun was big and red", "they mean it", "a dog"]


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
def client(folders, indexes):
    from gradio_client import Client

    with serving([str(folder) for folder in folders.values()], indexes) as url:
        yield Client(url, verbose=False)


def test_the_api_is_what_was_promised(client):
    info = client.view_api(return_format="dict", print_info=False)
    found = {name: [p["parameter_name"] for p in end["parameters"]] for name, end in info["named_endpoints"].items()}
    assert found == {
        "/similarity": ["s1", "s2"],
        "/search": ["query", "k", "corpus"],
        "/tokens": ["sentence", "k"],
        "/map": ["source", "lines", "per_topic", "seed"],
        "/models": [],
    }
    assert info["unnamed_endpoints"] == {}
    kinds = {p["parameter_name"]: p["type"]["type"] for p in info["named_endpoints"]["/map"]["parameters"]}
    assert kinds == {"source": "string", "lines": "string", "per_topic": "integer", "seed": "integer"}


def test_similarity_is_the_encoders_cosine_and_a_broken_model_says_why(client, encoders):
    found = client.predict(*PAIR, api_name="/similarity")
    assert list(found) == [*GOOD, MARKUP, "broken"]
    assert "damaged" in found.pop("broken")["error"]
    for name, cosine in found.items():
        first, second = encoders[name].encode(PAIR)
        assert cosine == pytest.approx(first @ second / np.linalg.norm(first) / np.linalg.norm(second), abs=1e-5)


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
    assert "built by" in found["dcpcse"]["error"]  # another fingerprint than the model's
    for name in ("simcse", "promptbert"):
        assert sorted(hit["text"] for hit in found[name]) == sorted(CORPUS)  # k is cut to what there is
        assert found[name][0]["text"] == CORPUS[2]
        assert found[name][0]["score"] == pytest.approx(1, abs=1e-5)


def test_tokens_are_the_encoders_before_and_after_denoising(client, encoders):
    found = client.predict(PAIR[0], k=4, api_name="/tokens")
    assert set(found) == {*GOOD, MARKUP, "broken"}
    for name, encoder in encoders.items():
        for key, denoise in (("before", False), ("after", True)):
            expected = encoder.top_tokens(PAIR[0], 4, denoise)
            assert [token for token, _ in found[name][key]] == [token for token, _ in expected]
            assert [p for _, p in found[name][key]] == pytest.approx([p for _, p in expected], abs=1e-5)


def test_map_of_lines_is_the_projection_of_the_encoders_vectors(client, encoders):
    from cse.projection import project, trustworthiness

    found = client.predict("lines", "\n".join([*CORPUS, "", "  "]), api_name="/map", seed=3)
    assert found["texts"] == CORPUS
    assert found["labels"] == ["your lines"] * len(CORPUS)
    assert "damaged" in found["maps"]["broken"]["error"]
    vectors = {name: encoder.encode(CORPUS) for name, encoder in encoders.items()}
    expected = project(vectors, seed=3)
    for name, xy in expected.items():
        np.testing.assert_allclose(found["maps"][name]["xy"], xy, atol=1e-4)
        assert found["maps"][name]["trustworthiness"] == pytest.approx(trustworthiness(vectors[name], xy))


def test_map_of_the_demo_corpus_has_so_many_sentences_of_every_topic(client):
    found, demo = client.predict("demo", per_topic=10, api_name="/map"), Demo()
    topics = list(dict.fromkeys(demo.topics))
    assert found["labels"] == [topic for topic in topics for _ in range(10)]
    assert len(topics) == 12
    for label, text in zip(found["labels"], found["texts"], strict=True):
        assert demo.topics[demo.sentences.index(text)] == label
    assert np.array(found["maps"]["simcse"]["xy"]).shape == (120, 2)


def test_map_of_graded_pairs_has_both_sentences_of_a_pair_together(client):
    from cse.data import scored_pairs

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
        assert found[name]["learned"] == sum(tensor.numel() for tensor in encoder.learned().values())
    assert found["simcse"]["pooling"] == "at the first token"
    assert found["promptbert"]["pooling"] == "at [MASK]"
    assert found["dcpcse"]["learned"] == 4 * 2 * 2 * 32  # prefix x (key, value) x layers x width


@pytest.mark.parametrize(
    ("endpoint", "values", "message"),
    [
        ("/similarity", ["", "a"], "Sentence A is empty; write a few words."),
        ("/similarity", ["a", " \n"], "Sentence B is empty; write a few words."),
        ("/similarity", ["a", None], "Sentence B is not text; send a string."),
        ("/similarity", ["a", ["b"]], "Sentence B is not text; send a string."),
        ("/similarity", ["a" * 100_001, "b"], "Sentence A has 100,001 characters; give at most 100,000."),
        ("/search", [" ", 5, "demo"], "The query is empty; write a few words."),
        ("/search", ["a", 0, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", 51, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", "5", "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", 2.5, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", True, "demo"], "k must be a whole number from 1 to 50."),
        ("/search", ["a", 5, "../etc"], "The corpus is unknown; choose demo or pets.txt."),
        ("/search", ["a", 5, {}], "The corpus is unknown; choose demo or pets.txt."),
        ("/tokens", ["", 5], "The sentence is empty; write a few words."),
        ("/tokens", ["a", 31], "k must be a whole number from 1 to 30."),
        ("/map", ["moon", "", 25, 0], "The source is unknown; choose demo or pairs or lines."),
        ("/map", ["lines", " \n ", 25, 0], "The list is empty; paste 1 to 500 sentences, one per line."),
        ("/map", ["lines", "a\n" * 501, 25, 0], "The list has 501 sentences; paste 1 to 500, one per line."),
        ("/map", ["demo", "", 9, 0], "Sentences per topic must be a whole number from 10 to 100."),
        ("/map", ["pairs", "", 25, -1], "The seed must be a whole number from 0 to 4294967295."),
    ],
)
def test_bad_input_gives_one_line_with_the_cure(client, capfd, endpoint, values, message):
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError) as caught:
        client.predict(*values, api_name=endpoint)
    assert str(caught.value).strip("'\"") == message
    assert "Traceback" not in capfd.readouterr().err


def test_very_long_text_is_cut_by_the_model(client):
    found = client.predict("dog " * 20_000, "the dog", api_name="/similarity")
    assert all(-1.001 <= found[name] <= 1.001 for name in GOOD)


def test_half_a_surrogate_pair_does_not_break_the_answer(client):
    import httpx

    body = json.dumps({"data": ["lines", "the \ud83d cat\na dog", 25, 0]})  # ASCII escapes: what a script can send
    headers = {"content-type": "application/json"}
    call = f"{client.src}gradio_api/call/map"
    event = httpx.post(call, content=body, headers=headers).json()["event_id"]
    answer = httpx.get(f"{call}/{event}", timeout=30).text
    assert answer.startswith("event: complete")
    assert json.loads(answer.split("data: ")[1])[0]["texts"] == ["the ? cat", "a dog"]


def test_a_call_cannot_go_around_the_queue(client):
    import httpx

    answer = httpx.post(f"{client.src}gradio_api/run/similarity", json={"data": PAIR})
    assert answer.status_code == 404
    assert "queue" in answer.text


def test_everything_that_runs_a_model_takes_turns_and_handlers_of_the_page_are_hidden():
    from app import build_app

    functions = build_app(["simcse"]).fns.values()
    public = {function.api_name for function in functions if function.api_visibility == "public"}
    assert public == {"similarity", "search", "tokens", "map", "models"}
    for function in functions:
        if function.api_visibility == "public" or function.name in ("compare", "draw", "find", "show", "describe"):
            assert (function.concurrency_id, function.concurrency_limit) == ("encode", 1)


def test_a_model_that_appears_later_is_found_on_the_next_try(tmp_path, bert_folder):
    models = Models([str(tmp_path / "later")])
    call = {"function": lambda column, encoder: encoder.dim}
    (reason,) = models.apply(**call).values()
    assert isinstance(reason, Failure)
    write_model(tmp_path / "later", bert_folder, "simcse")
    assert models.apply(**call) == {"later": 32}


def test_repeated_models_share_a_column_and_names_are_told_apart(tmp_path, monkeypatch):
    for name in ("a/run", "b/run"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = columns(["simcse", "a/run", str(tmp_path / "a" / "run"), "b/run", "simcse"])
    assert found == (
        Column("simcse", "simcse"),
        Column("run", str(tmp_path / "a" / "run")),
        Column(str(tmp_path / "b" / "run"), str(tmp_path / "b" / "run")),
    )
    assert free_name(("", "a", "b"), {"a"}) == "b"


# -- nothing of a user's text becomes markup ------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{value}} ${alert(1)} `"


def test_no_component_lets_a_users_text_through_as_markup():
    hit = Hit(rank=1, score=0.5, row=0, text=HOSTILE)
    reading = Reading([(HOSTILE, 0.5)], [(HOSTILE, 0.4)], HOSTILE, own=True)
    pages = [
        heat_map_html([HOSTILE, "b"], np.eye(2)),
        search_html({HOSTILE: [hit], "other": []}),
        html.columns({HOSTILE: reading, "other": Failure(HOSTILE)}, reading_html),
        html.hint(HOSTILE),
    ]
    for page in pages:
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&gt;&lt;img" in page


def test_a_map_carries_texts_as_data():
    value = canvas_value([HOSTILE, "b"], ["x", "y"], {MARKUP: ModelMap(np.zeros((2, 2)), 1.0)}, joined=False)
    assert value["texts"] == [HOSTILE, "b"]
    assert json.loads(json.dumps(value)) == value
    script = (ROOT / "ui" / "canvas.js").read_text()
    assert "innerHTML" not in script
    assert "insertAdjacent" not in script


# -- components -----------------------------------------------------------------------------------------------------


def test_numbers_can_be_read_on_every_colour_of_the_heat_map():
    for cosine in np.linspace(-1, 1, 401):
        background, text = cell_colours(float(cosine))
        assert contrast(background, text) >= 4.5, cosine  # WCAG 2, level AA
    assert cell_colours(1.0) == ((8, 48, 107), (255, 255, 255))
    assert cell_colours(-1.0)[0] == (153, 52, 4)
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)


def test_a_cosine_has_three_decimals_and_a_bar_of_its_size():
    assert cosine_html(0.8346) == (
        '<p class="cse-number">0.835</p><span class="cse-bar "><i style="width:83.5%"></i></span>'
    )
    assert 'class="cse-bar negative"><i style="width:12.0%"' in cosine_html(-0.12)


def test_only_what_one_of_several_models_found_is_marked():
    def hits(*texts):
        return [Hit(rank, 0.5, 0, text) for rank, text in enumerate(texts, start=1)]

    page = search_html({"a": hits("both", "mine"), "b": hits("both", "yours"), "c": Failure("broken")})
    assert page.count("only here") == 2
    assert "both</span>" in page
    assert search_html({"a": hits("one"), "c": Failure("broken")}).count("only here") == 0


def test_packed_points_come_back():
    xy = np.array([[0, 1], [0.25, 0.5], [2, -1]])
    numbers = np.frombuffer(base64.b64decode(pack(xy)), "<u2").reshape(-1, 2) / 65535
    np.testing.assert_allclose(numbers, np.clip(xy, 0, 1), atol=1e-5)


def test_lines_are_stripped_and_counted():
    assert validation.lines(" a \n\n b\r\nc", 2, 3) == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"The list has 1 sentence; paste 2 to 40, one per line\."):
        validation.lines("a", 2, 40)


# -- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nowhere"], "no model 'nowhere'; choose simcse, promptbert"),
        (["--model", "EMPTY"], "no config.json in it"),
        (["--model", "UNREADABLE"], "cannot read config.json"),
        (["--model", "WEIGHTLESS"], "no safetensors file"),
        (["--index", "EMPTY"], "not an index folder"),
        (["--index", "nowhere"], "no such index folder"),
    ],
)
def test_a_wrong_model_or_index_is_one_line_and_exit_code_4(tmp_path, capsys, arguments, message):
    for name, config in (("EMPTY", None), ("UNREADABLE", "{"), ("WEIGHTLESS", "{}")):
        (tmp_path / name).mkdir()
        if config:
            (tmp_path / name / "config.json").write_text(config)
    paths = [str(tmp_path / value) if value.isupper() else value for value in arguments]
    assert main(paths) == 4
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert message in error
    assert error.count("\n") == 1


def test_good_models_pass_the_check(folders):
    for folder in [*folders.values(), Path("simcse")]:
        resolve(str(folder))  # what is in the weights is for the column to tell


@contextmanager
def listening(host):
    """A port of `host` that is taken."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
        taken.bind((host, 0))
        taken.listen()
        yield taken.getsockname()[1]


def can_listen(host):
    try:
        with listening(host):
            return True
    except OSError:
        return False


@pytest.fixture
def served(monkeypatch):
    """What `app.main` would have served; it starts nothing."""
    calls, look_up = [], socket.getaddrinfo

    def known(host, *args, **options):  # asks no name server
        if host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", known)
    monkeypatch.setattr(app, "serve", calls.append)
    monkeypatch.setenv("GRADIO_SERVER_NAME", "")  # as if it were not set
    return calls


needs_ipv6 = pytest.mark.skipif(not can_listen("::1"), reason="this machine has no IPv6 loopback")
needs_second = pytest.mark.skipif(not can_listen("127.0.0.2"), reason="this machine's loopback has one address")


def test_a_port_in_use_is_one_line_and_exit_code_3(capsys, served):
    with listening("127.0.0.1") as port:
        assert main(["--port", str(port)]) == 3
    assert (
        capsys.readouterr().err == f"Error: cannot use port {port} (Address already in use); give another with --port\n"
    )
    assert not served


@pytest.mark.parametrize("by", ["option", "environment"])
@pytest.mark.parametrize(
    ("taken", "host"),
    [
        pytest.param("127.0.0.2", "127.0.0.2", marks=needs_second),
        pytest.param("::1", "::1", marks=needs_ipv6),
        pytest.param("::1", "[::1]", marks=needs_ipv6),
    ],
)
def test_the_port_is_probed_on_the_host_that_will_be_listened_on(capsys, served, monkeypatch, by, taken, host):
    options = ["--host", host] if by == "option" else []
    monkeypatch.setenv("GRADIO_SERVER_NAME", host if by == "environment" else "127.0.0.1")
    with listening(taken) as port:
        assert main(["--port", str(port), *options]) == 3
        assert f"cannot use port {port} (Address already in use)" in capsys.readouterr().err
        monkeypatch.setenv("GRADIO_SERVER_NAME", taken)
        assert main(["--port", str(port), "--host", "127.0.0.1"]) == 0  # the option goes first, and is free there
    assert [call.host for call in served] == ["127.0.0.1"]


@pytest.mark.parametrize("by", ["option", "environment"])
@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "nobody.invalid", "a..b"])
def test_a_host_that_is_not_this_machines_is_one_line_and_exit_code_3(capsys, served, monkeypatch, by, host):
    if by == "environment":
        monkeypatch.setenv("GRADIO_SERVER_NAME", host)
    assert main(["--host", host] if by == "option" else []) == 3
    line = capsys.readouterr().err
    assert line.startswith(f"Error: cannot listen on {host!r} (")
    assert line.endswith("); give --host an address of this machine, such as 127.0.0.1\n")
    assert line.count("\n") == 1
    assert not served


@pytest.mark.parametrize(("host", "given"), [("::1", "[::1]"), ("localhost", "localhost"), ("0.0.0.0", "0.0.0.0")])
def test_gradio_is_given_the_host_as_it_wants_it(monkeypatch, host, given):
    launched = {}
    monkeypatch.setattr(app, "build_app", lambda *_: SimpleNamespace(launch=lambda **options: launched.update(options)))
    app.serve(app.parser().parse_args(["--host", host]))
    assert launched["server_name"] == given
