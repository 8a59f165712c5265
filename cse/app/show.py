"""Everything that the page makes of a result, once for all results: answer, HTML, endpoint, and part of the page."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import gradio as gr
from gradio.components.plot import PlotData
from markupsafe import Markup

import cse
from cse.app import html
from cse.app.corpus.corpora import DEMO, DEMO_KEY, OWN_KEY
from cse.app.events import HIDDEN, LANES, PRIVATE, PROGRESS, QUICK, Linked, emptied, refusing, reporter
from cse.app.html import heading, settings
from cse.app.html import result as result_html
from cse.app.models.models import Column, checkpoint_of
from cse.app.result import TYPES, Ask, Result, equal_starts
from cse.app.state import Session, choice_mark, chosen_corpus, open_session
from cse.models.names import BUNDLED_NAMES

if TYPE_CHECKING:
    import pandas as pd

    from cse.app.state import AppState
    from cse.app.top import Top

FIRST = DEMO / "first"  # first answers of the bundled models, `<key>.parquet`; `app.py --precompute` writes them
FACTS = b"cse"  # the key of an answer's facts beside its table in the file
ABOUTS = {  # of what every result is asked for
    "corpus": '"demo", the name of a corpus the app was started with, or "own" for the texts under the key.',
    "key": 'for "own" the key that /texts answers.',
    "models": 'names of models to ask, as /models lists them, "NAME (before)" for one before its training; [] for all.',
}
NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD
NO_ANSWER = "No model has an answer."
OVERTAKEN = "overtaken"  # begins the mark of no choice


@dataclass(frozen=True)
class Answer:
    """A result's table with what it came from.

    `models` are the fingerprints of those that were `asked` and answered, `failed` the reasons of the others, of which
    the `waiting` will answer, as will those that are still `reading` the corpus and were not asked. `corpus` is
    its key, `corpus_label` and `reference` are names of corpora; `own` says that the corpus is the visitor's, whose
    texts a program has to send, with `labels`, the name of their column.
    """

    result: Result
    frame: pd.DataFrame
    models: dict[str, str]
    failed: dict[str, str] = field(default_factory=dict)
    waiting: Sequence[str] = ()
    reading: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    corpus: str = DEMO_KEY
    corpus_label: str = "the demo corpus"
    reference: str = ""
    own: bool = False
    labels: str = ""
    added: tuple[str, ...] = ()
    seeds: dict[str, int] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    version: str = cse.__version__

    def json(self) -> Any:
        """Return what the endpoint answers."""
        return self.result.with_failures(self.result.answer(self.frame), self.failed)


def answer(result: Result, session: Session) -> Answer:
    """Compute a result. Raises ValueError, which may name a field, if it has no answer."""
    frame = result.frame(session)
    opened = {column.name: checkpoint_of(column.model) for column in session.columns if column.name in session.models}
    seeds = {name: known[1].training.get("settings", {}).get("seed") for name, known in opened.items() if known}
    corpus = session.corpus
    return Answer(
        result, frame, session.models, session.failed, session.waiting, session.reading, tuple(session.notes),
        corpus.key, session.name_of(corpus), session.name_of(session.reference) if result.reads_corpus else "",
        corpus.key == OWN_KEY, corpus.label_name if corpus.key == OWN_KEY and corpus.labels else "", session.added,
        {name: seed for name, seed in seeds.items() if seed is not None},
        tuple(column.name for column in session.columns),
    )  # fmt: skip


def page_html(found: Answer) -> str:
    """Return the answer as the page shows it: failures, notes, the sentence and the template of the result."""
    result, frame = found.result, found.frame
    inside, sentence, waiting = Markup(), "", [*found.waiting, *found.reading]
    if len(frame):
        view, module = result.view(frame), type(result).__module__.rpartition(".")[2]
        inside = html.drawn(module, result.key, reference=found.reference, waiting=waiting, **view)
        inside = inside or html.drawn("macros", "whole_frame", frame=frame)
        sentence = "" if waiting else result.says(frame)  # what all agree on is known once all have answered
    return html.drawn(
        "macros", "result", failed=found.failed, waiting=found.waiting, reading=found.reading,
        notes=(*found.notes, *equal_starts(found.models)), sentence=sentence,
        inside=inside, empty=not len(frame) and not found.failed,
    )  # fmt: skip


def plot_updates(found: Answer | None, kind: type[Result]) -> list[Any]:
    """Return an update for each chart of a result, and for their fold; those that it does not have are hidden."""
    specs = found.result.charts(found.frame) if kind.plots and found is not None and len(found.frame) else []
    drawn = [gr.update(value=plot_value(spec), visible=True) for spec in specs]
    drawn += [gr.update(value=None, visible=False)] * (kind.plots - len(drawn))
    return [*drawn, *([gr.update(visible=bool(specs))] if kind.chart_fold else [])]


def plot_value(spec: Mapping[str, Any]) -> PlotData:
    """Return a chart as Gradio's component takes it."""
    return PlotData(type="altair", plot=json.dumps(spec, allow_nan=False))


