"""Search results as HTML: a row per sentence with its rank in each model, ranks joined by lines, agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cse.analysis.calibration import agreements, rank_biased_overlap, shared
from cse.app.drawing import html
from cse.app.drawing.glossary import term
from cse.app.drawing.verdicts import agreement
from cse.app.models.models import Failure, divided
from cse.app.models.naming import title

if TYPE_CHECKING:
    from index.stores import Hit

MOST = 50  # ranks looked up
STEP, GAP, EDGE = 22, 130, 16  # of the chart in pixels: between two ranks, between two models, at its edges
MARGIN, LONGEST = 420, 48  # pixels beside the chart and characters of a sentence's label
READING = (
    f"Numbers are ranks: tinted among the results, plain further down, a dot beyond rank {MOST}. Each line of the "
    "chart is a sentence; below the dashed line it is not among the results. Point at a sentence or a line to see both."
)
AGREEING = (
    "Above the diagonal: the share of results that two models have in common. Below: rank-biased overlap, in which "
    "early ranks count more. 1 means the same list."
)
EXACT = "Flat"  # the type of an index that misses nothing
EVERYTHING = -1.0  # no cosine is below it


class Found(NamedTuple):
    """A model's best sentences, more than are shown; `least` is the smallest cosine of a result.

    `factory` is the index's type, `recall` its recall@10 if known, `milliseconds` the time of the search without
    encoding the query, `note` why fewer were found than are shown.
    """

    hits: list[Hit]
    factory: str
    recall: float | None = None
    milliseconds: float | None = None
    least: float = EVERYTHING
    note: str = ""

    def results(self, count: int) -> list[Hit]:
        """Return the first `count` hits with a cosine of at least `least`."""
        return [hit for hit in self.hits[:count] if hit.score >= self.least]


def search_html(count: int, answers: Mapping[str, Found | Failure], findable: bool = False) -> str:
    """Return the union of the models' first `count` results: ranks, lines between them, and the models' agreement.

    `findable` links each row to the map of the demo corpus.
    """
    found, failed = divided(answers)
    failures = html.failures(failed)
    if not found:
        return failures
    rows = union(found, count)
    if not rows:
        return (
            f"{failures}{kept_html(count, found)}{html.hint('No sentence reaches the minimum percentile; lower it.')}"
        )
    shared = agreement({name: [hit.position for hit in answer.results(count)] for name, answer in found.items()})
    heads = "".join(head(name, answer) for name, answer in found.items())
    body = "".join(row_html(number, row, found, count, findable) for number, row in enumerate(rows, start=1))
    inside = f'<thead><tr><th scope="col">Sentence</th>{heads}</tr></thead><tbody>{body}</tbody>'
    table = html.table(inside, "Ranks of the sentences found", "cse-table cse-ranks")
    return (
        f"{failures}{kept_html(count, found)}{table}{html.verdict(shared)}{lines_svg(rows, found, count)}"
        f'<p class="cse-note">{READING}</p>{agreement_html(count, found)}'
    )


def union(found: Mapping[str, Found], count: int) -> list[int]:
    """Return the rows of the corpus in any model's results, by mean rank."""
    places = {name: ranks_of(answer) for name, answer in found.items()}
    rows = {hit.position for answer in found.values() for hit in answer.results(count)}
    return sorted(rows, key=lambda row: (sum(ranks.get(row, MOST + 1) for ranks in places.values()), row))


def ranks_of(found: Found) -> dict[int, int]:
    """Return the rank of each row found."""
    return {hit.position: hit.rank for hit in found.hits}


def kept_html(count: int, found: Mapping[str, Found]) -> str:
    """Return each model's number of results above the threshold and its cosine; empty without a threshold."""
    if all(answer.least == EVERYTHING for answer in found.values()):
        return ""
    items = "".join(
        f"<li><b>{html.model(name)}</b>: {len(answer.results(count))} of {len(answer.hits[:count])} "
        f"(cosine {answer.least:.3f} or more)</li>"
        for name, answer in found.items()
    )
    return (
        f'<p class="cse-note">At or above the minimum {term("percentile")}:</p><ul class="cse-agreement">{items}</ul>'
    )


def head(name: str, found: Found) -> str:
    """Return the heading of a model's column: its name, and below it type and recall of an approximate index.

    The time of the search is shown when the heading is pointed at.
    """
    took = "" if found.milliseconds is None else f' title="{html.escape(found.factory)}, {found.milliseconds:.1f} ms"'
    recall = "recall@10 not measured" if found.recall is None else f"recall@10 {found.recall:.2f}"
    about = "" if found.factory == EXACT else f"<small>{html.escape(found.factory)}</small><small>{recall}</small>"
    return f'<th scope="col"{took}>{html.model(name)}{about}</th>'


