"""Near-duplicates of a corpus in one model: exact copies, and groups of near texts with the wrong merges to expect."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from cse.analysis.attribution import MAX_COMPARED_WORDS, changes, compared
from cse.analysis.duplicates import STEP, STRICTEST, percentile_of
from cse.app import html
from cse.app.corpus.corpora import FIELD
from cse.app.models.models import ClientLeft, NotYet
from cse.app.models.naming import BEFORE, title
from cse.app.result import Result, choice, fields_of, further_columns, number, records, text, whole
from cse.app.server.gradio_adapter import client_left
from cse.app.state import chosen_columns
from cse.app.validation import FieldError, counted
from cse.corpus.corpus import free_name

if TYPE_CHECKING:
    from cse.analysis.duplicates import NearDuplicates
    from cse.app.state import Session
    from cse.training.records import Report

LEAST = 3.0  # digits of a percentile: 5 is 99.999
MIN_TEXTS, SEED = 2, 42
PER_PAGE, SHOWN_GROUPS, OPENED_GROUPS, SHOWN_MEMBERS = 100, 40, 6, 8
KEPT = {"first": "The first", "longest": "The longest", "central": "The most central"}
OWN_COLUMNS = (
    "group", "first", "size", "exact", "weakest", "expected", "merged", "position", "row", "text", "kept", "cosine",
    "reason",
)  # fmt: skip
MARKS = {"both": Markup("{}"), "first": Markup("<del>{}</del>"), "second": Markup("<ins>{}</ins>")}


@dataclass(frozen=True)
class Duplicates(Result):
    """The groups of near-duplicates of a corpus in one model, the most certain first."""

    key = "duplicates"
    title = "Near-duplicates"
    summary = (
        'Near-duplicates: {"cosine": 0.9, "kept": 1190, "groups": 8, "page": [[{"row": 3, "kept": true, ...}]]}.\n\n'
        "A member of a group has its row in the corpus (from 0), the number of its row in the file (from 1), "
        'its text, the other columns as "fields", whether it is kept, its cosine with the kept one, and the reason. '
        '"expected" is how many pairs of unrelated texts are as near by chance; "curve" has the numbers for all '
        'strictnesses, "advised" the best.'
    )
    words = ("percentile",)
    lane = "links"
    ships = False

    model: str = choice("Model", "", "The model", "the name of a model, by default the first.", ())
    nines: float = number(
        "From loose to strict", 0.0, "The strictness",
        "the percentile of unrelated pairs that a cosine has to reach, by its digits: 3 is 99.9, 5 is 99.999; 0 is the "
        "loosest where at most one merge in a hundred is wrong by chance.", 0.0, STRICTEST, STEP,
    )  # fmt: skip
    keep: str = choice(
        "Keep from each group", "first", "The text to keep", "the text to keep: first, longest or central.",
        [(label, name) for name, label in KEPT.items()],
    )  # fmt: skip
    page: int = whole("Page", 1, "The page", "which hundred groups, from 1.", 1, 50_000, folded=True)
    rejected: str = text(
        "Rejected", "", "The rejected groups", "groups that are no duplicates: the row of the first text of each.",
        may_be_empty=True, folded=True,
    )  # fmt: skip

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each member of a group, the groups with the fewest wrong merges to expect first.

        The columns of the corpus are the last; one that has a name of ours ends with a blank.

        `exact` groups have equal texts; a `merged` one is not rejected. `attrs` has the numbers of the whole corpus,
        and what texts and model they were `searched_by`. Raises FieldError for a single text, and for a model without
        vectors; NotYet for one that reads the texts.
        """
        from cse.analysis.duplicates import groups_of, members
        from cse.analysis.votes import texts_digest

        if 0 < self.nines < LEAST:
            raise FieldError("The strictness", f"The strictness must be {LEAST:g} to {STRICTEST:g}, or 0 as advised")
        corpus, names = session.corpus, [column.name for column in session.columns]
        names.sort(key=lambda name: name.endswith(BEFORE))  # stable: a model after its training is asked first
        column = chosen_columns(session.columns, [self.model or names[0]])[0] if names else None
        if column is None or len(corpus.texts) < MIN_TEXTS:
            raise FieldError(FIELD, "The corpus has 1 text; near-duplicates need at least 2.")

        vectors = session.each(corpus.vectors, [column]).get(column.name)
        if vectors is None:
            reason = session.failed.pop(column.name)
            if column.name in session.waiting:
                raise NotYet(reason)
            raise FieldError("The model", f"{title(column.name)}: {reason}")
        texts, numbers = corpus.texts, corpus.numbers
        searched_by = texts_digest(texts), *map(str, column.opened_by)
        near = session.state.near.get(searched_by)
        if near is None:
            near = searched(texts, vectors, session.report)
            session.state.near.put(searched_by, near)
        level = near.at(self.nines) if self.nines else near.advised
        forest, rejected = near.forest, {int(row) for row in self.rejected.split(",") if row.strip().isdecimal()}
        numbered = forest.groups(level.cosine)
        weakest = np.ones(forest.count)
        strong = forest.cosines >= level.cosine
        np.minimum.at(weakest, numbered[forest.pairs[strong, 0]], forest.cosines[strong])
        slider = [place.cosine for place in near.places], [place.nines for place in near.places]
        lines: list[dict[str, Any]] = []
        for rows in groups_of(numbered):
            lengths = np.array([len(texts[row]) for row in rows])
            cosine = float(weakest[numbered[rows[0]]])
            shared = {
                "first": numbers[rows[0]], "size": len(rows), "exact": len({texts[row] for row in rows}) == 1,
                "weakest": cosine, "expected": near.by_chance(percentile_of(float(np.interp(cosine, *slider)))),
                "merged": numbers[rows[0]] not in rejected,
            }  # fmt: skip
            lines += [
                {**shared, "position": one.row, "row": numbers[one.row], "text": texts[one.row], "kept": one.kept,
                 "cosine": one.cosine, "reason": one.reason}
                for one in members(rows, vectors[rows], lengths, level.cosine, self.keep)
            ]  # fmt: skip
        lines.sort(key=lambda line: (not line["exact"], -line["weakest"], line["first"]))  # stable: groups stay whole
        frame = pd.DataFrame(lines)
        if lines:
            frame.insert(0, "group", pd.factorize(frame["first"])[0] + 1)
            frame = frame.join(corpus.further(frame["position"].tolist(), OWN_COLUMNS))
        frame.attrs = {
            **level._asdict(), "model": column.name, "texts": len(texts), "advised": near.advised.nines,
            "expected": near.by_chance(level.percentile), "curve": [place._asdict() for place in near.places],
            "searched_by": searched_by, "without_text": corpus.without_text,
        }  # fmt: skip
        return frame

    def says(self, frame: pd.DataFrame) -> str:
        facts = frame.attrs
        merged = frame[frame["merged"]] if len(frame) else frame
        gone, groups = (int((~merged["kept"]).sum()), merged["group"].nunique()) if len(frame) else (0, 0)
        missing = facts["without_text"]
        without = f" {counted(missing, 'row')} without a text: in no file." if missing else ""
        return (
            f"{gone:,} of {counted(facts['texts'], 'text')} would go, in {counted(groups, 'group')}; "
            f"wrong links to expect by chance: {expected(facts['expected'])}. Texts are linked from a cosine of "
            f"{facts['cosine']:.3f} in {title(facts['model'])} on.{without}"
        )

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        if len(frame):
            frame = frame.assign(fields=fields_of(frame, OWN_COLUMNS))
        groups = [members.to_dict("records") for _, members in frame.groupby("group")] if len(frame) else []
        exact, near = ([group for group in groups if group[0]["exact"] is kind] for kind in (True, False))
        shown, copies = (
            [
                {**group[0], "chance": expected(group[0]["expected"]), "members": [
                    marked(line, group) for line in sorted(group, key=lambda line: not line["kept"])[:SHOWN_MEMBERS]
                ]}
                for group in groups_of_kind[:SHOWN_GROUPS]
            ]
            for groups_of_kind in (near, exact)
        )  # fmt: skip
        return {
            "near": shown, "copies": copies, "near_count": len(near), "exact_count": len(exact), "most": SHOWN_MEMBERS,
            "opened": OPENED_GROUPS,
        }  # fmt: skip

    def answer(self, frame: pd.DataFrame) -> Any:
        facts = {name: value for name, value in frame.attrs.items() if name not in ("model", "searched_by")}
        if frame.empty:
            return {**facts, "page": []}
        frame = frame.assign(fields=fields_of(frame, OWN_COLUMNS))
        first = PER_PAGE * (self.page - 1)
        columns = ["position", "kept", "cosine", "reason", "row", "text", "fields", "exact", "expected"]
        names = {"position": "row", "row": "number"}
        groups = [members[columns].rename(columns=names) for _, members in frame.groupby("group")]
        return {**facts, "page": [records(members) for members in groups[first : first + PER_PAGE]]}