def endpoint(state: AppState, kind: type[Result]) -> Callable[..., Any]:
    """Return the function that programs call, with a signature and a description made of what the result asks for."""
    asks = kind.asks()
    names = [*asks, *(("corpus", "key") if kind.reads_corpus else ()), "models"]
    defaults = {**kind().inputs(), "corpus": DEMO_KEY, "key": "", "models": []}
    types = {**{name: TYPES[ask.kind] for name, ask in asks.items()}, "corpus": str, "key": str, "models": list[str]}

    def call(*args: Any, **named: Any) -> Any:
        values = {**defaults, **dict(zip(names, args, strict=False)), **named}
        return ask(state, kind, values).json()

    parameters, required = [], True
    for name in names:  # the first texts have no default
        required = required and name in asks and asks[name].kind == "text" and not asks[name].may_be_empty
        default = inspect.Parameter.empty if required else defaults[name]
        parameters.append(inspect.Parameter(name, NAMED, annotation=types[name], default=default))
    call.__signature__ = inspect.Signature(parameters, return_annotation=Any)  # type: ignore[attr-defined]
    call.__annotations__ = {name: types[name] for name in names}
    abouts = {**{name: ask.about for name, ask in asks.items()}, **ABOUTS}
    call.__doc__ = "\n".join([kind.about(), "", "Args:", *(f"    {name}: {abouts[name]}" for name in names)])
    call.__name__ = kind.key
    return call


def ask(state: AppState, kind: type[Result], values: Mapping[str, Any], **options: Any) -> Answer:
    """Answer for the values of a program, a file or a lesson. Raises FieldError for a wrong one."""
    result = kind.of(values)
    corpus = values.get("corpus", DEMO_KEY) if kind.reads_corpus else DEMO_KEY
    session = open_session(state, corpus, values.get("key", ""), values.get("models"), **options)
    return answer(result, session)


@dataclass(frozen=True)
class Shown:
    """A result's part of the page: the fields by the names of its inputs, its run, and its part of the address.

    `answered` is the mark of the choice that it last answered for. An `unanswered` part has no first answer and
    computes it when the page is loaded, or when its `fold` is opened, which hides it before.
    """

    kind: type[Result]
    fields: dict[str, gr.components.Component]
    linked: Linked
    answered: gr.State | None = None
    unanswered: bool = False
    fold: gr.Accordion | None = None


def component(ask: Ask, value: Any) -> gr.components.Component:
    """Return the component of an input."""
    if ask.kind in ("text", "lines"):
        lines = 6 if ask.kind == "lines" else 1
        least = 320 if lines > 1 else 200  # on a phone nothing stands beside a list
        return gr.Textbox(value, label=ask.label, lines=lines, placeholder=ask.such_as, scale=4, min_width=least)
    if ask.kind == "choice":
        return gr.Dropdown(list(ask.choices), value=value, label=ask.label, min_width=160)
    return gr.Slider(ask.low, ask.high, value, step=ask.step, label=ask.label, min_width=290)


