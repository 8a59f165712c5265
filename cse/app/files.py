"""Share: tables, figures in the sizes of a paper, and code that repeats an answer; and the form that saves them."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import gradio as gr
import numpy as np
import pandas as pd

from cse.app import validation
from cse.app.charts import LOOK, PIXELS, entry_width
from cse.app.events import HIDDEN, QUICK
from cse.app.html import alert, file_stem, file_value, printed, saved_file
from cse.app.models.models import UNNAMED
from cse.app.models.naming import title
from cse.app.result import Result, equal_starts, plain, records
from cse.app.show import NO_ANSWER, Answer, Shown, ask, lane_of
from cse.app.top import stem_of
from cse.corpus.output import guarded
from cse.errors import command_line

if TYPE_CHECKING:
    from cse.app.state import AppState

MAX_QUOTE = 90  # characters of an input in a caption
MAX_ROWS = 40  # of a LaTeX table on one page
MAX_CHARACTERS, WRAPPED = 60, 32  # of a cell in one line of a LaTeX table, and of the lines of a longer one
LINE, BETWEEN = 80, 2.4  # characters in a line of an article, and between two columns
MAX_CELL = 200  # characters of a cell in a paper
POINTS_PER_MM = 72 / 25.4
WIDTHS = {"one column (77 mm)": 77, "two columns (160 mm)": 160}
MM_PER_ENTRY, FACET_GAP = 40, 17  # of a legend; points between the panels of a figure
FONT = {"labelFontSize": 8, "titleFontSize": 8}  # points
NO_ROWS = "The answer has no rows, so there is nothing to save."
MARKED = re.compile(r"(\*{1,2})([^*]+)\1( ± [\d.]+)?")  # a cell in bold or italics, its deviation not
SCORE = re.compile(r"(≈ )?\*{0,2}[-+\u2212]?[\d.,]+\*{0,2}( ± [\d.]+)?|")
LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "`": r"\textasciigrave{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}", "[": "{[}", "*": "{*}",
    "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "≥": r"$\geq$", "≈": r"$\approx$", "\N{MINUS SIGN}": "$-$",
    "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
MARKDOWN = re.compile(r"([\\`*_\[\]|<>~$&])")
# XML has no place for these characters, and a cell has none for the end of a line.
UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")
SENDING = """with open("corpus.csv", encoding="utf-8-sig", newline="") as file:  # as the page's Corpus saves it
    columns, *rows = csv.reader(file)
texts = [row[1] for row in rows]
labels = {labels}
key = client.predict(texts, labels, models={models!r}, api_name="/texts")["key"]
while any(
    each["done"] < len(texts) and not each["error"]
    for each in client.predict([], key=key, api_name="/texts")["models"].values()
):
    time.sleep(1)