def searched(texts: Sequence[str], vectors: np.ndarray, report: Report) -> NearDuplicates:
    """Return the near-duplicates of texts by their vectors (N, d)."""
    from cse.analysis.duplicates import near_duplicates
    from cse.evaluation.metrics import numbered
    from index import BuildSettings, VectorIndex

    distinct, rows = numbered(texts)
    unique = vectors[np.unique(rows, return_index=True)[1]]

    def done(count: int, total: int) -> None:
        if client_left():
            raise ClientLeft
        report(count, total, "comparing all pairs of texts")

    with tempfile.TemporaryDirectory(prefix="cse-app-", ignore_cleanup_errors=True) as folder:
        index = VectorIndex.build([(distinct, unique)], Path(folder) / "index", settings=BuildSettings())
        return near_duplicates(unique, index.search, rows, SEED, done)


def expected(merges: float) -> str:
    """Return a number of expected wrong merges in words."""
    return "fewer than 1 in 100" if merges < 0.01 else f"{merges:.2g}" if merges < 10 else f"about {merges:,.0f}"


def marked(line: dict[str, Any], group: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a member with its text as HTML; differences from the kept one are marked if they share half the words."""
    kept = next(other["text"] for other in group if other["kept"])
    runs = [] if line["kept"] or line["exact"] else changes(kept, line["text"])
    shared, others = (sum(len(run.words) for run in runs if (run.kind == "both") is both) for both in (True, False))
    if not runs or shared < others / 2:
        return {**line, "html": Markup(html.folding(html.escape(line["text"]), len(line["text"])))}
    cut = " …" if len(compared(line["text"])) > MAX_COMPARED_WORDS else ""
    inside = Markup(" ").join(MARKS[run.kind].format(run.words) for run in runs) + cut
    return {**line, "html": Markup(html.folding(str(inside), len(line["text"])))}


def tables(frame: pd.DataFrame, session: Session) -> dict[str, tuple[list[str], Iterable[tuple[Any, ...]]]]:
    """Return the tables to save, each its columns and rows: the texts that are kept, and the groups that are merged."""
    from cse.analysis.duplicates import GROUP_COLUMNS

    merged = frame[frame["merged"]] if len(frame) else frame
    gone = set(merged.loc[~merged["kept"], "position"]) if len(merged) else set()
    corpus = session.corpus
    left = [row for row in range(len(corpus.texts)) if row not in gone]
    texts = free_name(corpus.text_name, ["row"])
    rows = corpus.further(left, ("row", texts))
    rows.insert(0, "row", [corpus.numbers[row] for row in left])
    rows.insert(1, texts, [corpus.texts[row] for row in left])
    columns = [*GROUP_COLUMNS, *further_columns(frame, OWN_COLUMNS)] if len(frame) else list(GROUP_COLUMNS)
    groups = merged.reindex(columns=columns)
    groups["kept"] = groups["kept"].map({True: "yes", False: "no"})
    return {name: (list(table.columns), table.itertuples(index=False)) for name, table in
            (("unique.csv", rows), ("groups.csv", groups))}  # fmt: skip
