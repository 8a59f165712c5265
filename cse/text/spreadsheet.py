"""CSV tables that are safe from formula injection in spreadsheets. All CSV files of the app and commands use them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

# A spreadsheet may split at separators other than the comma and ignore quotes within a cell, so a formula may begin
# after any of them. Each run of separators, blanks and quotes is matched once, which keeps the time linear.
SIGN = "[=+\\-@\uff1d\uff0b\uff0d\uff20]"  # the last four are full-width forms, which Japanese spreadsheets accept
START = re.compile(rf'(\A[\s",;]*|[,;\t\r\n][\s",;]*)({SIGN}?)')
CUT = ("\t", "\r", "\n")  # spreadsheets drop these before they look for a sign


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV: all cells quoted, texts guarded, numbers unchanged, None as an empty cell."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    for row in (columns, *rows):
        writer.writerow([guard(cell) if isinstance(cell, str) else cell for cell in row])
    return file.getvalue()


def guard(text: str) -> str:
    """Put an apostrophe before each sign in `text` that a spreadsheet could take for the start of a formula."""
    guarded = START.sub(lambda found: f"{found[1]}'{found[2]}" if found[2] else found[0], text)
    return f"'{guarded}" if text.startswith(CUT) else guarded