"""
LABELS = "[row[columns.index({!r})] for row in rows]"


def one_line(text: Any, most: int) -> str:
    """Return a text in one line of at most `most` characters."""
    whole = UNFIT.sub(" ", str(text)).strip()
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def caption(answer: Answer) -> str:
    """Return the caption of a table or figure: the result, its inputs, and the models with seed and fingerprint."""
    defaults, inputs = type(answer.result)().inputs(), []
    for name, field in answer.result.asks().items():
        value = getattr(answer.result, name)
        if value not in ("", None) and field.kind != "lines" and not (field.folded and value == defaults[name]):
            label = next((label for label, choice in field.choices if choice == value), "")
            shown = label or (f"“{one_line(value, MAX_QUOTE)}”" if isinstance(value, str) else value)
            inputs.append(f"{field.label.lower()} {shown}")
    models = [
        f"{title(name)} ({f'seed {answer.seeds[name]}, ' if name in answer.seeds else ''}fingerprint {mark})"
        for name, mark in answer.models.items()
    ]
    heading = answer.result.title
    facts = [f"{heading.rstrip('?')}: {', '.join(inputs)}." if inputs else f"{heading.rstrip('?.')}."]
    if answer.result.reads_corpus:
        facts.append(f"Corpus: {one_line(answer.corpus_label, MAX_QUOTE)}.")
    if models:
        facts += [f"Models: {'; '.join(models)}.", *equal_starts(answer.models)]
    return " ".join([*facts, *facts_of(answer), f"Computed by cse {answer.version}."])


def facts_of(answer: Answer) -> list[str]:
    """Return what the result says of its numbers; nothing of none."""
    return answer.result.facts(answer.frame) if len(answer.frame) else []


def flat(cell: Any) -> Any:
    """Return a cell as it is written to a file of text: a list as JSON."""
    return json.dumps(np.asarray(cell).tolist()) if isinstance(cell, (list, tuple, np.ndarray)) else cell


def as_csv(answer: Answer, address: str = "") -> str:
    """Return the frame as CSV, cells as they are."""
    return answer.frame.map(flat).to_csv(index=False, lineterminator="\n")


def as_sheet(answer: Answer, address: str = "") -> str:
    """Return the frame as CSV for a spreadsheet, in which no cell is a formula."""
    texts = answer.frame.map(lambda cell: guarded(cell) if isinstance(cell, str) else flat(cell))
    return texts.rename(columns=guarded).to_csv(index=False, lineterminator="\n")


def as_json(answer: Answer, address: str = "") -> str:
    """Return the frame as JSON, with what it came from and the reasons of failures."""
    corpus = answer.corpus_label if answer.result.reads_corpus else None
    facts = {
        "result": answer.result.key, "inputs": answer.result.inputs(), "corpus": corpus, "models": answer.models,
        "seeds": answer.seeds, "failed": answer.failed, "version": answer.version, "facts": facts_of(answer),
        "rows": records(answer.frame),
    }  # fmt: skip
    return json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n"  # dates


def as_parquet(answer: Answer, address: str = "") -> bytes:
    """Return the frame as Parquet."""
    return answer.frame.to_parquet(index=False)


def paper_cells(
    answer: Answer, escape: Callable[[str], str], bold: str, italics: str
) -> tuple[pd.DataFrame, list[bool], str]:
    """Return the result's sheet as texts of a paper, whether each column has numbers, and the caption."""
    looks = {"**": ("Bold", bold, answer.result.bold), "*": ("Italics", italics, answer.result.italics)}
    notes: set[str] = set()

    def cell(value: Any) -> str:
        if plain(value) is None:
            return "–"
        if isinstance(value, float):
            return printed("%.3f", value)
        text = one_line(value, MAX_CELL)
        text = text.replace("-", "\N{MINUS SIGN}") if SCORE.fullmatch(text) else text
        if marked := MARKED.fullmatch(text):
            name, look, meaning = looks[marked[1]]
            if meaning:  # or else it is a text of the corpus
                notes.add(f"{name}: {meaning}.")
                return look.format(escape(marked[2])) + escape(marked[3] or "")
        return escape(text)

    sheet = answer.result.sheet(answer.frame)
    shown = pd.DataFrame({name: [cell(value) for value in sheet[name].tolist()] for name in sheet.columns})
    values = [[value for value in sheet[name].tolist() if plain(value) is not None] for name in sheet]
    numbers = [all(isinstance(value, float) or SCORE.fullmatch(str(value)) for value in column) for column in values]
    shown = shown.rename(columns=lambda name: escape(one_line(str(name).replace("_", " "), MAX_CELL)))
    return shown, numbers, escape(" ".join([caption(answer), *sorted(notes)]))


def as_latex(answer: Answer, address: str = "") -> str:
    """Return the sheet as a LaTeX `table`, scaled to the line if it is wide; of many rows as a `longtable`.

    The first line names the packages that it needs.
    """

    def escape(text: str) -> str:  # it is typeset as it stands, and runs no command
        return "".join(LATEX.get(sign, sign) for sign in text)

    cells, numbers, words = paper_cells(answer, escape, r"\textbf{{{}}}", r"\textit{{{}}}")
    widest = [cells[name].str.len().max() for name in cells]
    kinds = ["r" if right else f"p{{{WRAPPED / LINE:.1f}\\linewidth}}" if width > MAX_CHARACTERS else "l"
             for right, width in zip(numbers, widest, strict=True)]  # fmt: skip
    long = len(cells) > MAX_ROWS
    table = cells.to_latex(
        index=False, escape=False, column_format="".join(kinds), caption=words, label=f"tab:{answer.result.key}",
        longtable=long,
    )  # fmt: skip
    packages = "booktabs,longtable" if long else "booktabs"
    table = table.replace("\\begin{table}\n", "\\begin{table}\n\\centering\n", 1)
    lengths = [min(WRAPPED, max(len(name), width)) + BETWEEN for name, width in zip(cells, widest, strict=True)]
    if sum(lengths) > LINE and not long:
        packages += ",graphicx"
        table = table.replace("\\begin{tabular}", "\\resizebox{\\linewidth}{!}{\\begin{tabular}", 1)
        table = table.replace("\\end{tabular}", "\\end{tabular}}", 1)
    return f"% \\usepackage{{{packages}}}\n{table}"


