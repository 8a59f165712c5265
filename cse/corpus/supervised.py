"""What is trained and selected on: texts, pairs with hard negatives, and scored pairs, of any source (`Corpus`).

The columns of pairs are told by their names, such as sent0, sent1 and hard_neg, or by their content; labels are used as
labels and never as texts. Each reader says in one line what it understood, and asks for what it cannot decide. The
columns of scored pairs are told in the same way; STS-B and SICK are read as they are published.
"""

from __future__ import annotations

import codecs
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus import formats
from cse.corpus.corpus import IN_MEMORY, SAMPLE_ROWS, Corpus, check_text, is_items, source_in_memory
from cse.corpus.dialect import USUAL_NAMES, is_number, prose
from cse.corpus.formats import Options
from cse.corpus.lines import head, text_lines
from cse.corpus.source import values_of
from cse.files.remote import is_remote, local_copy, naming, shown
from cse.files.writing import check_regular

PAIRS = {  # names of an anchor and its positive, and of a hard negative beside them
    ("sent0", "sent1"): "hard_neg", ("anchor", "positive"): "negative", ("query", "positive"): "negative",
    ("sentence1", "sentence2"): "", ("premise", "hypothesis"): "", ("question1", "question2"): "",
    ("sentence_a", "sentence_b"): "", ("text1", "text2"): "",
}  # fmt: skip
EXAMPLE_COLUMNS = ("sent0", "sent1", "hard_neg")  # as SimCSE's NLI file calls them
NLI = ("premise", "hypothesis")  # numbers beside them are codes of entailment
LABELS = ("gold_label", "label", "labels", "is_duplicate", "entailment_judgment", "entailment_label")
SCORES = ("score", "similarity", "relatedness_score", "gold", "label")
PAIR, NEGATIVE, NEUTRAL, UNLABELLED = "a pair", "a hard negative", "neutral", "without a label"
MEANINGS = {
    **dict.fromkeys(("entailment", "entails", "entailed", "true", "yes"), PAIR),
    **dict.fromkeys(("duplicate", "paraphrase", "equivalent"), PAIR),
    **dict.fromkeys(("contradiction", "contradicts", "contradictory", "false", "no"), NEGATIVE),
    **dict.fromkeys(("not_duplicate", "not_paraphrase", "not_equivalent"), NEGATIVE),
    **dict.fromkeys(("neutral", "not_entailment"), NEUTRAL), **dict.fromkeys(("-", "", "-1"), UNLABELLED),
}  # fmt: skip
OF_THREE, OF_TWO = {"0": PAIR, "1": NEUTRAL, "2": NEGATIVE}, {"1": PAIR, "0": NEGATIVE}
UNEXPLAINED = ("entailment", "neutral", "contradiction", "-", "-1", "")
MAX_LABELS, MAX_LABEL_WORDS = 20, 3  # distinct labels of a column, words in one
MIN_NEGATIVE_SHARE = 0.1  # of pairs; fewer hard negatives would be repeated in every batch
BLOCK = 10_000  # anchors that are read at once
ROWS_OF_LABELS = 100_000  # that are read at least, to know all labels
PLAIN_COLUMNS = (0, 1, 2)  # score, sentence, sentence
STS_B_WIDTH, STS_B_COLUMNS = 7, (4, 5, 6)  # of genre, file, year, id, score and two sentences, without a header

Pair = tuple[float, str, str]
Note = Callable[[str], object]
log = logging.getLogger("cse.corpus")


def texts_of(table: pa.Table, column: str, rows: np.ndarray | None = None) -> list[str]:
    """Return the texts of a column, or of its `rows` (n,), without blanks at their ends; "" for a missing cell.

    Only chunks that hold one of the rows are read: a large table is mapped from a file.
    """
    chunks, entry = table.column(column).chunks, table.schema.field(column)
    ends = np.cumsum([len(chunk) for chunk in chunks])
    rows = np.arange(table.num_rows) if rows is None else rows
    texts, chunk_of = [""] * len(rows), np.searchsorted(ends, rows, "right")
    for number in np.unique(chunk_of).tolist():
        at, chunk = np.flatnonzero(chunk_of == number), chunks[number]
        cells = chunk.take(pa.array(rows[at] - (ends[number] - len(chunk))))
        for position, value in zip(at.tolist(), values_of(entry, cells), strict=True):
            texts[position] = "" if value is None or value != value else str(value).strip()
    return texts


