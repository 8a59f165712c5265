"""Files of an answer: tables, figures in the sizes of a paper, and code that repeats it."""

from __future__ import annotations

import base64
import json
import re
import secrets
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.app.drawing.components import file_stem, file_value
from cse.app.models.naming import title
from cse.app.result import plain, records
from cse.app.show import NO_ANSWER, Answer
from cse.corpus.output import guarded

if TYPE_CHECKING:
    from cse.app.result import Result

MAX_QUOTE = 90  # characters of an input in a caption
MAX_CELL = 200  # characters of a cell in a paper
POINTS_PER_MM = 72 / 25.4
WIDTHS = {"one column (77 mm)": 77, "two columns (160 mm)": 160}
FONT_POINTS = 8
NO_ROWS = "The answer has no rows, so there is nothing to save."
STARS = "**"  # around a cell that is bold
LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "`": r"\textasciigrave{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}", "[": "{[}", "*": "{*}",
    "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "≥": r"$\geq$", "≈": r"$\approx$", "\N{MINUS SIGN}": "$-$",
    "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
MARKDOWN = re.compile(r"([\\`*_\[\]|<>~$&])")
# XML has no place for these characters, and a cell has none for the end of a line.
UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")
SENDING = """with open("texts.txt", encoding="utf-8") as file:  # your texts, one a line
    texts = [line.strip() for line in file if line.strip()]
key = client.predict(texts, api_name="/texts")["key"]
while any(
    each["done"] < len(texts) and not each["error"]
    for each in client.predict([], key=key, api_name="/texts")["models"].values()
):
    time.sleep(1)
"""


def one_line(text: Any, most: int) -> str:
    """Return a text in one line of at most `most` characters."""
    whole = UNFIT.sub(" ", str(text)).strip()
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def caption(answer: Answer) -> str:
    """Return the caption of a table or figure: the result, its inputs, and the models with seed and fingerprint."""
    asks = answer.result.asks()
    defaults = type(answer.result)().inputs()
    inputs = [
        f"{asks[name].label.lower()} {f'“{one_line(value, MAX_QUOTE)}”' if isinstance(value, str) else value}"
        for name, value in answer.result.inputs().items()
        if value not in ("", None)
        and asks[name].kind != "lines"
        and not (asks[name].folded and value == defaults[name])
    ]
    models = [
        f"{title(name)} ({f'seed {answer.seeds[name]}, ' if name in answer.seeds else ''}fingerprint {mark})"
        for name, mark in answer.models.items()
    ]
    corpus = f" Corpus: {one_line(answer.corpus_label, MAX_QUOTE)}." if answer.result.reads_corpus else ""
    told = f": {', '.join(inputs)}" if inputs else ""
    asked = f" Models: {'; '.join(models)}." if models else ""
    return f"{answer.result.title}{told}.{corpus}{asked} cse {answer.version}."


def as_csv(answer: Answer) -> str:
    """Return the frame as CSV, cells as they are."""
    return answer.frame.to_csv(index=False, lineterminator="\n")


def as_sheet(answer: Answer) -> str:
    """Return the frame as CSV for a spreadsheet, in which no cell is a formula."""
    texts = answer.frame.map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)
    return texts.rename(columns=guarded).to_csv(index=False, lineterminator="\n")


def as_json(answer: Answer) -> str:
    """Return the frame as JSON, with what it came from and the reasons of failures."""
    facts = {
        "result": answer.result.key, "inputs": answer.result.inputs(), "corpus": answer.corpus_label,
        "models": answer.models, "seeds": answer.seeds, "failed": answer.failed, "version": answer.version,
        "rows": records(answer.frame),
    }  # fmt: skip
    return json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def as_parquet(answer: Answer) -> bytes:
    """Return the frame as Parquet."""
    return answer.frame.to_parquet(index=False)


