"""Tables for papers: a result with a column or a row per model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cse.app.drawing.terms import MEASURES
from cse.app.export.look import line
from cse.app.export.results_figure import row_title
from cse.app.export.tidy import TABLES
from cse.app.models.naming import title
from cse.evaluation.tasks import find_task

if TYPE_CHECKING:
    from cse.app.export.taken import Taken

LONGEST = 200  # characters of a cell
NONE = "–"


class Sheet(NamedTuple):
    """The headings of a table and its cells; the first `texts` columns are words. `bold` has cells (row, column)."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    bold: frozenset[tuple[int, int]] = frozenset()


def sheet(taken: Taken) -> Sheet:
    """Return the table of a result; one without a form of its own is the table of its CSV file."""
    if taken.endpoint in CROSSED:
        return crossed(taken, *CROSSED[taken.endpoint])
    if taken.endpoint in SHEETS:
        return SHEETS[taken.endpoint](taken)
    table = TABLES[taken.endpoint]
    rows = [[cell(value) for value in row] for row in table.rows(taken)]
    return Sheet(table.columns, rows, len(table.columns))


def cell(value: Any, form: str = ".3f") -> str:
    """Return a value as the text of a cell; a number has the `form`."""
    if value is None:
        return NONE
    return f"{value:{form}}" if isinstance(value, float) else line(value, LONGEST)


def crossed(taken: Taken, keys: Sequence[str], value: str, form: str) -> Sheet:
    """Return a row for each combination of the columns `keys` of the CSV table, and a column per model."""
    table = TABLES[taken.endpoint]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.rows(taken):
        known = dict(zip(table.columns, row, strict=True))
        found.setdefault(tuple(known[key] for key in keys), {})[known["model"]] = known[value]
    models = list(dict.fromkeys(name for values in found.values() for name in values))
    rows = [
        [*(cell(each) for each in key), *(cell(values.get(name), form) for name in models)]
        for key, values in found.items()
    ]
    heads = [key.replace("_", " ").capitalize() for key in keys]
    return Sheet([*heads, *(line(title(name), 40) for name in models)], rows, len(keys))


def by_model(heads: Sequence[str], values: Mapping[str, Sequence[str]]) -> Sheet:
    """Return a row per model with its values under the `heads`."""
    return Sheet(("Model", *heads), [[title(name), *cells] for name, cells in values.items()])


def similarity_sheet(taken: Taken) -> Sheet:
    """Return a row per model: cosine and percentile."""
    places = taken.percentiles
    values = {name: [cell(cosine), cell(places.get(name), ".1f")] for name, cosine in taken.answered.items()}
    return by_model(("Cosine", "Percentile"), values)


def tokens_sheet(taken: Taken) -> Sheet:
    """Return a row per model and rank: the words of the three stages with their probabilities."""
    rows = []
    for name, found in taken.answered.items():
        for rank in range(max(map(len, (found["before"], found["alone"], found["after"])))):
            words = [found[key][rank] if rank < len(found[key]) else None for key in ("before", "alone", "after")]
            shown = [f"{word[0]} ({100 * word[1]:.1f} %)" if word else NONE for word in words]
            rows.append([title(name), str(rank + 1), *shown])
    return Sheet(("Model", "Rank", "Sentence", "Template alone", "Denoised"), rows, 5)


def template_sheet(taken: Taken) -> Sheet:
    """Return a row per model: the scores under both templates, and the difference with its interval."""
    values = {
        name: [*(cell(found[side]["score"], ".2f") for side in ("own", "other")), gain(found["gain"])]
        for name, found in taken.answered.items()
    }
    return by_model(("Own template", "Other template", "Gain, 95 % interval"), values)


def gain(found: dict[str, float]) -> str:
    """Return a difference and its interval."""
    return f"{found['value']:+.2f} ({found['low']:+.2f} to {found['high']:+.2f})"


def map_sheet(taken: Taken) -> Sheet:
    """Return a row per model: the scores of its map."""
    scores = ("trustworthiness", "continuity", "same_topic")
    values = {name: [cell(found[score]) for score in scores] for name, found in taken.answered.items()}
    return by_model(("Trustworthiness", "Continuity", "Neighbours of the same label"), values)


