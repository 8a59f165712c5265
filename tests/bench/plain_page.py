"""The page of the plain-text results: tables, claims of the papers with their words, and figures, from the records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cse.evaluation import geometry, sts
from cse.evaluation.figures import COLOURS, FAINT, panels_of
from cse.evaluation.metrics import over_seeds, seeds_differ
from cse.evaluation.reproduction import rows as published_rows
from cse.evaluation.results import TEMPLATES
from cse.files.writing import write_file
from tests.bench.plain import (
    CONFIGURATIONS,
    FIRST_SEED,
    GRIDS,
    MORE_TASKS,
    STATIC_BIAS,
    TEMPLATE_SCORES,
    Configuration,
    trial_name,
)

HOLDS, FAILS, NOISE, ALONE, MISSING = "holds", "does not hold", "inside the noise", "one seed", "not run yet"
Results = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper's table: the score at `first` is higher than that at `second`.

    Each is the name of a row and the path to a number of its records, by default that of the seven tasks' average.
    `deviation`: the standard deviation over seeds is lower instead.
    """

    paper: str
    table: str
    text: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    deviation: bool = False


def _claim(paper: str, table: str, text: str, first: str, second: str, **more: Any) -> Claim:
    return Claim(paper, table, text, tuple(first.split(" > ")), tuple(second.split(" > ")), **more)


WITHOUT = [f"{STATIC_BIAS} > removal > {name}" for name in geometry.REMOVAL_ROWS]
BARE, *_, QUOTED, COLON = TEMPLATES
CLAIMS = (
    _claim("PromptBERT", "2", "averaged word embeddings are closer together than the word embeddings themselves",
           "static > anisotropy", f"{STATIC_BIAS} > word_cosine"),
    _claim("PromptBERT", "3", "averaged word embeddings gain without the 36 most frequent tokens",
           WITHOUT[1], WITHOUT[0]),
    _claim("PromptBERT", "3", "they gain more without subwords", WITHOUT[2], WITHOUT[1]),
    _claim("PromptBERT", "3", "they gain more without punctuation", WITHOUT[4], WITHOUT[2]),
    _claim("PromptBERT", "4", "the last of the eight templates beats the bare [MASK]",
           f"{TEMPLATE_SCORES} > templates > {COLON}", f"{TEMPLATE_SCORES} > templates > {BARE}"),
    _claim("PromptBERT", "4", "the colon beats the \"of\" in the quoted template",
           f"{TEMPLATE_SCORES} > templates > {COLON}",
           f"{TEMPLATE_SCORES} > templates > {QUOTED}"),
    _claim("PromptBERT", "5", "averaged word embeddings beat the averaged last layer", "static", "mean"),
    _claim("PromptBERT", "5", "the average of first and last layer beats the last", "first-last", "mean"),
    _claim("PromptBERT", "5", "the untrained prompt beats word embeddings without biased tokens",
           "prompt", STATIC_BIAS),
    _claim("PromptBERT", "5", "OptiPrompt beats the untrained prompt", "optiprompt", "prompt"),
    _claim("PromptBERT", "6", "PromptBERT beats SimCSE", "promptbert", "simcse"),
    _claim("PromptBERT", "6", "PromptBERT beats ConSERT", "promptbert", "consert"),
    _claim("PromptBERT", "8", "two templates beat one", "promptbert-no-denoising", "promptbert-same"),
    _claim("PromptBERT", "8", "denoising adds to two templates", "promptbert", "promptbert-no-denoising"),
    _claim("PromptBERT", "10", "PromptBERT beats SimCSE on the mean of the seeds", "promptbert", "simcse"),
    _claim("PromptBERT", "10", "PromptBERT varies less with the seed than SimCSE", "promptbert", "simcse",
           deviation=True),
    _claim("DCPCSE", "1", "DCPCSE beats SimCSE", "dcpcse-16", "simcse"),
    _claim("DCPCSE", "1", "prompts in every layer beat those of the input alone (SCPCSE)", "dcpcse-16", "scpcse"),
    _claim("DCPCSE", "2", "on BERT the masked-LM term does not help", "dcpcse-16", "dcpcse-mlm"),
    _claim("DCPCSE", "Figure 2", "prefix 8 beats prefix 4", "dcpcse-8", "dcpcse-4"),
    _claim("DCPCSE", "Figure 2", "prefix 16 beats prefix 8", "dcpcse-16", "dcpcse-8"),
    _claim("ConPVP", "3", "ConPVP beats SimCSE", "conpvp", "simcse"),
    _claim("ConPVP", "3", "ConPVP beats PromptBERT", "conpvp", "promptbert"),
    _claim("ConPVP", "4", "the continuous anchor beats a manual one", "conpvp", "conpvp-manual"),
    _claim("ConPVP", "4", "negative prototypes help", "conpvp", "conpvp-no-negative"),
    _claim("ConPVP", "4", "positive prototypes help", "conpvp-no-negative", "conpvp-no-prototypes"),
    _claim("ConPVP", "5", "ConPVP beats SimCSE in transfer", "conpvp > transfer", "simcse > transfer"),
    _claim("ConPVP", "6", "ConPVP beats SimCSE in clustering", "conpvp > clustering", "simcse > clustering"),
)  # fmt: skip


