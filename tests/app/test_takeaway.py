"""Downloads of results: every form holds the whole answer, is safe to open, and its code repeats it."""

import contextlib
import csv
import inspect
import io
import json
import subprocess
import time
from functools import cache

import gradio as gr
import pytest
from app_models import MARKUP, serving, write_model, write_models

import cse
from cse.app.api.endpoints import add_endpoints
from cse.app.export.download import as_csv, as_json, curl_code, python_code, stem
from cse.app.export.page_answers import PAGE_ONLY, page_answers
from cse.app.export.section import Take
from cse.app.export.taken import Taken
from cse.app.export.tidy import TABLES
from cse.app.page import page
from cse.app.state.app_state import open_state
from cse.app.state.corpora import Corpus
from cse.app.training.rules import OWN
from cse.app.training.trainings import Trainings

HOSTILE = '=HYPERLINK("http://x")\'; rm -rf ~ $(id) `id` </script><script>alert(1)</script>\n-2+3 é'
TAKEN = Taken(
    "tokens",
    {"sentence": HOSTILE, "k": 2},
    {MARKUP: "0123456789ab", "broken": "ba9876543210"},
    {
        MARKUP: {"before": [["+cat", 1 / 3], ["@dog", -0.25]], "alone": [], "after": [["cat", 0.5]]},
        "broken": {"error": "-damaged"},
    },
)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d")


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def a_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_json_holds_every_number_and_where_it_comes_from() -> None:
    found = json.loads(as_json(TAKEN))
    assert found["answer"] == TAKEN.answer
    assert (found["inputs"], found["models"], found["version"]) == (TAKEN.inputs, TAKEN.models, cse.__version__)
    assert "private" not in found


def test_a_table_has_a_row_per_token_and_every_text_as_it_is() -> None:
    head, *rows = rows_of(as_csv(TAKEN))
    assert head == ["sentence", "model", "stage", "rank", "token", "probability"]
    assert rows == [
        [HOSTILE, MARKUP, "before", "1", "+cat", repr(1 / 3)],
        [HOSTILE, MARKUP, "before", "2", "@dog", "-0.25"],
        [HOSTILE, MARKUP, "denoised", "1", "cat", "0.5"],
    ]