def as_markdown(answer: Answer, address: str = "") -> str:
    """Return the sheet in Markdown with the caption below it; no cell is markup, HTML or two cells."""

    def escape(text: str) -> str:
        return MARKDOWN.sub(r"\\\1", text)

    cells, numbers, words = paper_cells(answer, escape, "**{}**", "*{}*")
    rule = ["---:" if right else "---" for right in numbers]
    lines = [list(cells.columns), rule, *cells.itertuples(index=False, name=None)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{words}\n"


def values_sent(answer: Answer) -> dict[str, Any]:
    """Return the inputs of the endpoint that gave an answer, in its order, with an empty key."""
    if not answer.result.public:
        raise ValueError("No code repeats this result, which only your page has; save it as CSV or JSON instead.")
    corpus = {"corpus": answer.corpus, "key": ""} if answer.result.reads_corpus else {}
    return {**answer.result.inputs(), **corpus, "models": list(answer.models or answer.asked)}


def python_code(answer: Answer, address: str) -> str:
    """Return a program that asks the endpoint and prints its answer as JSON. Raises ValueError if none is public."""
    inputs = values_sent(answer)
    if answer.own and inputs.get("where"):
        raise ValueError(
            "The code sends your texts without the other columns, which the condition reads; take the condition away, "
            f"or search your file by: {command_line('search')}"
        )
    if UNNAMED in answer.added:
        raise ValueError("The code cannot open a model that only your page has; leave it out, or take CSV or JSON.")
    values = {name: repr(value) for name, value in inputs.items() if name != "key"}
    values |= {"key": "key"} if answer.own else {}
    sent = "".join(f"    {name}={value},\n" for name, value in values.items())
    added = "".join(f'client.predict({name!r}, api_name="/add_model")\n' for name in answer.added)
    imported, sending = "import json", ""
    if answer.own:
        imported = "import csv\nimport json\nimport time"
        labels = LABELS.format(answer.labels) if answer.labels else None
        sending = SENDING.format(labels=labels, models=inputs["models"])
    return (
        f"{imported}\n\nfrom gradio_client import Client\n\n"
        f"client = Client({address!r}, verbose=False)\n{added}{sending}"
        f'answer = client.predict(\n{sent}    api_name="/{answer.result.key}",\n)\n'
        "print(json.dumps(answer))\n"
    )


def curl_code(answer: Answer, address: str) -> str:
    """Return shell commands: a call, and a wait for the answer, a list with one item after `data:`."""
    sent = values_sent(answer)
    if answer.own or answer.added:
        raise ValueError("curl does not send your texts or models; take Python, which reads the saved corpus.")
    body = shlex.quote(json.dumps({"data": list(sent.values())}))
    call = shlex.quote(f"{address.rstrip('/')}/gradio_api/call/{answer.result.key}")
    return (
        f"event=$(curl -s {call} -H 'Content-Type: application/json' -d {body} \\\n"
        f'  | sed \'s/.*"event_id": *"\\([^"]*\\)".*/\\1/\')\n'
        f'curl -sN {call}/"$event"\n'
    )


def figure(answer: Answer, kind: str, millimetres: float = 160) -> bytes:
    """Return a result's chart as SVG, PDF or PNG. Raises ValueError if it has none, or without the package for it."""
    charts = answer.result.charts(answer.frame) if len(answer.frame) else []
    if not charts:
        raise ValueError("This result has no chart; save it as a table.")
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise ValueError(
            "Figures need the package vl-convert-python; install it with: pip install vl-convert-python"
        ) from error
    config = {**LOOK, "font": "sans-serif", "axis": FONT, "header": FONT, "title": {"fontSize": 8}}
    config["legend"] = {**FONT, "columns": max(1, round(millimetres / MM_PER_ENTRY))}
    width = millimetres * POINTS_PER_MM
    spec: dict[str, Any] = {**fixed(charts[0], width), "background": "white", "description": caption(answer)}
    if "layer" in spec:  # a page is three times as wide as a column
        spec["layer"] = [{**layer, "mark": smaller(layer["mark"])} for layer in spec["layer"]]
    spec["config"] = {**config, "text": {"fontSize": 8}}
    if "facet" in spec:
        spec["columns"] = 1 if millimetres == min(WIDTHS.values()) else spec["columns"]
        spec["spec"] = scaled(spec["spec"], width / spec["columns"] - FACET_GAP)
    elif spec.get("width") == "container":
        spec["width"] = width
    closed: dict[str, Any] = {"allowed_base_urls": []}  # no chart may read an address
    if kind == "svg":  # a length without a unit is in pixels
        drawing = vl_convert.vegalite_to_svg(spec, **closed)
        return re.sub(r'(?<= )(width|height)="([\d.]+)"', r'\1="\2pt"', drawing, count=2).encode()
    if kind == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, **closed))
    return bytes(vl_convert.vegalite_to_png(spec, scale=4, **closed))