@dataclass(frozen=True)
class Examples:
    """Texts to train on, which can be read in any order without loading all of them.

    View v of example i is the text of the column `views[v][0]` of the table in the row `views[v][1][i]`. `understood`
    says how their source was read.
    """

    table: pa.Table
    views: Sequence[tuple[str, np.ndarray]]
    understood: str = ""

    @classmethod
    def of(cls, *columns: Sequence[str]) -> Examples:
        """Return the examples of a column of texts per view."""
        table = pa.table({str(number): pa.array(texts, pa.large_string()) for number, texts in enumerate(columns)})
        return cls(table, [(name, np.arange(table.num_rows)) for name in table.schema.names])

    def __len__(self) -> int:
        return len(self.views[0][1])

    def __getitem__(self, numbers: slice | Sequence[int] | np.ndarray) -> dict[str, list[str]]:
        """Return the texts of some examples by view: "0", "1", "2"."""
        return {str(view): texts_of(self.table, name, rows[numbers]) for view, (name, rows) in enumerate(self.views)}

    def select(self, numbers: slice | Sequence[int]) -> Examples:
        """Return some of the examples."""
        return replace(self, views=[(name, rows[numbers]) for name, rows in self.views])

    def anchors(self) -> Iterator[str]:
        """Yield the texts of the first view."""
        name, rows = self.views[0]
        for start in range(0, len(rows), BLOCK):
            yield from texts_of(self.table, name, rows[start : start + BLOCK])


def training_examples(
    data: Any,
    column: str | None = None,
    *,
    supervised: bool = False,
    options: Options | None = None,
    limit: int | None = None,
) -> Examples:
    """Return the examples of a path, a hub id, or anything that `Corpus.of` takes, or the first `limit` of them.

    Unsupervised, `column` holds the texts. If `supervised`, it names two or three columns, separated by commas: anchor,
    positive, and a hard negative or label; by default they are told by `PAIRS` or their content. Tuples of two or three
    texts are examples, too. Raises ValueError, which names the source and the cure.
    """
    data = list(data) if is_items(data) else data
    if supervised and isinstance(data, list) and not all(isinstance(item, Mapping) for item in data):
        data = _of_tuples(data)
    name, rows = _name(data), limit
    if supervised and limit is not None:
        rows = max(limit, ROWS_OF_LABELS)
    while True:
        if supervised:
            corpus, examples = _supervised(data, column, options, rows)
        else:
            corpus = Corpus.of(data, column, limit=rows, options=options)
            examples = Examples(corpus.table, [(corpus.text, corpus.positions)], corpus.understood())
        if rows is None or len(examples) >= (limit or 0) or corpus.table.num_rows != rows:
            break
        rows *= 4  # rows without a text, and rows that are left out, are no examples
    if not len(examples):
        if supervised and examples.understood:
            raise ValueError(f"{name}: no pair in it ({examples.understood}); give pairs that mean the same")
        raise ValueError(f"{name}: no sentence in {'them' if name == IN_MEMORY else 'it'}")
    if limit is None or len(examples) <= limit:
        return examples
    return replace(examples.select(slice(limit)), understood=f"{examples.understood}; the first {limit:,} are used")


def _name(data: Any) -> str:
    return str(data) if isinstance(data, str | Path) else data.name if isinstance(data, Corpus) else IN_MEMORY