def section(
    state: AppState,
    kind: type[Result],
    top: Top,
    first: Answer | None = None,
    headed: bool = True,
    shared: Shown | None = None,
) -> Shown:
    """Add the part of the page: fields, examples, the answer and its charts; the first answer is there at once.

    Inputs that a `shared` part has, too, are read from its fields; the answer goes when they are edited. The first part
    of a place, and one in a fold, are not `headed` for the eye.
    """
    if headed:
        heading(kind.title, words=kind.words)
    else:  # screen readers list it all the same
        unseen = f'<h2 class="cse-hidden">{html.escape(kind.title)}</h2>'
        gr.HTML(unseen, apply_default_css=False, elem_classes="cse-roomless")
    asks = kind.asks()
    read = {name: shared.fields[name] for name in asks if shared and name in shared.fields}
    fields, button = form(state, kind, read, (first.result if first else kind()).inputs(), top)
    output = result_html(kind.key, page_html(first) if first else "")
    drawn = plot_updates(first, kind)
    fold = None
    if kind.chart_fold:
        fold = gr.Accordion(kind.chart_fold, open=False, visible=drawn[-1]["visible"], elem_classes="cse-folded")
    with fold or nullcontext():
        plots = [
            gr.Plot(update["value"], show_label=False, visible=update["visible"], elem_classes="cse-plot")
            for update in drawn[: kind.plots]
        ]
    outputs: list[Any] = [output, *plots, *filter(None, [fold])]
    own = {name: field for name, field in fields.items() if name not in read}
    ordered, choice = {**own, **read}, {"corpus": top.corpus, "models": top.models, "key": top.key}
    by_error = {asks[name].name: field for name, field in ordered.items()}
    by_error |= {"The corpus": top.corpus, "The models": top.models, "The key": top.key}
    known = choice_mark(state, DEMO_KEY, [column.name for column in state.models.own], "") if first else ""
    answered = gr.State(known)
    runs = refusing(handler(state, kind, list(ordered)), by_error, [*outputs, answered], overtaken=OVERTAKEN)
    texts = [each for each in own.values() if isinstance(each, gr.Textbox)]
    triggers = [each.submit for each in texts] + ([button.click] if button is not None else [])
    quiet: list[Any] = [each.input for each in own.values() if isinstance(each, (gr.Dropdown, gr.Radio))]
    if typed := [each for each in own.values() if isinstance(each, (gr.Textbox, gr.Slider))]:
        for name, each in own.items():
            each.elem_id = each.elem_id or f"{kind.key}-{name}"
        js = f"cse.live({json.dumps(','.join(f'#{each.elem_id}' for each in typed))}, trigger)"
        hook = gr.HTML("", html_template="", js_on_load=js, visible="hidden", apply_default_css=False)
        quiet.append(hook.submit)
    lane = {**lane_of(kind), "show_progress_on": output}
    # By default Gradio drops what is asked while an answer is under way: a visitor who types on would keep the old one.
    gr.on([*triggers, *quiet], *runs, trigger_mode="always_last", **lane)
    empty = json.dumps([emptied(each) for each in outputs])
    for source in read.values():
        source.change(None, None, outputs, js=f"() => {empty}", **HIDDEN)  # type: ignore[attr-defined]
    linked = Linked([asks[name].link or name for name in own], runs, triggers, lane, quiet)
    return Shown(kind, {**ordered, **choice}, linked, answered, kind.live and first is None)


def form(
    state: AppState,
    kind: type[Result],
    read: Mapping[str, gr.components.Component],
    initial: Mapping[str, Any],
    top: Top,
) -> tuple[dict[str, gr.components.Component], gr.Button | None]:
    """Add the fields that are not `read` elsewhere, the button of a result that is not live, options and examples."""
    fields = dict(read)
    asks = {name: ask for name, ask in kind.asks().items() if name not in read}
    folded = {name: ask for name, ask in asks.items() if ask.folded}
    with gr.Row(equal_height=True, elem_classes="cse-fields"):
        fields |= {name: component(ask, initial[name]) for name, ask in asks.items() if name not in folded}
        button = None
        if not kind.live:
            button = gr.Button(kind.button, variant="primary", scale=0, min_width=110, elem_classes="cse-submit")
    with gr.Row(elem_classes="cse-tries", visible=bool(folded or kind.examples)):
        if folded:
            with settings(), gr.Row():
                fields |= {name: component(ask, initial[name]) for name, ask in folded.items()}
        if kind.examples:
            names, choice = [ask.link or name for name, ask in asks.items()], [top.corpus, top.key]
            drawn = partial(examples_html, state, kind, top.tab.id, names)
            tries = gr.HTML(drawn(DEMO_KEY, ""), apply_default_css=False, elem_classes="cse-examples")
            if kind.corpus_examples:
                top.changed.change(drawn, choice, tries, **QUICK)
    return {name: fields[name] for name in kind.asks()}, button


