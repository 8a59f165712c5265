"""An address restores what it was written for, and nothing that a component cannot have."""

from types import SimpleNamespace

import gradio as gr

from ui.events import Run
from ui.links import Linked, given, restorer


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
    restore = restorer(parts)

    def opened(**address: str) -> list:
        tabs, *rest = restore(SimpleNamespace(query_params=address))
        shown = None if skipped(tabs) else tabs["selected"] if isinstance(tabs, dict) else tabs.selected
        return [shown, *(None if skipped(value) else value for value in rest)]

    assert opened(tab="search", q="cats", k="9") == ["search", "cats", 9, None, True, True, None]
    assert opened(tab="search", k="9") == ["search", None, 9, None, None, True, None]  # one of the tab's two parts
    assert opened(tab="tokens", q="cats") == ["tokens", None, None, "cats", None, None, True]
    assert opened(tab="results", q="cats") == ["results", *[None] * 6]
    assert opened(tab="search") == ["search", *[None] * 6]
    assert opened(tab="nowhere", q="cats") == opened() == [None] * 7