def _of_tuples(items: Sequence[Any]) -> pa.Table:
    """Return a table of tuples of two or three texts. Raises ValueError for anything else."""
    width = len(items[0]) if items and isinstance(items[0], tuple | list) else 2
    for number, item in enumerate(items, start=1):
        row = item if isinstance(item, tuple | list) else [item]
        texts = [check_text(text, number).strip() for text in row]
        if len(row) != width or width not in (2, 3) or not all(texts):
            raise ValueError(f"{IN_MEMORY}: item {number} has {len(row)} texts or an empty one; give 2 or 3")
    columns = zip(*items, strict=True) if items else [()] * width
    names = EXAMPLE_COLUMNS[:width]
    return pa.table({name: pa.array(cells, pa.large_string()) for name, cells in zip(names, columns, strict=True)})


@dataclass(frozen=True)
class _Sample:
    """The first rows of a source, by which the roles of its columns are told; `guessed` if its header may be none."""

    name: str
    format: str
    cells: dict[str, list[str]]  # by column
    header: bool
    guessed: bool

    @classmethod
    def of(cls, data: Any, options: Options) -> tuple[_Sample, Options]:
        """Return the sample, and how to read the whole: a first row of usual names is a header."""
        sample = cls._of(data, options)
        if sample.guessed and not sample.header:
            first = {cells[0].lower() for cells in sample.cells.values() if cells}
            if any(set(pair) <= first for pair in PAIRS):
                options = replace(options, header=True)
                sample = cls._of(data, options)
        elif sample.guessed:
            options = replace(options, header=True)
        return sample, options

    @classmethod
    def _of(cls, data: Any, options: Options) -> _Sample:
        if isinstance(data, Corpus):
            kind, header, guessed, first = "table", True, False, data.table.slice(0, SAMPLE_ROWS)
        else:
            source = formats.read(str(data), options) if isinstance(data, str | Path) else source_in_memory(data)
            _, batch = next(source.batches, (None, None))
            kind, header = source.format, source.header is not False  # None: the first row may be one
            guessed = kind in (formats.DELIMITED, formats.XLSX) and options.header is None
            first = pa.Table.from_batches([] if batch is None else [batch.slice(0, SAMPLE_ROWS)], source.schema)
        cells = {name: texts_of(first, name) for name in first.schema.names}
        return cls(_name(data), kind, cells, header, guessed)

    @property
    def names(self) -> dict[str, str]:
        """The columns by their names in lower case."""
        return {name.strip().lower(): name for name in self.cells}

    def words(self, name: str) -> float:
        """The median number of words in a column's cells."""
        return median([len(cell.split()) for cell in self.cells[name] if cell] or [0])

    def holds_numbers(self, name: str) -> bool:
        filled = [cell for cell in self.cells[name] if cell]
        return bool(filled) and all(map(is_number, filled))

    def holds_labels(self, name: str) -> bool:
        """True if a column holds numbers, known labels, or few short values beside longer texts."""
        filled = [cell for cell in self.cells[name] if cell]
        if not filled or self.holds_numbers(name) or _known(filled):
            return bool(filled)
        longer = max((self.words(other) for other in self.cells if other != name), default=0)
        distinct = set(filled)
        if max(len(cell.split()) for cell in distinct) > MAX_LABEL_WORDS or longer < 2 * self.words(name):
            return False
        return len(distinct) <= MAX_LABELS and (len(distinct) < len(filled) or (self.words(name) < 2 and longer > 2))

    def ask(self, what: str, cure: str) -> ValueError:
        """The error of a source whose columns cannot be told."""
        return ValueError(f"{self.name}: {what} It has the columns {', '.join(list(self.cells)[:40])}; {cure}")


def _known(cells: Iterable[str]) -> bool:
    return all(cell.lower() in MEANINGS for cell in cells)


ASK_PAIRS = (
    "name them by `column` as ANCHOR,POSITIVE or ANCHOR,POSITIVE,NEGATIVE_OR_LABEL, or call them sent0, sent1 and "
    "hard_neg, or sentence1, sentence2 and label"
)