def row_html(number: int, row: int, found: Mapping[str, Found], count: int, findable: bool) -> str:
    """Return a sentence and its rank in every model, with a badge if only one model found it."""
    hits = {name: next((hit for hit in answer.hits if hit.position == row), None) for name, answer in found.items()}
    finders = [name for name, hit in hits.items() if hit in found[name].results(count)]
    alone = len(finders) == 1 and len(found) > 1
    badge = f' <span class="cse-badge">only {html.escape(title(finders[0]))}</span>' if alone else ""
    text = next(hit.text for hit in hits.values() if hit)
    link = f' <a class="cse-on-map" href="?tab=clusters&amp;pin={row}">on the map</a>' if findable else ""
    cells = "".join(f"<td>{rank_html(hit, name in finders)}</td>" for name, hit in hits.items())
    place = f'<span class="cse-place">{number}</span> '
    return f'<tr data-row="{row}"><th scope="row">{place}{html.folded(text)}{badge}{link}</th>{cells}</tr>'


def rank_html(hit: Hit | None, chosen: bool) -> str:
    """Return a rank with its cosine, marked if it is a result; a dot without a hit."""
    if hit is None:
        return f'<span class="cse-rank" aria-hidden="true">·</span><span class="cse-hidden">not in {MOST}</span>'
    kind = "cse-rank cse-found" if chosen else "cse-rank"
    return f'<span class="{kind}">{hit.rank}</span><span class="cse-score">{hit.score:.3f}</span>'


def lines_svg(rows: Sequence[int], found: Mapping[str, Found], count: int) -> str:
    """Return a line per sentence through its ranks, a column per model, with its beginning after the last model.

    Sentences that the last model lacks are named below the dashed line.
    """
    if len(found) < 2:
        return ""
    columns = [ranks_of(answer) for answer in found.values()]
    texts = {hit.position: hit.text for answer in found.values() for hit in answer.hits}
    beyond = min(count, max(len(answer.hits) for answer in found.values())) + 1
    below = [row for row in rows if columns[-1].get(row, beyond) >= beyond]
    deep = beyond + max(len(below), 1)
    width, height = 2 * EDGE + GAP * (len(columns) - 1), 2 * EDGE + STEP * (deep - 1) - STEP // 2
    ends = {row: beyond + place for place, row in enumerate(below)}
    lines = "".join(line_svg(texts[row], row, columns, beyond, ends.get(row)) for row in rows)
    names = "".join(
        f'<text x="{EDGE + GAP * place}" y="-6" class="cse-line-name">{html.escape(cut(title(name)))}</text>'
        for place, name in enumerate(found)
    )
    edge = EDGE + STEP * (beyond - 1) - STEP // 2
    return (
        f'<div class="cse-scroll" role="group" tabindex="0" aria-label="Ranks of the sentences by model">'
        f'<svg class="cse-lines" viewBox="-60 -24 {width + MARGIN} {height + 24}" width="{width + MARGIN}" '
        f'height="{height + 24}">{names}<path class="cse-beyond" d="M0 {edge}H{width}"/>{lines}</svg></div>'
    )


def line_svg(text: str, row: int, columns: Sequence[Mapping[int, int]], beyond: int, end: int | None) -> str:
    """Return the line of a sentence, with its rank at the first end and its beginning at the last.

    `end` is where it ends if the last model lacks it, counted as ranks are.
    """
    ranks = [min(ranks.get(row, beyond), beyond) for ranks in columns]
    spoken = ", ".join(str(rank) if rank < beyond else "none" for rank in ranks)
    places = [*ranks[:-1], end or ranks[-1]]
    points = [(EDGE + GAP * place, EDGE + STEP * (rank - 1)) for place, rank in enumerate(places)]
    path = " ".join(f"{x},{y}" for x, y in points)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="4"/>' for x, y in points)
    (left, first), (right, last) = points[0], points[-1]
    rank = f'<text x="{left - 10}" y="{first + 4}" class="cse-line-rank">{ranks[0]}</text>' if ranks[0] < beyond else ""
    label = html.escape(cut(text, LONGEST))
    return (
        f'<g data-row="{row}" tabindex="0" role="img" aria-label="{html.shortened(text)}: ranks {spoken}">'
        f'<title>{html.shortened(text)}</title><polyline points="{path}"/>{dots}{rank}'
        f'<text x="{right + 10}" y="{last + 4}" class="cse-line-text">{label}</text></g>'
    )


def cut(name: str, most: int = 12) -> str:
    """Return a name shortened to at most `most` characters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def agreement_html(count: int, found: Mapping[str, Found]) -> str:
    """Return the models' pairwise overlap above the diagonal, and their rank-biased overlap below."""
    if len(found) < 2:
        return ""
    names = list(found)
    lists = [[hit.position for hit in answer.results(count)] for answer in found.values()]
    common, weighted = (agreements(lists, measure) for measure in (shared, rank_biased_overlap))
    rows = []
    for place, name in enumerate(names):
        cells = (
            f"{(common if other > place else weighted)[place][other]:.2f}{kind(other, place)}"
            for other in range(len(names))
        )
        rows.append(html.row(cells, html.model(name)))
    table = html.headed([None, *map(html.model, names)], rows, "Agreement of the models", "cse-table cse-matrix")
    return f'<h2 class="cse-heading">Agreement</h2>{table}<p class="cse-note">{AGREEING}</p>'


def kind(column: int, row: int) -> str:
    """Return the name of a figure of the matrix, for screen readers."""
    if column == row:
        return ""
    return f'<span class="cse-hidden"> {"shared" if column > row else "rank-biased"}</span>'