def fixed(part: Any, width: float) -> Any:
    """Return a part of a specification with as many columns of a legend of models as the width in points takes."""
    if isinstance(part, list):
        return [fixed(inner, width) for inner in part]
    if not isinstance(part, dict):
        return part
    made = {name: inner if name == "data" else fixed(inner, width) for name, inner in part.items()}
    if isinstance((legend := made.get("legend")), dict) and isinstance(legend.get("columns"), dict):
        widest = entry_width(made["scale"]["domain"]) * FONT["labelFontSize"] / PIXELS
        made["legend"] = {**legend, "columns": max(1, int(width // widest))}
    return made


def smaller(mark: Any) -> Any:
    """Return the mark of a layer with thinner lines and smaller points, if it has any."""
    sizes = {"size": 20, "strokeWidth": 1}
    return {**mark, **{name: size for name, size in sizes.items() if name in mark}} if isinstance(mark, dict) else mark


def scaled(panel: Mapping[str, Any], side: float) -> dict[str, Any]:
    """Return a square panel of a figure with this side in points, and the letters on it in proportion."""
    by, layers = side / panel["width"], []
    for layer in panel["layer"]:
        sizes = {name: layer["mark"][name] * by for name in ("fontSize", "strokeWidth") if name in layer["mark"]}
        layers.append({**layer, "mark": {**layer["mark"], **sizes}})
    return {"width": side, "height": side, "layer": layers}


# Each form: the file's suffix and MIME type ("" for code that is shown), and the function that makes it.
TABLES: Mapping[str, tuple[str, str, Callable[[Answer, str], str | bytes]]] = {
    "Table (CSV)": ("csv", "text/csv", as_csv),
    "Table for spreadsheets (CSV)": ("csv", "text/csv", as_sheet),
    "Table (Parquet)": ("parquet", "application/vnd.apache.parquet", as_parquet),
    "Table (LaTeX)": ("tex", "application/x-tex", as_latex),
    "Table (Markdown)": ("md", "text/markdown", as_markdown),
    "Everything (JSON)": ("json", "application/json", as_json),
    "Code (Python)": ("py", "", python_code),
    "Code (curl)": ("sh", "", curl_code),
}
FIGURES = {
    "Figure (SVG)": ("svg", "image/svg+xml"),
    "Figure (PDF)": ("pdf", "application/pdf"),
    "Figure (PNG)": ("png", "image/png"),
}
FORMS = (*FIGURES, *TABLES)
CODE = [form for form, (_, mime, _) in TABLES.items() if not mime]  # is shown


def file_of(answer: Answer, form: str, width: str, address: str) -> dict[str, Any]:
    """Return the value that saves or shows an answer in one of the `FORMS`; `address` is the page's, for code."""
    notes: list[str] = []
    content: str | bytes
    if form in FIGURES:
        suffix, kind = FIGURES[form]
        content, notes = figure(answer, suffix, WIDTHS[width]), [f"Caption: {caption(answer)}"]
    else:
        if form.startswith("Table") and answer.frame.empty:
            raise ValueError(NO_ROWS if answer.models else NO_ANSWER)
        suffix, kind, make = TABLES[form]
        content = make(answer, address)
    corpus = stem_of(answer.corpus_label) if answer.own else answer.corpus
    name = f"{file_stem(answer.result.key, corpus if answer.result.reads_corpus else '')}.{suffix}"
    lacking = [] if suffix == "json" else list(answer.failed)
    if isinstance(content, bytes):
        return file_value(name, kind, base64.b64encode(content).decode(), lacking, notes)
    return file_value(name, kind, content, lacking)


def address_of(request: gr.Request | None) -> str:
    """Return the URL of the visitor's page from the referer header, or the default address without one."""
    page = urlsplit((request.headers.get("referer") or "") if request else "")
    if page.scheme not in ("http", "https") or not page.netloc:
        return "http://127.0.0.1:7860/"
    return f"{page.scheme}://{page.netloc}{page.path or '/'}"


def share_forms(
    state: AppState, panel: gr.Column, places: Mapping[str, tuple[gr.Tab, Sequence[Shown]]]
) -> dict[str, gr.Column]:
    """Add a form for each place and return them by its name; the first one is shown."""
    forms: dict[str, gr.Column] = {}
    with panel:
        for name, (_, shown) in places.items():
            with gr.Column(visible=not forms) as forms[name]:
                place_form(state, shown)
    return forms


def place_form(state: AppState, shown: Sequence[Shown]) -> None:
    """Add the choice of a place's result and of a form of file, and the button that saves it."""
    labels = [part.kind.title for part in shown]

    def forms(label: str) -> list[str]:
        kind = shown[labels.index(label)].kind
        tables = [form for form in TABLES if form not in CODE or kind.public]  # no code asks for the others
        return [*(() if kind.charts is Result.charts else FIGURES), *tables]

    result = gr.Radio(labels, value=labels[0], label="Result", visible=len(labels) > 1)
    with gr.Row():
        form = gr.Dropdown(forms(labels[0]), value=forms(labels[0])[0], label="As", min_width=160)
        width = gr.Dropdown(
            list(WIDTHS), value=list(WIDTHS)[-1], label="Width of the figure", min_width=160,
            visible=forms(labels[0])[0] in FIGURES,
        )  # fmt: skip
        save = gr.Button("Save", variant="primary", scale=0, min_width=100, elem_classes="cse-submit")
    saved, refusal = saved_file(), gr.HTML("", apply_default_css=False)  # a toast would lie over the panel

    def offer(label: str, form: str) -> Any:
        known = forms(validation.one_of(label, "The result", labels))
        return gr.update(choices=known, value=form if form in known else known[0])

    result.change(offer, [result, form], form, **QUICK)

    def named(form: str) -> tuple[Any, str]:
        return gr.update(visible=form in FIGURES), "Show the code" if form in CODE else "Save"

    form.change(named, form, [width, save], **QUICK)
    fields = list({id(field): field for part in shown for field in part.fields.values()}.values())

    def file(request: gr.Request, label: str, form: str, width: str, *values: Any) -> tuple[dict[str, Any], str]:
        known = dict(zip(map(id, fields), values, strict=True))
        try:
            part = shown[labels.index(validation.one_of(label, "The result", labels))]
            sent = {name: known[id(field)] for name, field in part.fields.items()}
            validation.one_of(form, "The form", FORMS)
            validation.one_of(width, "The width", WIDTHS)
            return file_of(ask(state, part.kind, sent), form, width, address_of(request)), ""
        except ValueError as error:
            return {}, alert(str(error))

    # What was saved or shown before is not what is asked for now, which may be refused. A form also changes when its
    # place is opened, which a slow machine tells late.
    gr.on([result.input, form.input, save.click], None, None, [saved, refusal], js="() => [{}, '']", **HIDDEN)
    lane = {**lane_of(shown[0].kind), "show_progress_on": saved}
    save.click(file, [result, form, width, *fields], [saved, refusal], **lane)
