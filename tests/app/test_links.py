"""An address restores what it was written for, and nothing that a component cannot have."""

from collections.abc import Callable
from types import SimpleNamespace

import gradio as gr
import pytest

from cse.app.forms.events import Run
from cse.app.forms.links import Linked, given, restorer

CORPUS = gr.Dropdown([("Demo", "demo"), ("Yours", "own")], value="demo", label="Corpus")


def skipped(value: object) -> bool:
    return value == gr.skip()


def test_a_value_of_the_address_is_taken_only_where_the_component_can_have_it():
    slider, number = gr.Slider(1, 50, 5, step=1), gr.Number(0, minimum=0, maximum=10)
    radio = gr.Radio([("Demo", "demo"), ("Mine", "lines")], value="demo")
    assert (given(slider, "7"), given(number, "2.5"), given(radio, "lines")) == (7, 2.5, "lines")
    assert given(gr.Textbox(), "<b>plain</b>") == "<b>plain</b>"
    boxes = gr.CheckboxGroup([("1", 1), ("2", 2), ("3", 3)])
    assert (given(boxes, "1,3"), given(boxes, "")) == ([1, 3], [])
    assert skipped(given(boxes, "1,4"))
    for component, text in ((slider, "51"), (slider, "x"), (slider, "nan"), (number, "-1"), (radio, "etc")):
        assert skipped(given(component, text)), text


def test_only_the_tab_that_the_address_names_is_filled_and_run():
    with gr.Blocks():
        query, k, other = gr.Textbox(), gr.Slider(1, 50, 5), gr.Textbox()
    parts = [
        ("search", Linked(("q",), Run(print, (query,), ()), ())),
        ("search", Linked(("k",), Run(print, (k,), ()), ())),
        ("tokens", Linked(("q",), Run(print, (other,), ()), ())),
        ("results", Linked((), Run(print, (), ()), ())),
    ]
    opened = asking(restorer(parts, {"corpus": CORPUS}))
    assert opened(tab="search", q="cats", k="9") == ["search", "cats", 9, None, "run", "run", None]
    assert opened(tab="search", k="9") == ["search", None, 9, None, None, "run", None]  # one of the tab's two parts
    assert opened(tab="tokens", q="cats") == ["tokens", None, None, "cats", None, None, "run"]
    assert opened(tab="results", q="cats") == ["results", *[None] * 6]
    assert opened(tab="search") == ["search", *[None] * 6]
    assert opened(tab="nowhere", q="cats") == opened() == [None] * 7


def asking(restore) -> Callable[..., list]:
    """The inputs and runs of a handler for an address with three named parts."""

    def opened(**address: str) -> list:
        tabs, _, *rest = restore(SimpleNamespace(query_params=address))
        shown = None if skipped(tabs) else tabs["selected"] if isinstance(tabs, dict) else tabs.selected
        values = [None if skipped(value) else value for value in rest]
        return [shown, *values[:-3], *(value and "run" for value in values[-3:])]

    return opened


def test_back_shows_all_of_a_tab_as_it_was_and_without_a_tab_the_first_one():
    with gr.Blocks():
        query, k, other = gr.Textbox("dogs"), gr.Slider(1, 50, 5), gr.Textbox("birds")
    parts = [
        ("search", Linked(("q", "k"), Run(print, (query, k), ()), ())),
        ("search", Linked(("seed",), Run(print, (gr.Number(7),), ()), ())),
        ("tokens", Linked(("q",), Run(print, (other,), ()), ())),
    ]
    back = asking(restorer(parts, {"corpus": CORPUS}, back=True))
    assert back(tab="search", q="cats") == ["search", "cats", 5, 7, None, "run", "run", None]
    assert back() == back(tab="nowhere", pin="1") == ["search", "dogs", 5, 7, None, "run", "run", None]
    assert back(tab="tokens") == ["tokens", None, None, None, "birds", None, None, "run"]


def test_the_corpus_of_the_address_is_chosen_in_the_bar_and_goes_to_the_parts_that_take_it():
    with gr.Blocks():
        query, k, word = gr.Textbox("dogs"), gr.Slider(1, 50, 5), gr.Textbox()
    parts = [
        ("search", Linked(("q", "k"), Run(print, (query, k, CORPUS), ()), ())),
        ("search", Linked(("word",), Run(print, (word,), ()), ())),
    ]
    restore = restorer(parts, {"corpus": CORPUS})

    def opened(**address: str) -> list:
        return [None if skipped(value) else value for value in restore(SimpleNamespace(query_params=address))[1:]]

    chosen, *values, (number, kept), other = opened(tab="search", q="cats", corpus="own")
    assert (chosen, values, kept, other) == ("own", ["cats", None, None], {0: "cats", 2: "own"}, None)
    again, kept = opened(tab="search", k="7")[-2]
    assert (again > number, kept) == (True, {1: 7})  # a run of its own
    with pytest.warns(UserWarning, match="This address asks for &lt;b&gt; as the corpus, which is not here"):
        assert opened(tab="search", q="cats", corpus="<b>") == [None] * 6
    assert restorer(parts, {"corpus": CORPUS}, back=True)(SimpleNamespace(query_params={}))[1] == "demo"