def _supervised(data: Any, column: str | None, options: Options | None, limit: int | None) -> tuple[Corpus, Examples]:
    sample, options = _Sample.of(data, options or Options())
    if sample.format == formats.TEXT and sample.cells:
        raise ValueError(
            f"{sample.name}: supervised training needs two or three columns, and this holds a text a line; give a "
            "table, or its delimiter"
        )
    if sample.guessed and sample.header and not _header_needed(sample, column):
        options = replace(options, header=False)
        sample, options = _Sample.of(data, options)
    if not sample.cells:
        return Corpus.of(data, options=options), Examples.of([], [])
    first, second, negative, label = _roles(sample, column)
    corpus = Corpus.of(data, first, limit=limit, options=options)
    facts = [corpus.heading, f"pairs from `{first}` and `{second}`"]
    if negative:
        facts[1] += f", hard negatives from `{negative}`"
    both = np.intersect1d(corpus.positions, Corpus.of(corpus, second).positions)
    if label:
        pairs, negatives, said = _by_labels(corpus, both, (first, second, label))
        facts[1] += f", labels from `{label}`{said[0]}"
    else:
        pairs, negatives, said = both, np.full(len(both), -1), [""]
        if negative:
            filled = np.isin(both, Corpus.of(corpus, negative).positions)
            negatives = np.where(filled, both, -1)
    if (empty := corpus.table.num_rows - len(both)) > 0:
        said.append(f"{_rows(empty)} without a text left out")
    views, counted = _views((first, second, negative or second), pairs, negatives)
    return corpus, Examples(corpus.table, views, "; ".join([*facts, *counted, *said[1:]]))


def _rows(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}row{'' if count == 1 else 's'}"


def _views(
    columns: tuple[str, str, str], pairs: np.ndarray, negatives: np.ndarray
) -> tuple[list[tuple[str, np.ndarray]], list[str]]:
    """Return the views of pairs (n,), whose hard negatives are in the rows `negatives` (n,), -1 for none; what to say.

    `columns` are those of anchors, positives and hard negatives. In the loss each hard negative of a batch is a
    negative of all its anchors. So a pair without one takes that of another pair, in turn; where few pairs have one,
    the same texts would fill every batch, and none is used.
    """
    views = [(column, pairs) for column in columns[:2]]
    own = np.flatnonzero(negatives >= 0)
    said = [f"{len(pairs):,} pair{'' if len(pairs) == 1 else 's'}"]
    if not len(own):
        return views, said
    said[0] += ", each with a hard negative" if len(own) == len(pairs) > 1 else f", {len(own):,} with a hard negative"
    if len(own) < MIN_NEGATIVE_SHARE * len(pairs):
        return views, [*said, f"so few hard negatives are not used (at least {MIN_NEGATIVE_SHARE:.0%} of the pairs)"]
    if len(own) < len(pairs):
        said.append("the other pairs take theirs in turn")
        turn = cycle(negatives[own].tolist())
        negatives = np.array([row if row >= 0 else next(turn) for row in negatives.tolist()], np.int64)
    return [*views, (columns[2], negatives)], said


def _header_needed(sample: _Sample, column: str | None) -> bool:
    """True for a header that has a usual name or those in `column`, or single words over texts of several."""
    if column is not None and USUAL_NAMES.isdisjoint(sample.names):
        return not all(name.strip().isdecimal() and name.strip() not in sample.cells for name in column.split(","))
    return not USUAL_NAMES.isdisjoint(sample.names) or (
        all(len(name.split()) == 1 for name in sample.cells)
        and all(sample.words(name) >= 2 for name in list(sample.cells)[:2])
    )


