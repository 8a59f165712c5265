"""What is taken away: every form holds the whole answer, is safe to open, and its code repeats it."""

import csv
import io
import json
import subprocess
import sys

import pytest
from app_models import GOOD, MARKUP, serving, write_model, write_models

from ui.corpora import Corpus
from ui.takeaway import Taken, as_csv, as_json, as_report, curl_code, python_code, safe, table

HOSTILE = '=HYPERLINK("http://x")\'; rm -rf ~ $(id) `id` </script><script>alert(1)</script>\n-2+3 é'
TAKEN = Taken(
    "tokens",
    {"sentence": HOSTILE, "k": 2},
    {MARKUP: "0123456789ab", "broken": "ba9876543210"},
    {
        MARKUP: {"before": [["+cat", 1 / 3], ["@dog", -0.25]], "after": [], "note": None},
        "broken": {"error": "-damaged"},
    },
)
# Gradio 6.31.0's own statistics use what pandas 3 is about to drop.
GRADIO = (
    "ignore:'future.no_silent_downcasting' is deprecated", "ignore:The copy keyword is deprecated"
)  # fmt: skip


def rows_of(text: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text)) if not row[0].startswith("#")]


def test_json_holds_every_number_and_where_it_comes_from() -> None:
    found = json.loads(as_json(TAKEN))
    assert found["answer"] == TAKEN.answer
    assert (found["inputs"], found["models"], found["version"]) == (TAKEN.inputs, TAKEN.models, "0.1.0")


def test_a_spreadsheet_gets_a_table_and_no_formula() -> None:
    text = as_csv(TAKEN)
    head, *rows = rows_of(text)
    assert head == ["model", "part 2", "part 3", "1", "2", "value", "error"]
    assert rows == [
        [MARKUP, "before", "1", "'+cat", repr(1 / 3), "", ""],
        [MARKUP, "before", "2", "'@dog", "-0.25", "", ""],
        [MARKUP, "note", "", "", "", "", ""],
        ["broken", "", "", "", "", "", "'-damaged"],
    ]
    comments = [row for row in csv.reader(io.StringIO(text)) if row[0].startswith("#")]
    assert all(len(row) == 1 for row in comments)
    assert json.loads(comments[2][0].removeprefix("# inputs: ")) == TAKEN.inputs
    for cell in ("=1", "+1", "-1", "@a", "\t=1", "\r=1", " =1", "\n=1"):
        assert safe(cell) == f"'{cell}"
    assert [safe(cell) for cell in (-1.5, "a=1", "1-2", "")] == [-1.5, "a=1", "1-2", ""]


def test_tables_keep_lists_models_and_matrices_apart() -> None:
    assert table({"a": 0.5, "b": 0.25}, {"a": "", "b": ""}) == [["model", "value"], ["a", 0.5], ["b", 0.25]]
    found = table({"texts": ["x", "y"], "models": {"a": {"cosines": [[1, 0.5], [0.5, 1]]}}}, {"a": ""})
    assert found == [
        ["part 1", "part 2", "part 3", "part 4", "value", "1", "2"],
        ["texts", 1, "", "", "x", "", ""],
        ["texts", 2, "", "", "y", "", ""],
        ["models", "a", "cosines", 1, "", 1, 0.5],
        ["models", "a", "cosines", 2, "", 0.5, 1],
    ]
    assert table({}, {}) == [[]]


def test_a_report_stands_alone_and_holds_no_markup_of_a_visitor() -> None:
    page = as_report(TAKEN, "http://127.0.0.1:7860/")
    assert "<script" not in page
    assert "<img" not in page
    assert not [word for word in ("src=", "href=", "url(", "@import") if word in page.replace("img src=x", "")]
    assert "default-src 'none'" in page
    for text in ("&lt;script&gt;alert(1)", str(1 / 3), "0123456789ab", "part 2", "curl"):
        assert text in page