def runs(results: Results, name: str, *path: str) -> list[float]:
    """Return a row's number at a path of its records, one for each seed; of several sets their mean."""
    records = results["records"]
    values = [record for key, record in records.items() if key == name or re.fullmatch(rf"{re.escape(name)} \d+", key)]
    for key in path or ("average",):
        values = [value[key] for value in values if isinstance(value, Mapping) and value.get(key) is not None]
    return [float(np.mean([*value.values()])) if isinstance(value, Mapping) else value for value in values]


def verdict(claim: Claim, results: Results) -> tuple[str, str]:
    """Return a claim's word and the difference of the means with its 95 % interval over seeds.

    What has no seed is exact: its interval is that of the other side, or empty. A ratio of deviations has an F
    interval. A trained row with one seed has no interval, so it decides nothing.
    """
    both = [runs(results, name, *path) for name, *path in (claim.first, claim.second)]
    if not all(both):
        return MISSING, ""
    if claim.deviation:
        return _spread(*both)
    exact = [not CONFIGURATIONS[name].family for name, *_ in (claim.first, claim.second)]
    doubled = [values * 2 if alone else values for values, alone in zip(both, exact, strict=True)]
    difference = seeds_differ(*doubled)
    if difference is None:
        return ALONE, f"{np.mean(both[0]) - np.mean(both[1]):+.2f}"
    if all(exact):
        return HOLDS if difference.value > 0 else FAILS, f"{both[0][0] - both[1][0]:+.2f}"
    word = NOISE if difference.noise else HOLDS if difference.value > 0 else FAILS
    return word, f"{difference.value:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]"


def _spread(first: Sequence[float], second: Sequence[float]) -> tuple[str, str]:
    from scipy.special import fdtri

    if min(len(first), len(second)) < 2:
        return MISSING, ""
    one, other = (float(np.var(values, ddof=1)) for values in (first, second))
    ends = [fdtri(len(first) - 1, len(second) - 1, share) for share in (0.975, 0.025)]
    ratio, low, high = (float(np.sqrt(one / other / end)) for end in (1.0, *ends))
    word = NOISE if low <= 1 <= high else HOLDS if high < 1 else FAILS
    return word, f"{ratio:.2f} times [{low:.2f}, {high:.2f}]"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *rows)]


def _spreads(values: Sequence[float], digits: int = 2) -> str:
    if not values:
        return "–"
    figure = over_seeds(values)
    return f"{figure.value:.{digits}f}" + ("" if figure.deviation is None else f" ± {figure.deviation:.{digits}f}")


def _published(row: Configuration) -> str:
    if row.published is None:
        return "–"
    paper, table, name = row.published
    return _known(next(known.average for known in published_rows(paper, table) if known.name == name))