def test_every_result_is_a_table_with_a_row_per_observation() -> None:
    """The columns never depend on the answer, and a model that has none has no row."""
    bad = {"error": "damaged"}
    answers = {
        "similarity": ({"s1": "a", "s2": "b"}, {"m": 0.5, "bad": bad}),
        "words": (
            {"s1": "the cat", "s2": "x"},
            {"m": {"cosine": 0.5, "words": [[["the", 0.25], ["cat", -0.5]], [["x", 0.125]]]}, "bad": bad},
        ),
        "pairs": (
            {"lines": "a\nb\nc"},
            {
                "sentences": ["a", "b", "c"],
                "models": {
                    "m": {
                        "cosines": [[1, 0.5, 0.25], [0.5, 1, 0.125], [0.25, 0.125, 1]],
                        "percentiles": [[100, 9, 8], [9, 100, 7], [8, 7, 100]],
                    },
                    "bad": bad,
                },
            },
        ),
        "search": (
            {"query": "q", "k": 2, "corpus": "demo", "threshold": 0.0},
            {"m": [{"rank": 1, "score": 0.5, "text": "x"}, {"rank": 2, "score": 0.25, "text": "y"}], "bad": bad},
        ),
        "template": (
            {"sentence": "s", "template": "[X] [MASK]"},
            {
                "m": {
                    "own": {"template": "t", "score": 71.5, "words": [["w", 0.5]]},
                    "other": {"template": "[X] [MASK]", "score": 70.5, "words": [["v", 0.25]]},
                    "gain": {"value": -1, "low": -2, "high": 0},
                }
            },
        ),
        "map": (
            {"source": "corpus"},
            {"labels": ["pets", "food"], "texts": ["a", "b"],
             "maps": {"m": {"xy": [[0, 1], [0.5, 0.25]], "groups": {"of": [1, 0]}}, "bad": bad}},
        ),
        "changes": (
            {"sentence": "s"},
            {
                "changes": [{"name": "negation", "keeps": False, "changed": "no s", "moved": {"m": 0.5, "n": 0.25}}],
                "errors": {"bad": "damaged"},
            },
        ),
        "disagreements": (
            {"source": "lines"},
            {"pairs": [{"s1": "a", "s2": "b", "places": {"m": 0.0, "n": 1.0}}], "errors": {}},
        ),
        "xray": (
            {"s1": "a", "s2": "b", "off": []},
            {
                "m": {
                    "cosine": 0.5,
                    "attention": {"read": [0.1, 0.2], "mean": [0.3, 0.4], "even": 0.05},
                    "ablations": [{"layers": [1, 2], "moved": 0.25, "cosine": 0.75}],
                    "prototypes": [{"template": "[X] is good", "positive": True, "cosine": 0.5}],
                }
            },
        ),
        "results": (
            {"task": "sts"},
            {
                "task": "sts",
                "columns": [{"unit": "STS12", "score": "spearman"}, {"unit": "", "score": "pearson"}],
                "models": {"m": {"figures": [{"value": 71.5, "deviation": None, "runs": 1}, None]}},
            },
        ),
        "ledger": ({}, [{"row": "r", "published": 70.0, "task": "sts", "source": "p", "mean": 60.0}]),
    }  # fmt: skip
    expected = {
        "similarity": ("first second model cosine percentile", [["a", "b", "m", 0.5, 97.5]]),
        "words": (
            "sentence model place word change_of_cosine",
            [["the cat", "m", 1, "the", 0.25], ["the cat", "m", 2, "cat", -0.5], ["x", "m", 1, "x", 0.125]],
        ),
        "pairs": (
            "first second model cosine percentile",
            [["a", "b", "m", 0.5, 9], ["a", "c", "m", 0.25, 8], ["b", "c", "m", 0.125, 7]],
        ),
        "search": (
            "query corpus model rank cosine sentence",
            [["q", "demo", "m", 1, 0.5, "x"], ["q", "demo", "m", 2, 0.25, "y"]],
        ),
        "template": (
            "sentence model template text score rank token probability",
            [["s", "m", "own", "t", 71.5, 1, "w", 0.5], ["s", "m", "other", "[X] [MASK]", 70.5, 1, "v", 0.25]],
        ),
        "map": ("model sentence label group x y", [["m", "a", "pets", 2, 0, 1], ["m", "b", "food", 1, 0.5, 0.25]]),
        "changes": (
            "sentence change keeps_meaning changed model moved",
            [["s", "negation", False, "no s", "m", 0.5], ["s", "negation", False, "no s", "n", 0.25]],
        ),
        "disagreements": ("rank first second model place", [[1, "a", "b", "m", 0.0], [1, "a", "b", "n", 1.0]]),
        "xray": (
            "first second model part item measure value",
            [
                ["a", "b", "m", "pair", "", "cosine", 0.5],
                ["a", "b", "m", "layer", "1", "attention_of_vector", 0.1],
                ["a", "b", "m", "layer", "1", "attention_of_all", 0.3],
                ["a", "b", "m", "layer", "2", "attention_of_vector", 0.2],
                ["a", "b", "m", "layer", "2", "attention_of_all", 0.4],
                ["a", "b", "m", "prefix off", "1 2", "moved", 0.25],
                ["a", "b", "m", "prefix off", "1 2", "cosine", 0.75],
                ["a", "b", "m", "positive prototype", "[X] is good", "cosine", 0.5],
            ],
        ),
        "results": ("task model set score value deviation runs", [["sts", "m", "STS12", "spearman", 71.5, "", 1]]),
    }  # fmt: skip
    for endpoint, (columns, rows) in expected.items():
        inputs, answer = answers[endpoint]
        found = rows_of(as_csv(Taken(endpoint, inputs, {}, answer, percentiles={"m": 97.5})))
        assert found == [columns.split(), *([str(cell) for cell in row] for row in rows)], endpoint
    head, row = rows_of(as_csv(Taken("ledger", {}, {}, answers["ledger"][1])))
    found = dict(zip(head, row, strict=True))
    assert (found["row"], found["published"], found["obtained"], found["difference"]) == ("r", "70.0", "60.0", "")


def test_a_table_says_which_models_it_lacks() -> None:
    lacking = {"m": 0.5, "bad": {"error": "damaged"}}
    assert Taken("similarity", {"s1": "a", "s2": "b"}, {}, lacking).missing == ["bad"]
    assert Taken("map", {}, {}, {"labels": [], "texts": [], "maps": lacking}).missing == ["bad"]
    assert Taken("changes", {}, {}, {"changes": [], "errors": {"bad": "damaged"}}).missing == ["bad"]
    assert Taken("ledger", {}, {}, []).missing == []