def paper_cells(answer: Answer, escape: Callable[[str], str], bold: str) -> pd.DataFrame:
    """Return the result's sheet as texts of a paper; a cell between stars becomes `bold`, a format of one place."""

    def cell(value: Any) -> str:
        if plain(value) is None:
            return "–"
        if isinstance(value, float):
            return f"{value:.3f}"
        text = one_line(value, MAX_CELL)
        if text.startswith(STARS) and text.endswith(STARS) and len(text) > 2 * len(STARS):
            return bold.format(escape(text[2:-2]))
        return escape(text)

    sheet = answer.result.sheet(answer.frame)
    shown = pd.DataFrame({name: [cell(value) for value in sheet[name].tolist()] for name in sheet.columns})
    return shown.rename(columns=lambda name: escape(one_line(name, MAX_CELL)))


def latex(text: str) -> str:
    """Escape a text for LaTeX, so that it is typeset as it stands and runs no command."""
    return "".join(LATEX.get(sign, sign) for sign in text)


def markdown(text: str) -> str:
    """Escape a text for Markdown, so that it is no markup, HTML or cell of its own."""
    return MARKDOWN.sub(r"\\\1", text)


def as_latex(answer: Answer) -> str:
    """Return the sheet as a LaTeX `table` that needs the package booktabs."""
    cells = paper_cells(answer, latex, r"\textbf{{{}}}")
    numbers = answer.result.sheet(answer.frame).dtypes.map(pd.api.types.is_numeric_dtype)
    form = "".join("r" if right else "l" for right in numbers)
    rows = "".join(f"    {' & '.join(row)} \\\\\n" for row in cells.itertuples(index=False, name=None))
    return (
        "% \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n"
        f"  \\begin{{tabular}}{{{form}}}\n    \\toprule\n    {' & '.join(cells.columns)} \\\\\n    \\midrule\n{rows}"
        f"    \\bottomrule\n  \\end{{tabular}}\n  \\caption{{{latex(caption(answer))}}}\n"
        f"  \\label{{tab:{answer.result.key}}}\n\\end{{table}}\n"
    )


def as_markdown(answer: Answer) -> str:
    """Return the sheet in Markdown with the caption below it."""
    cells = paper_cells(answer, markdown, "**{}**")
    numbers = answer.result.sheet(answer.frame).dtypes.map(pd.api.types.is_numeric_dtype)
    rule = ["---:" if right else "---" for right in numbers]
    lines = [list(cells.columns), rule, *cells.itertuples(index=False, name=None)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{markdown(caption(answer))}\n"


def values_sent(answer: Answer) -> dict[str, Any]:
    """Return the inputs of the endpoint that gave an answer, without the visitor's key."""
    corpus = {"corpus": answer.corpus} if answer.result.reads_corpus else {}
    return {**answer.result.inputs(), **corpus, "models": list(answer.models)}


def python_code(answer: Answer, address: str) -> str:
    """Return a program that asks the endpoint and prints its answer as JSON. Raises ValueError if none is public.

    About the visitor's corpus, it first sends the texts in `texts.txt` and waits until all models have encoded them.
    """
    _check_public(answer)
    sent = "".join(f"    {name}={value!r},\n" for name, value in values_sent(answer).items())
    sent += "    key=key,\n" if answer.own else ""
    added = "".join(f'client.predict({name!r}, api_name="/add_model")\n' for name in answer.added)
    imported, sending = ("import json\nimport time", SENDING) if answer.own else ("import json", "")
    return (
        f"{imported}\n\nfrom gradio_client import Client\n\n"
        f"client = Client({address!r}, verbose=False)\n{added}{sending}"
        f'answer = client.predict(\n{sent}    api_name="/{answer.result.key}",\n)\n'
        "print(json.dumps(answer))\n"
    )


def curl_code(answer: Answer, address: str) -> str:
    """Return shell commands: a call, and a wait for the answer, a list with one item after `data:`.

    Models that a visitor added are first added to a session. Raises ValueError for an answer about the visitor's texts.
    """
    _check_public(answer)
    if answer.own:
        raise ValueError("curl does not send your texts; take Python, which reads them from texts.txt.")
    sent = values_sent(answer)
    ordered = [*answer.result.inputs().values(), *([sent["corpus"], ""] if "corpus" in sent else []), sent["models"]]
    session = {"session_hash": secrets.token_hex(8)} if answer.added else {}
    calls = [*(("add_model", [name]) for name in answer.added), (answer.result.key, ordered)]
    return "".join(_curl(address, endpoint, {"data": data, **session}) for endpoint, data in calls)


def _check_public(answer: Answer) -> None:
    if not answer.result.public:
        raise ValueError("No code repeats this result, which only your page has; save it as CSV or JSON instead.")


def _curl(address: str, endpoint: str, body: Mapping[str, Any]) -> str:
    sent, call = shlex.quote(json.dumps(body)), shlex.quote(f"{address.rstrip('/')}/gradio_api/call/{endpoint}")
    return (
        f"event=$(curl -s {call} -H 'Content-Type: application/json' -d {sent} \\\n"
        f'  | sed \'s/.*"event_id": *"\\([^"]*\\)".*/\\1/\')\n'
        f'curl -sN {call}/"$event"\n'
    )


def figure_spec(answer: Answer, chart: Mapping[str, Any], millimetres: float) -> dict[str, Any]:
    """Return a chart in the width and the font of a paper, on white."""
    width = millimetres * POINTS_PER_MM
    config = {
        "font": "sans-serif", "axis": {"labelFontSize": FONT_POINTS, "titleFontSize": FONT_POINTS},
        "legend": {"labelFontSize": FONT_POINTS, "titleFontSize": FONT_POINTS},
        "header": {"labelFontSize": FONT_POINTS, "titleFontSize": FONT_POINTS}, "title": {"fontSize": FONT_POINTS},
        "text": {"fontSize": FONT_POINTS},
    }  # fmt: skip
    sized = {} if chart.get("width") != "container" else {"width": width}
    return {**chart, **sized, "background": "white", "config": config, "description": caption(answer)}


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
    spec = figure_spec(answer, charts[0], millimetres)
    closed: dict[str, Any] = {"allowed_base_urls": []}  # no chart may read an address
    if kind == "svg":
        return vl_convert.vegalite_to_svg(spec, **closed).encode()
    if kind == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, **closed))
    return bytes(vl_convert.vegalite_to_png(spec, scale=4, **closed))


