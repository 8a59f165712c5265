"""Near-duplicates as tables to take away: the texts that are kept, and all groups."""

from __future__ import annotations

from collections.abc import Sequence

from cse.app.corpus.chosen import ChosenCorpus
from cse.grouping.duplicates import GROUP_COLUMNS, Member, group_rows
from cse.text.spreadsheet import csv_text


def kept_csv(chosen: ChosenCorpus, groups: Sequence[Sequence[Member]]) -> str:
    """Return the texts that are kept as CSV: row in the corpus, counted from 1, text, and label if there are labels."""
    dropped = {member.row for group in groups for member in group if not member.kept}
    texts, labels = chosen.texts, chosen.labels
    columns = ("row", "text") if labels is None else ("row", "text", "label")
    return csv_text(
        columns,
        (
            (row + 1, text, *(() if labels is None else (labels[row],)))
            for row, text in enumerate(texts)
            if row not in dropped
        ),
    )


def groups_csv(chosen: ChosenCorpus, groups: Sequence[Sequence[Member]]) -> str:
    """Return all groups as CSV, with the columns of the command's table."""
    return csv_text(GROUP_COLUMNS, group_rows(groups, chosen.texts))


TABLES = {"Deduplicated CSV": ("unique.csv", kept_csv), "Groups CSV": ("groups.csv", groups_csv)}