def _roles_by_name(sample: _Sample) -> tuple[str, str, str | None, str | None] | None:
    """Return the columns of anchor, positive, hard negative and label that their names show, if any do."""
    names = sample.names
    for (first, second), negative in PAIRS.items():
        if first not in names or second not in names:
            continue
        pair = names[first], names[second]
        if negative in names and any(sample.cells[names[negative]]):
            if sample.holds_numbers(names[negative]) or _known(sample.cells[names[negative]]):
                raise sample.ask(f"`{names[negative]}` holds labels, not hard negatives.", "call it label")
            return *pair, names[negative], None
        if label := next((names[name] for name in LABELS if name in names), None):
            return *pair, None, label
        others = [name for name in sample.cells if name not in pair]
        labels = [name for name in others if any(sample.cells[name]) and _known(sample.cells[name])]
        if len(labels) == 1:
            return *pair, None, labels[0]
        further = [name for name in others if name != names.get(negative) and name.lower().startswith(("neg", "score"))]
        if negative and further:  # negative_1, negative_2; or a score, by which some are no pairs
            raise sample.ask(f"`{further[0]}` would not be read: beside pairs only `{negative}` is.", ASK_PAIRS)
        if negative or not others:
            return *pair, names.get(negative or ""), None  # the first rows may have none
        raise sample.ask("which column holds the labels of its pairs?", ASK_PAIRS)
    return None


def _roles(sample: _Sample, column: str | None) -> tuple[str, str, str | None, str | None]:
    """Return the columns of anchor, positive, hard negative and label. Raises ValueError if they cannot be told."""
    columns = list(sample.cells)
    if column is not None:
        columns = [name.strip() for name in column.split(",")]
        if unknown := [name for name in columns if name not in sample.cells]:
            raise sample.ask(f"no column {unknown[0]!r}.", ASK_PAIRS)
    elif by_name := _roles_by_name(sample):
        return by_name
    elif sample.header and not sample.guessed:
        raise sample.ask("which columns hold pairs?", ASK_PAIRS)
    if len(columns) not in (2, 3) or len(set(columns)) < len(columns):
        raise sample.ask("supervised training needs two or three columns.", ASK_PAIRS)
    labels = [name for name in columns if sample.holds_labels(name)]
    if len(labels) == 1 and len(columns) == 3 and (labels[0] == columns[2] or _known(sample.cells[labels[0]])):
        first, second = (name for name in columns if name != labels[0])
        return first, second, None, labels[0]
    if labels:
        shown = ", ".join(sorted(set(sample.cells[labels[0]]))[:4])
        raise sample.ask(f"column {labels[0]!r} holds labels or numbers ({shown}), not texts to train on.", ASK_PAIRS)
    return columns[0], columns[1], columns[2] if len(columns) == 3 else None, None