# Each form: the file's suffix and MIME type ("" for code that is shown), and the function that makes it.
TABLES: dict[str, tuple[str, str, Callable[[Answer, str], str | bytes]]] = {
    "Table (CSV)": ("csv", "text/csv", lambda answer, address: as_csv(answer)),
    "Table for spreadsheets (CSV)": ("csv", "text/csv", lambda answer, address: as_sheet(answer)),
    "Table (Parquet)": ("parquet", "application/vnd.apache.parquet", lambda answer, address: as_parquet(answer)),
    "Table (LaTeX)": ("tex", "application/x-tex", lambda answer, address: as_latex(answer)),
    "Table (Markdown)": ("md", "text/markdown", lambda answer, address: as_markdown(answer)),
    "Everything (JSON)": ("json", "application/json", lambda answer, address: as_json(answer)),
    "Code (Python)": ("py", "", python_code),
    "Code (curl)": ("sh", "", curl_code),
}
FIGURES = {"Figure (SVG)": "svg", "Figure (PDF)": "pdf", "Figure (PNG)": "png"}
MEDIA_TYPES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
FORMS = (*FIGURES, *TABLES)


def file_of(answer: Answer, form: str, width: str, address: str) -> dict[str, Any]:
    """Return the value that saves or shows an answer in one of the `FORMS`; `address` is the page's, for code."""
    name = stem(answer.result, answer)
    if form in FIGURES:
        kind = FIGURES[form]
        content = base64.b64encode(figure(answer, kind, WIDTHS[width])).decode()
        notes = [f"Caption: {caption(answer)}"]
        return file_value(f"{name}.{kind}", MEDIA_TYPES[kind], content, list(answer.failed), notes)
    if form.startswith("Table") and answer.frame.empty:
        raise ValueError(NO_ROWS if answer.models else NO_ANSWER)
    suffix, kind, make = TABLES[form]
    made = make(answer, address)
    lacking = list(answer.failed) if suffix != "json" else []
    if isinstance(made, bytes):
        return file_value(f"{name}.{suffix}", kind, base64.b64encode(made).decode(), lacking, [])
    return file_value(f"{name}.{suffix}", kind, made, lacking)


def stem(result: Result, answer: Answer) -> str:
    """Return the name of a file without its suffix: the result and the corpus."""
    return file_stem(result.key, answer.corpus if result.reads_corpus else "")