def test_the_models_named_are_those_that_answered_and_all_inputs_are_named(bert_folder, tmp_path) -> None:
    from ui.models import columns
    from ui.state import open_state
    from ui.take_section import take

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
    from ui.map_api import maps_of
    from ui.state import open_state
    from ui.take_section import take

    folders = write_models(tmp_path, bert_folder)
    state = open_state([str(folder) for folder in folders[:2]], ())
    lines = "\n".join(f"the dog {n}" for n in range(12))
    found = take(state, {"map": maps_of(state)}, "map", {"source": "lines", "lines": lines})
    assert found.answer["texts"] == lines.splitlines()
    assert list(found.answer["maps"]) == list(found.models) == [folder.name for folder in folders[:2]]
    assert len([row for row in rows_of(as_csv(found)) if "xy" in row]) == 2 * 12
    assert json.loads(as_json(found))["answer"] == found.answer


def shell_answer(code: str) -> object:
    """What the commands print after the last `data:`."""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "event: complete" in done.stdout, done.stdout
    return json.loads(done.stdout.rpartition("data: ")[2])[0]


@pytest.mark.filterwarnings(*GRADIO)
def test_the_code_of_every_tab_repeats_what_was_taken(tmp_path_factory, bert_folder) -> None:
    """Both forms, run against the app: what they print is the answer that was taken away."""
    from gradio_client import Client

    from ui.take_section import PARTS

    folders = write_models(tmp_path_factory.mktemp("taken"), bert_folder)
    given = {
        "similarity": {"s1": HOSTILE, "s2": "the cat is sad"}, "words": {"s1": "the dog", "s2": "a 'cat'"},
        "pairs": {"lines": "the dog\nthe cat\n\"a man\""},
        "search": {"query": HOSTILE, "k": 3, "corpus": "demo", "threshold": 0.5},
        "tokens": {"sentence": HOSTILE, "k": 3, "share": 0.5}, "changes": {"sentence": "the dog is happy."},
        "map": {"source": "lines", "lines": "\n".join(f"the dog {n}" for n in range(12)), "per_topic": 10, "seed": 3},
        "disagreements": {"source": "lines", "lines": "a | b\nthe dog | a cat\nrain | sun"},
        "template": {"sentence": "a dog", "template": '[X] "is" [MASK] .', "k": 2},
        "xray": {"s1": "the dog", "s2": "the cat", "off": [1, 2]}, "results": {"task": "sts"}, "ledger": {},
    }  # fmt: skip
    assert {part[1] for tab in PARTS.values() for part in [row[1:] for row in tab]} <= given.keys()
    root = write_model(tmp_path_factory.mktemp("more") / "extra", bert_folder, "simcse", seed=5).parent
    with serving([str(folder) for folder in (*folders[: len(GOOD)], folders[-1])], root=root) as url:
        shown = Client(url, verbose=False)
        results = [
            Taken(endpoint, inputs, {}, shown.predict(**inputs, api_name=f"/{endpoint}"))
            for endpoint, inputs in given.items()
        ]
        shown.predict("extra", api_name="/add_model")  # which other sessions do not have
        with_added = shown.predict(**given["similarity"], api_name="/similarity")
        assert with_added.keys() - results[0].answer.keys() == {"extra"}
        results.append(Taken("similarity", given["similarity"], {}, with_added, ("extra",)))
        for taken in results:
            assert near(shell_answer(curl_code(taken, url)), taken.answer), taken.endpoint
        once = "\n".join(python_code(taken, url) for taken in results)  # one process: the client's import takes seconds
        done = subprocess.run([sys.executable, "-c", once], capture_output=True, text=True, timeout=300, check=True)
        for line, taken in zip(done.stdout.splitlines(), results, strict=True):
            assert near(json.loads(line), taken.answer), taken.endpoint


def near(ours: object, theirs: object) -> bool:
    """Equal, but for the last digits of numbers, which batches of another size change."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(near(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(near, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, (int, float)):
        return ours == pytest.approx(theirs, abs=1e-5)
    return ours == theirs