def test_files_are_named_after_what_they_hold() -> None:
    def named(endpoint: str, inputs: dict[str, object], models: tuple[str, ...] = ()) -> str:
        return stem(Taken(endpoint, inputs, dict.fromkeys(models, "0123"), None))

    assert named("similarity", {}, ("simcse",)) == "similarity"
    assert named("map", {"source": "corpus"}, ("simcse", "promptbert")) == "clusters-promptbert-simcse"
    assert named("map", {"source": "corpus"}, (MARKUP, "../x")) == "clusters-x-img-src-x-onerror-alert-1"
    assert named("map", {}, tuple("abcdef")) == "clusters-6-models"
    assert named("search", {"corpus": "my pets/é"}) == "search-my-pets-é"
    assert named("results", {"task": "sts"}) == "results-sts"
    names = [named(endpoint, {}) for endpoint in TABLES]
    assert len(set(names)) == len(names)


def test_the_models_named_are_those_that_answered_and_all_inputs_are_named(bert_folder, tmp_path) -> None:
    from cse.app.export.section import take
    from cse.app.models.columns import columns
    from cse.app.state.app_state import open_state

    folders = write_models(tmp_path, bert_folder)
    state = open_state([str(folders[0])], ())
    (other,) = columns([str(folders[1])])
    state.corpora["pets"] = Corpus("pets", "Pets", [other], lambda *_: None)
    found = take(
        state, {"search": lambda query, k=5, corpus="demo": {other.name: []}}, "search", {"corpus": "pets", "query": ""}
    )
    assert list(found.models) == list(found.answer) == [other.name]
    assert list(found.inputs.items()) == [("query", ""), ("k", 5), ("corpus", "pets")]


def test_maps_are_taken_with_every_point_of_the_last_step(bert_folder, tmp_path) -> None:
    from cse.app.api.map_api import maps_of
    from cse.app.export.section import take
    from cse.app.state.app_state import open_state

    folders = write_models(tmp_path, bert_folder)
    state = open_state([str(folder) for folder in folders[:2]], ())
    lines = "\n".join(f"the dog {n}" for n in range(12))
    found = take(state, {"map": maps_of(state)}, "map", {"source": "lines", "lines": lines})
    assert found.answer["texts"] == lines.splitlines()
    assert list(found.answer["maps"]) == list(found.models) == [folder.name for folder in folders[:2]]
    head, *rows = rows_of(as_csv(found))
    assert head == ["model", "sentence", "label", "group", "x", "y"]
    assert [row[:3] for row in rows] == [
        [folder.name, line, ""] for folder in folders[:2] for line in lines.splitlines()
    ]
    assert [[float(row[4]), float(row[5])] for row in rows] == [
        point for drawn in found.answer["maps"].values() for point in drawn["xy"]
    ]
    assert json.loads(as_json(found))["answer"] == found.answer


def test_a_pair_is_taken_with_its_percentiles(bert_folder, tmp_path) -> None:
    from cse.app.export.section import take
    from cse.app.sections.similarity import placed
    from cse.app.state.app_state import open_state

    folder = write_model(tmp_path / "m;=1+1", bert_folder, "simcse")
    state = open_state([str(folder)], ())
    pair = {"s1": "the dog", "s2": "the cat"}
    shown = placed(state, **pair)[0]["m;=1+1"]
    found = take(state, {"similarity": lambda s1, s2: {"m;=1+1": shown.cosine}}, "similarity", pair)
    assert rows_of(as_csv(found)) == [
        ["first", "second", "model", "cosine", "percentile"],
        ["the dog", "the cat", "m;=1+1", repr(shown.cosine), repr(shown.percentile)],
    ]
    assert json.loads(as_json(found))["percentiles"] == {"m;=1+1": shown.percentile}


def shell_answer(code: str) -> object:
    """The output of the commands after the last `data:`."""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "event: complete" in done.stdout, done.stdout
    return json.loads(done.stdout.rpartition("data: ")[2])[0]


def test_every_table_is_a_result_of_a_tab_with_the_inputs_that_its_endpoint_needs(monkeypatch) -> None:
    offered: list[Take] = []
    monkeypatch.setattr("cse.app.page.take_section", lambda state, answers, takes: offered.extend(takes))
    state = open_state(["promptbert"], [])
    page(state, Trainings(OWN))
    with gr.Blocks():
        answers = {**add_endpoints(state), **page_answers(state, Trainings())}
    known = {name: inspect.signature(answer).parameters for name, answer in answers.items()}
    assert {take.endpoint for take in offered} == TABLES.keys()
    for take in offered:
        needed = {name for name, each in known[take.endpoint].items() if each.default is each.empty}
        assert needed <= take.inputs.keys(), take.label