def _known(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _rows() -> Iterator[Configuration]:
    return (row for row in CONFIGURATIONS.values() if row.name != TEMPLATE_SCORES)


def main_table(results: Results) -> list[str]:
    """The seven STS tasks, their average with the deviation over seeds, and the paper's number of BERT-base."""
    rows = [
        (row.title, str(count if row.family else "–") if (count := len(runs(results, row.name))) else MISSING,
         *(f"{np.mean(values):.2f}" if (values := runs(results, row.name, "sts", task)) else "–" for task in sts.SETS),
         _spreads(runs(results, row.name)), _published(row))
        for row in _rows()
    ]  # fmt: skip
    return _table(("row", "seeds", *sts.SETS, "average", "BERT-base, published"), rows)


def geometry_table(results: Results) -> list[str]:
    """STS-B dev, anisotropy, alignment, uniformity, transfer and clustering, and the seconds of a run."""
    rows = []
    for row in _rows():
        if row.name != STATIC_BIAS and runs(results, row.name):
            shapes = (_spreads(runs(results, row.name, name), 3) for name in ("anisotropy", "alignment", "uniformity"))
            more = (_spreads(runs(results, row.name, name)) for name in MORE_TASKS)
            seconds = _spreads(runs(results, row.name, "seconds"), 0)
            rows.append((row.title, _spreads(runs(results, row.name, "dev")), *shapes, *more, seconds))
    return _table(
        ("row", "STS-B dev", "anisotropy", "alignment", "uniformity", "transfer", "clustering", "seconds"), rows
    )


def template_table(results: Results) -> list[str]:
    """PromptBERT's Table 4: each template untrained on STS-B dev, beside the paper's number."""
    scores = results["records"].get(TEMPLATE_SCORES, {}).get("templates", {})
    rows = [(f"`{text}`", f"{score:.2f}", f"{TEMPLATES[text]:.2f}") for text, score in scores.items()]
    return _table(("template", "STS-B dev", "BERT-base, published"), rows or [(MISSING, "", "")])


def removal_table(results: Results) -> list[str]:
    """PromptBERT's Table 3: averaged word embeddings as biased tokens are removed."""
    removal = results["records"].get(STATIC_BIAS, {}).get("removal", {})
    papers = [*published_rows("promptbert", "3"), *published_rows("promptbert", "1")]
    known = {row.name.removeprefix("bert-base-uncased").strip(", "): row.average for row in papers}
    rows = [
        (f"`{name}`", _spreads(runs(results, STATIC_BIAS, "removal", name)), _known(known.get(name)))
        for name in removal
    ]
    return _table(("tokens", "STS average", "BERT-base, published"), rows or [(MISSING, "", "")])


def claim_table(results: Results) -> list[str]:
    """Every claim with its word."""
    rows = []
    for claim in CLAIMS:
        word, interval = verdict(claim, results)
        rows.append((f"{claim.paper}, {claim.table}", claim.text, f"*{word}*", interval))
    return _table(("table", "claim", "here", "difference and its interval"), rows)


def settings_table(results: Results) -> list[str]:
    """The points of each method's grid with their score on STS-B dev: two learning rates by two temperatures."""
    rows = []
    for family, points in GRIDS.items():
        trials = [results["trials"].get(trial_name(family, point)) for point in points]
        rates = " and ".join(dict.fromkeys(f"{point['learning_rate']:g}" for point in points))
        rows.append((family, rates, *(f"{trial['dev']:.2f}" if trial else MISSING for trial in trials)))
    columns = [f"{rate}, {heat}" for heat in ("0.05", "0.1") for rate in ("first", "second")]
    return _table(("method", "learning rates", *columns), rows)


def variation_table(results: Results) -> list[str]:
    """Average and STS-B dev of trainings of the first seed that differ in one setting, beside the row's own."""
    rows = []
    for name, row in CONFIGURATIONS.items():
        start = f"{name} {FIRST_SEED}"
        varied = {key.removeprefix(start): record for key, record in results.get("variations", {}).items()
                  if key.startswith(f"{start} ")}  # fmt: skip
        if not varied:
            continue
        known = {"as in the tables": results["records"].get(start, {})}
        for changes, record in sorted(varied.items(), key=_amount):
            told = ", ".join(changes.split()).replace("=", " ").replace("_", " ")
            known[told.replace("max steps", "batches")] = record
        rows += [
            (row.title, told, _known(record.get("average")), _known(record.get("dev")))
            for told, record in known.items()
        ]
    return _table(("row", "setting", "average", "STS-B dev"), rows or [(MISSING, "", "", "")])


def _amount(varied: tuple[str, Any]) -> tuple[str, float]:
    setting, _, value = varied[0].partition("=")
    return setting, float(value.split()[0])


def token_table(results: Results) -> list[str]:
    """PromptBERT's Table 7: the likeliest tokens at [MASK], before and after denoising."""
    rows = []
    for name in ("prompt", "promptbert"):
        title = CONFIGURATIONS[name].title
        record = results["records"].get(f"{name} 42", results["records"].get(name, {}))
        for text, (before, after) in record.get("tokens", {}).items():
            rows.append((title, text, *(" ".join(words).replace("|", "\\|") for words in (before, after))))
    return _table(("row", "sentence", "tokens", "denoised"), rows or [(MISSING, "", "", "")])


BLOCKS = {
    "scores": main_table, "claims": claim_table, "geometry": geometry_table, "templates": template_table,
    "removal": removal_table, "tokens": token_table, "variations": variation_table, "settings": settings_table,
}  # fmt: skip


def write_page(results: Results, page: Path) -> list[Path]:
    """Write the tables between their marks in the page, whose prose stays, and its figures; return what was written.

    A page that does not exist gets every table under its name.
    """
    marks = "\n".join(f"## {name.capitalize()}\n\n<!-- {name} -->\n<!-- /{name} -->\n" for name in BLOCKS)
    text = page.read_text(encoding="utf-8") if page.is_file() else f"# The papers from plain text\n\n{marks}"
    for name, table in BLOCKS.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not closed:
            raise ValueError(f"{page}: no marks {start} and {end}; put them where the table belongs")
        text = "\n".join([before + start, "", *table(results), "", end + after])
    write_file(page, lambda fresh: fresh.write_text(text, encoding="utf-8"))
    averages = {row.title: float(np.mean(values)) for row in _rows() if (values := runs(results, row.name))}
    path = page.with_name(f"{page.stem}-average.svg")
    ranked = dict(sorted(averages.items(), key=lambda item: item[1]))
    size = (7.0, 1.1 + 0.3 * len(ranked))
    with panels_of({"": ranked}, path, "Average of seven STS tasks", size) as (axes,):  # the best on top
        colours = [*[FAINT] * (len(ranked) - 1), COLOURS[0]]
        bars = axes.barh(range(len(ranked)), [*ranked.values()], color=colours, height=0.7)
        axes.bar_label(bars, fmt="%.2f", padding=3)
        axes.set_yticks(range(len(ranked)), labels=list(ranked))
        axes.set(xlabel="Spearman x 100", xmargin=0.12)
        axes.grid(visible=False, axis="y")
    return [page, path]
