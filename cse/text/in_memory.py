"""Examples and scored pairs given in memory, checked as those of files are (`cse.text.sentences`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cse.storage.writing import is_utf_8
from cse.text.sentences import TRIPLET_COLUMNS, Pair, table_texts

if TYPE_CHECKING:
    from datasets import Dataset

IN_MEMORY = "texts in memory"  # their name in errors and records
Texts = Iterable["str | tuple[str, ...]"]


def given_examples(
    data: Texts | Dataset, column: str | None = None, supervised: bool = False, limit: int | None = None
) -> Dataset:
    """Return the first `limit` (or all) examples as a dataset with a column per text: "0", "1", "2".

    `data` is texts, tuples of two or three texts if `supervised`, or a `datasets.Dataset`, whose `column` (or sent0,
    sent1 and optionally hard_neg) is read. Texts are stripped and empty ones skipped, as lines of a file. Raises
    ValueError for anything else, and if there are none.
    """
    from datasets import Dataset

    if not (isinstance(data, Dataset) or is_items(data)):
        raise ValueError(
            f"data is a {type(data).__name__}; give a list of texts such as a column, one split of a dataset, or a path"
        )
    rows: list[tuple[str, ...]] = []
    for row in _of_dataset(data, column, supervised) if isinstance(data, Dataset) else _of_items(data, supervised):
        if len(rows) == limit:
            break
        rows.append(row)
    if not rows:
        raise ValueError(f"{IN_MEMORY}: no sentence in them")
    return Dataset.from_dict({str(number): texts for number, texts in enumerate(zip(*rows, strict=True))})


def is_items(data: object) -> bool:
    """True for a list of items or the like; not for what has columns or keys, such as a data frame or a dataset."""
    columned = any(hasattr(data, name) for name in ("columns", "column_names"))
    return isinstance(data, Iterable) and not (isinstance(data, Mapping) or columned)


def _of_dataset(data: Dataset, column: str | None, supervised: bool) -> Iterator[tuple[str, ...]]:
    rows = ((f"row {number}", row) for number, row in enumerate(data.with_format(None), start=1))
    wanted = TRIPLET_COLUMNS if supervised else () if column is None else (column,)
    for row in table_texts(IN_MEMORY, list(data.column_names), rows, wanted):
        yield tuple(_text(f"{IN_MEMORY}: a row", text) for text in row)


def _of_items(data: Texts, supervised: bool) -> Iterator[tuple[str, ...]]:
    width = 0
    for number, item in enumerate(data, start=1):
        place = f"{IN_MEMORY}: item {number}"
        row = tuple(_text(place, text) for text in (item if supervised and isinstance(item, tuple | list) else [item]))
        if not supervised:
            if row[0]:
                yield row
            continue
        width = width or len(row)
        if len(row) != width or width not in (2, 3) or not all(row):
            raise ValueError(f"{place} has {len(row)} texts or an empty one; give two or three everywhere")
        yield row


def _text(place: str, text: Any) -> str:
    """Return `text`, stripped. Raises ValueError unless it is a string that can be written as UTF-8."""
    if not isinstance(text, str):
        raise ValueError(f"{place} is {text!r:.60}, not a text; give a list of texts, or a datasets.Dataset")
    if not is_utf_8(text):
        raise ValueError(f"{place} holds half of a surrogate pair: {text!r:.60}; decode it again, or remove it")
    return text.strip()


def given_pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Return (score, sentence, sentence) tuples as a list, checked. Raises ValueError that begins with their `name`."""
    checked: list[Pair] = []
    for number, pair in enumerate(pairs, start=1):
        place = f"{name}: pair {number}"
        if not isinstance(pair, tuple | list) or len(pair) != 3:
            raise ValueError(f"{place} is {pair!r:.60}; give (score, sentence, sentence)")
        score, *texts = pair
        if isinstance(score, str | bool) or not math.isfinite(_number(place, score)):
            raise ValueError(f"{place}: the score {score!r} is no finite number")
        checked.append((float(score), _text(place, texts[0]), _text(place, texts[1])))
    if not checked:
        raise ValueError(f"{name}: no pair in it")
    return checked


def _number(place: str, score: Any) -> float:
    try:
        return float(score)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: the score {score!r} is no finite number") from error