def test_the_code_of_every_tab_repeats_what_was_taken(tmp_path_factory, tmp_path, bert_folder, monkeypatch) -> None:
    """Both forms, run against the app: what they print is the answer that was taken away."""
    import gradio_client

    client = cache(gradio_client.Client)  # each begins by reading the whole page
    monkeypatch.setattr("gradio_client.Client", client)
    folders = write_models(tmp_path_factory.mktemp("taken"), bert_folder)
    given = {
        "similarity": {"s1": HOSTILE, "s2": "the cat is sad"}, "words": {"s1": "the dog", "s2": "a 'cat'"},
        "pairs": {"lines": "the dog\nthe cat\n\"a man\""},
        "search": {"query": HOSTILE, "k": 3, "corpus": "demo", "threshold": 0.5, "key": ""},
        "tokens": {"sentence": HOSTILE, "k": 3, "share": 0.5},
        "changes": {"sentence": "the dog is happy.", "variants": f"a cat\n{HOSTILE}"},
        "map": {
            "source": "lines", "lines": "\n".join(f"the dog {n}" for n in range(12)), "most": 100, "seed": 3,
            "groups": 4, "corpus": "demo", "key": "",
        },
        "disagreements": {
            "source": "lines", "lines": "a | b\nthe dog | a cat\nrain | sun", "corpus": "demo", "key": "",
        },
        "template": {"sentence": "a dog", "template": '[X] "is" [MASK] .', "k": 2},
        "xray": {"s1": "the dog", "s2": "the cat", "off": [1, 2]}, "results": {"task": "sts"}, "ledger": {},
        "attention": {"sentence": HOSTILE},
        "duplicates": {"model": "promptbert", "corpus": "demo", "nines": 4.0, "keep": "longest", "page": 1, "key": ""},
    }  # fmt: skip
    assert given.keys() == TABLES.keys() - {*PAGE_ONLY}
    root = write_model(tmp_path_factory.mktemp("more") / "extra", bert_folder, "simcse", seed=5).parent
    with serving([str(folder) for folder in (*folders[1:3], folders[-1])], root=root) as url:
        shown = client(url, verbose=False)
        results = [
            Taken(endpoint, inputs, {}, shown.predict(**inputs, api_name=f"/{endpoint}"))
            for endpoint, inputs in given.items()
        ]
        shown.predict("extra", api_name="/add_model")  # which other sessions do not have
        with_added = shown.predict(**given["similarity"], api_name="/similarity")
        assert with_added.keys() - results[0].answer.keys() == {"extra"}
        results.append(Taken("similarity", given["similarity"], {}, with_added, ("extra",)))
        lines = [f"the dog {number} is sad" for number in range(30)]
        (tmp_path / "texts.txt").write_text("\n".join([*lines, ""]))
        key = shown.predict(lines, api_name="/texts")["key"]
        done = 0
        while done < 3:  # with the added one; the last model is damaged
            time.sleep(0.2)
            done = [each["done"] for each in shown.predict([], key=key, api_name="/texts")["models"].values()].count(30)
        of_own = {**given["search"], "corpus": "own"}
        answer = shown.predict(**{**of_own, "key": key}, api_name="/search")
        own = Taken("search", of_own, {}, answer, ("extra",), own=True)
        with pytest.raises(ValueError, match=r"curl does not send your texts; take Python, .* texts\.txt"):
            curl_code(own, url)
        for taken in results:
            assert {len(row) for row in rows_of(as_csv(taken))} == {len(TABLES[taken.endpoint].columns)}
            assert near(shell_answer(curl_code(taken, url)), taken.answer), taken.endpoint
        results.append(own)
        monkeypatch.chdir(tmp_path)
        client.cache_clear()  # a visitor who has added no model yet
        for taken in results:
            if taken.added:
                client.cache_clear()
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(python_code(taken, url), {})
            assert near(json.loads(said.getvalue()), taken.answer), taken.endpoint


def near(ours: object, theirs: object) -> bool:
    """Equal, but for the last digits of numbers, which batches of another size change."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(near(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(near, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, (int, float)):
        return ours == pytest.approx(theirs, abs=1e-5)
    return ours == theirs