def results_sheet(taken: Taken) -> Sheet:
    """Return a row per model and a column per score, the best ones bold."""
    columns, rows = taken.answer["columns"], []
    names = list(taken.answered)
    for row in taken.answered.values():
        rows.append([score(figure, columns[place]) for place, figure in enumerate(row["figures"])])
    bold = {
        (names.index(name), place + 1) for place, each in enumerate(columns) for name in each["best"] if name in names
    }
    several = len({column["score"] for column in columns}) > 1
    headed = find_task(taken.answer["task"]).unit_headings
    heads = [
        " ".join(filter(None, (each["unit"] * headed, MEASURES.get(each["score"], (each["score"],))[0] * several)))
        for each in columns
    ]
    return Sheet(
        ("Model", *heads),
        [[title(row_title(name, taken.answered[name])), *row] for name, row in zip(names, rows, strict=True)],
        1,
        frozenset(bold),
    )


def score(figure: dict[str, Any] | None, column: dict[str, Any]) -> str:
    """Return a score with its deviation; figures of small units have three decimals."""
    if figure is None:
        return NONE
    form = ".2f" if "100" in (unit := MEASURES.get(column["score"], ("", ""))[1]) or unit == "%" else ".3f"
    spread = "" if figure["deviation"] is None else f" ± {figure['deviation']:{form}}"
    return f"{figure['value']:{form}}{spread}"


def ledger_sheet(taken: Taken) -> Sheet:
    """Return a row per published score: published, obtained and difference."""
    rows = [
        [entry["row"], entry["task"], *(cell(entry.get(key), ".2f") for key in ("published", "mean", "difference"))]
        for entry in taken.answer
    ]
    return Sheet(("Row", "Task", "Published", "Obtained", "Difference"), rows, 2)


def attention_sheet(taken: Taken) -> Sheet:
    """Return a row per model and layer: the token that its heads look at most in the mean, and the prefix's share."""
    rows = []
    for name, found in taken.answered.items():
        for layer, heads in enumerate(found["shares"], start=1):
            shares = [sum(each) / len(heads) for each in zip(*heads, strict=True)]
            most, prefix = max(range(len(shares)), key=shares.__getitem__), found["prefix"]
            on_prefix = f"{sum(shares[:prefix]):.1%}" if prefix else None
            rows.append([title(name), str(layer), cell(found["tokens"][most]), f"{shares[most]:.1%}", cell(on_prefix)])
    return Sheet(("Model", "Layer", "Most looked at", "Attention", "On the prefix"), rows, 3)


def times_sheet(taken: Taken) -> Sheet:
    """Return a row per model: milliseconds of a sentence and average score."""
    values = {
        name: [f"{each['milliseconds']:.3g}", cell(each["score"], ".2f")] for name, each in taken.answered.items()
    }
    return by_model(("Milliseconds a sentence", "Average STS"), values)


def training_sheet(taken: Taken) -> Sheet:
    """Return the scores of an adaptation's candidates, or else the values of each step."""
    head, *rows = taken.answer["table"] or [[]]
    if rows:
        return Sheet([cell(each) for each in head], [[cell(each) for each in row] for row in rows])
    steps = [[str(step), what, cell(value)] for step, what, value in TABLES["training"].rows(taken)]
    return Sheet(("Step", "Measure", "Value"), steps, 2)


CROSSED = {
    "words": (("sentence", "place", "word"), "change_of_cosine", "+.3f"),
    "pairs": (("first", "second"), "cosine", ".3f"),
    "search": (("sentence",), "rank", ""),
    "changes": (("change", "changed"), "moved", ".1%"),
    "disagreements": (("first", "second"), "place", ".2f"),
    "ballot": (("measure",), "value", ".3f"),
    "labels": (("score",), "value", ".2f"),
}
SHEETS: dict[str, Callable[[Taken], Sheet]] = {
    "similarity": similarity_sheet, "tokens": tokens_sheet, "template": template_sheet, "map": map_sheet,
    "attention": attention_sheet, "training": training_sheet, "times": times_sheet, "results": results_sheet,
    "ledger": ledger_sheet,
}  # fmt: skip