def _by_labels(
    corpus: Corpus, rows: np.ndarray, columns: tuple[str, str, str]
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the rows of pairs (n,), those of their hard negatives (n,) or -1, and what to say.

    The hard negatives of a pair are contradictions of the same anchor: its first pair has the first one.
    """
    first, second, label = columns
    cells = texts_of(corpus.table, label, rows)  # compared in lower case, whole numbers without decimals
    labels = [cell.removesuffix(".0").lower().replace(" ", "_").replace("non-", "not_") for cell in cells]
    meanings, said = _meanings(corpus, label, dict.fromkeys(labels), (first.lower(), second.lower()) == NLI)
    meant = np.array([meanings[cell] for cell in labels], object)
    counts, anchors = Counter(meant.tolist()), np.array(texts_of(corpus.table, first, rows), object)
    contradictions: dict[str, list[int]] = defaultdict(list)
    for anchor, row in zip(anchors[meant == NEGATIVE], rows[meant == NEGATIVE].tolist(), strict=True):
        contradictions[anchor].append(row)
    turns = {anchor: cycle(of_anchor) for anchor, of_anchor in contradictions.items()}
    of_pairs = [next(turns[anchor]) if anchor in turns else -1 for anchor in anchors[meant == PAIR]]
    parts = [said]
    if counts[NEUTRAL]:
        parts.append(f"{_rows(counts[NEUTRAL], 'neutral ')} left out")
    if counts[UNLABELLED]:
        parts.append(f"{_rows(counts[UNLABELLED])} without a label left out")
    if unused := counts[NEGATIVE] - len({*of_pairs} - {-1}):
        parts.append(f"{unused:,} hard negative{'' if unused == 1 else 's'} of no pair left out")
    return rows[meant == PAIR], np.array(of_pairs, np.int64), parts


def _meanings(corpus: Corpus, column: str, labels: Collection[str], nli: bool) -> tuple[dict[str, str], str]:
    """Return what each label means, and numbers explained. Raises ValueError for labels that are not known."""
    codes = OF_THREE if "2" in labels or nli else OF_TWO
    meanings = MEANINGS | codes
    if unknown := [label for label in labels if label not in meanings]:
        raise ValueError(
            f"{corpus.name}: `{column}` holds {', '.join(map(repr, unknown[:4]))}; labels are entailment, neutral and "
            "contradiction, their numbers 0, 1 and 2, or 1 and 0 for pairs that mean the same and others; write these, "
            "or name the two columns of pairs by `column`"
        )
    said = ", ".join(f"{label} {meanings[label]}" for label in sorted(labels) if label not in UNEXPLAINED)
    return meanings, f" ({said})" if said else ""


def scored_pairs(source: Any, note: Note | None = None) -> list[Pair]:
    """Return (score, sentence, sentence) of a file of scored pairs, or of a table in memory.

    Columns are told by their names, or by being the one of scores and the two of texts. Tab-separated files without a
    header are score, sentence, sentence, or those of STS-B as published; quotes in them are characters. `note` gets a
    line that says what was understood; without it, only what is not score, sentence, sentence is logged, once. Raises
    ValueError for columns that cannot be told, a score that is no number, and an empty source.
    """
    if is_remote(source):
        copy = local_copy(source)
        with naming(copy, shown(source)):
            return scored_pairs(copy, note)
    path = Path(source) if isinstance(source, str | Path) else None
    columns = None if path is None or formats.is_hub_id(str(path)) else _tab_layout(path)
    if path is not None and columns is not None:
        pairs = list(_tab_pairs(path, columns))
        layout = "" if columns == PLAIN_COLUMNS else " in the columns of STS-B as published"
        said = f"{path.name}: {len(pairs):,} pair{'' if len(pairs) == 1 else 's'}{layout}"
    else:
        sample, options = _Sample.of(source, Options())
        pairs, said = _pairs_of(source, sample, options) if sample.cells else ([], "")
    if not pairs:
        raise ValueError(f"{_name(source)}: no pair in it")
    if note is not None:
        note(said)
    elif columns != PLAIN_COLUMNS:
        log_once(said)
    return pairs


@lru_cache
def log_once(line: str) -> None:
    """Log what was understood of a source, which an evaluation may read again and again, once."""
    log.warning(line)


def _tab_layout(path: Path) -> tuple[int, int, int] | None:
    """Return the columns of score and sentences of a tab-separated file without a header, if it is such a file."""
    check_regular(path)
    start = head(path, 1 << 16).removeprefix(codecs.BOM_UTF8).lstrip(b" \r\n")
    first = start.split(b"\n", 1)[0].decode("utf-8", "replace").split("\t")
    if len(first) == 3 and (is_number(first[0]) or first[0] == "nan") and not is_number(first[1]):
        return PLAIN_COLUMNS
    if len(first) >= STS_B_WIDTH and is_number(first[4]) and not any(map(is_number, first[5:7])):
        return STS_B_COLUMNS
    return None


def _tab_pairs(path: Path, columns: tuple[int, int, int]) -> Iterator[Pair]:
    """Yield the pairs of a tab-separated file; only STS-B's rows may have further cells, which name a licence."""
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip(" "):
            continue
        cells = line.split("\t")
        if len(cells) != 3 if columns == PLAIN_COLUMNS else len(cells) < STS_B_WIDTH:
            expected = "not score, sentence, sentence" if columns == PLAIN_COLUMNS else f"fewer than {STS_B_WIDTH}"
            raise ValueError(f"{path}: line {number} has {len(cells)} columns, {expected}")
        score, first, second = (cells[column] for column in columns)
        yield _pair(f"{path}: line {number}", score, first.strip(), second.strip())


def _pair(where: str, cell: str, first: str, second: str) -> Pair:
    """Return a scored pair. Raises ValueError if the score is no finite number, and for a missing sentence."""
    try:
        score = float(cell.replace(",", ".") if "." not in cell else cell)
    except ValueError as error:
        raise ValueError(f"{where}: the score {cell!r} is no number") from error
    if not math.isfinite(score):
        raise ValueError(f"{where}: the score {cell!r} is not finite")
    if not (first and second):
        raise ValueError(
            f"{where}: the {'second' if first else 'first'} sentence is missing; add it or remove the pair"
        )
    return score, first, second


def _pairs_of(source: Any, sample: _Sample, options: Options) -> tuple[list[Pair], str]:
    score, first, second = _scored_columns(sample)
    corpus = Corpus.of(source, first, options=options)
    columns = [texts_of(corpus.table, name) for name in (score, first, second)]
    pairs = [
        _pair(f"{sample.name}: row {corpus.numbers[row]}", cell, one, other)
        for row, (cell, one, other) in enumerate(zip(*columns, strict=True))
    ]
    return pairs, f"{corpus.heading}; scores from `{score}`, sentences from `{first}` and `{second}`"


def _scored_columns(sample: _Sample) -> tuple[str, str, str]:
    """Return the columns of the scores and the two sentences. Raises ValueError if they cannot be told."""
    names, numbers = sample.names, [name for name in sample.cells if sample.holds_numbers(name)]
    scores = [names[name] for name in SCORES if name in names and any(map(is_number, sample.cells[names[name]]))][:1]
    if not scores:
        scores = [name for name in numbers if not _counts(name, sample.cells[name])]
        decimal = [name for name in scores if any("." in cell or "," in cell for cell in sample.cells[name])]
        scores = decimal if len(scores) > 1 else scores
    texts = next(([names[a], names[b]] for a, b in PAIRS if a in names and b in names), [])
    if not texts:
        others = [name for name in sample.cells if name not in (*scores, *numbers)]
        texts = [name for name in others if prose(sample.cells[name])]
        if len(texts) != 2:
            texts = others if len(others) == 2 else [name for name in others if sample.words(name) >= 2]
    if len(scores) != 1 or len(texts) != 2:
        raise sample.ask("which columns hold the score and the two sentences?", "call them score, sentence1, sentence2")
    return scores[0], texts[0], texts[1]


def _counts(name: str, cells: Sequence[str]) -> bool:
    """True for a column of numbers that counts or dates rows: ids, years, an index."""
    if set(name.lower().replace("#", "_").split("_")) & {"id", "index", "idx", "year", "unnamed:"}:
        return True
    padded = any(len(cell) > 1 and cell.isdecimal() and cell[0] == "0" for cell in cells)
    whole = [int(cell) for cell in cells if cell.isdecimal()]
    ascending = len(whole) == len(cells) > 2 and all(a < b for a, b in pairwise(whole))
    return padded or ascending


def pairs_in_memory(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Return (score, sentence, sentence) tuples as a list, checked. Raises ValueError that begins with their `name`."""
    checked: list[Pair] = []
    for number, pair in enumerate(pairs, start=1):
        where = f"{name}: pair {number}"
        if not isinstance(pair, tuple | list) or len(pair) != 3:
            raise ValueError(f"{where} is {pair!r:.60}; give (score, sentence, sentence)")
        score, *texts = pair
        try:
            value = math.nan if isinstance(score, str | bool) else float(score)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"{where}: the score {score!r} is no finite number")
        first, second = (check_text(text, number, where).strip() for text in texts)
        checked.append((value, first, second))
    if not checked:
        raise ValueError(f"{name}: no pair in it")
    return checked
