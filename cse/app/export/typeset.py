"""Tables for papers as LaTeX (booktabs) and as Markdown, in which no text is a command or markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cse.app.export.look import line
from cse.app.export.sheets import LONGEST, sheet
from cse.app.export.taken import caption
from cse.app.export.tidy import TABLES

if TYPE_CHECKING:
    from cse.app.export.taken import Taken

STARS = "**"
ESCAPES = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "`": r"\textasciigrave{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}", "[": "{[}", "*": "{*}",
    "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "≥": r"$\geq$", "≈": r"$\approx$", "\N{MINUS SIGN}": "$-$",
    "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
MARKED = re.compile(r"([\\`*_\[\]|<>~$&])")


def as_latex(taken: Taken) -> str:
    """Return the table as a LaTeX `table` that needs the package booktabs, with the caption of the result."""
    found = sheet(taken)
    names = latex_row(found.head)
    rows = "".join(f"    {latex_row(row, {j for i, j in found.bold if i == n})}\n" for n, row in enumerate(found.rows))
    columns = "l" * found.texts + "r" * (len(found.head) - found.texts)
    return (
        "% \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n"
        f"  \\begin{{tabular}}{{{columns}}}\n    \\toprule\n    {names}\n    \\midrule\n{rows}    \\bottomrule\n"
        f"  \\end{{tabular}}\n  \\caption{{{latex(caption(taken))}}}\n"
        f"  \\label{{tab:{re.sub('[^a-z-]', '', TABLES[taken.endpoint].name)}}}\n\\end{{table}}\n"
    )


def as_markdown(taken: Taken) -> str:
    """Return the table in Markdown with the caption below it."""
    found = sheet(taken)
    rule = ["---"] * found.texts + ["---:"] * (len(found.head) - found.texts)
    rows = [
        [f"{STARS}{cell}{STARS}" if (i, j) in found.bold else cell for j, cell in enumerate(map(markdown, row))]
        for i, row in enumerate(found.rows)
    ]
    lines = "".join(f"| {' | '.join(cells)} |\n" for cells in (map(markdown, found.head), rule, *rows))
    return f"{lines}\n{markdown(caption(taken))}\n"


def latex_row(cells: Sequence[str], bold: set[int] | None = None) -> str:
    """Return a row of a LaTeX table."""
    shown = [f"\\textbf{{{latex(cell)}}}" if place in (bold or ()) else latex(cell) for place, cell in enumerate(cells)]
    return f"{' & '.join(shown)} \\\\"


def latex(text: str) -> str:
    """Escape a text for LaTeX, so that it is typeset as it stands and runs no command.

    A bracket or a star at the beginning of a row would be an argument of the line break before it.
    """
    return "".join(ESCAPES.get(sign, sign) for sign in line(text, LONGEST * 10))


def markdown(text: str) -> str:
    """Escape a text for Markdown, so that it is no markup, HTML or cell of its own."""
    plain = line(text, LONGEST * 10)
    number = re.fullmatch(r"[-+]?[\d.]+( ± [\d.]+)?", plain)
    return plain if number else MARKED.sub(r"\\\1", plain)