def examples_of(state: AppState, kind: type[Result], corpus: str, key: str) -> Mapping[str, tuple[Any, ...]]:
    """Return values of the first fields by their label: texts of the corpus, if it is there and not the demo."""
    if kind.corpus_examples and corpus != DEMO_KEY:
        with suppress(ValueError):
            texts = chosen_corpus(state, corpus, key).examples()
            turned = [(*texts[at:], *texts[:at])[: kind.corpus_examples] for at in range(len(texts))]
            return {values[0]: values for values in turned} or kind.examples
    return kind.examples


def examples_html(state: AppState, kind: type[Result], place: str, names: Sequence[str], corpus: str, key: str) -> str:
    """Return the links that fill the first fields, whose `names` the address has."""
    links = {
        label: urlencode({"tab": place, **dict(zip(names, values, strict=False))})
        for label, values in examples_of(state, kind, corpus, key).items()
    }
    return html.drawn("macros", "examples", links=links)


def handler(state: AppState, kind: type[Result], names: Sequence[str]) -> Callable[..., Any]:
    """Return the function that answers on the page; its inputs are those of the `names` and the choices of the row."""
    given = [*names, "corpus", "models", "key", "progress"]

    def run(*args: Any) -> Any:
        values = dict(zip(given, args, strict=False))
        progress = values.pop("progress", PROGRESS)
        mark = choice_mark(state, *(values[name] for name in ("corpus", "models", "key")))  # before more vectors come
        found = ask(state, kind, values, report=reporter(progress))
        return [page_html(found), *plot_updates(found, kind), mark]

    parameters = [inspect.Parameter(name, NAMED) for name in given[:-1]]
    progress = inspect.Parameter("progress", NAMED, default=PROGRESS)  # Gradio adds what has this default
    run.__signature__ = inspect.Signature([*parameters, progress])  # type: ignore[attr-defined]
    return run


def lane_of(kind: type[Result]) -> dict[str, Any]:
    """Return the options of a result's private events."""
    return PRIVATE if kind.lane == "encode" else {**HIDDEN, **LANES[kind.lane]}


def read_first(state: AppState, kind: type[Result]) -> Answer | None:
    """Return the shipped first answer of the bundled models; None if the page has others and has to compute it."""
    import pyarrow.parquet as pq

    models, path = {column.opened_by for column in state.models.own}, FIRST / f"{kind.key}.parquet"
    if models != {Column("", name).opened_by for name in BUNDLED_NAMES} or not path.is_file():
        return None
    table = pq.read_table(path)
    facts = json.loads(table.schema.metadata[FACTS])
    return Answer(
        kind.of(facts["inputs"]), table.to_pandas(), facts["models"], notes=tuple(facts["notes"]),
        reference=facts["reference"],
    )  # fmt: skip


def write_first(state: AppState, kind: type[Result]) -> Path:
    """Write the first answer of a result, as the app computes it. Raises ValueError if a model fails."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = answer(kind(), open_session(state))
    for name, reason in found.failed.items():
        raise ValueError(f"{name}: {reason}")
    table = pa.Table.from_pandas(found.frame, preserve_index=False)
    facts = {
        "inputs": found.result.inputs(), "models": found.models, "notes": found.notes, "reference": found.reference
    }  # fmt: skip
    FIRST.mkdir(exist_ok=True)
    path = FIRST / f"{kind.key}.parquet"
    metadata = {**(table.schema.metadata or {}), FACTS: json.dumps(facts, ensure_ascii=False).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")
    return path
