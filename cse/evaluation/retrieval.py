"""Retrieval: nDCG@10, MRR@10 and recall over a corpus with relevance grades, with any vector search; known items.

A set is a folder as BEIR and MTEB publish it: `corpus.jsonl` (_id, title, text), `queries.jsonl` (_id, text) and
`qrels/test.tsv` (query-id, corpus-id, score under a header), or without a test split `dev.tsv` or `train.tsv`. Or it
has `corpus.tsv` (id, title, text or id, text), `queries*.tsv` (id, text) and `qrels*.tsv` (query, document, grade). All
may be packed as .gz. Every positive grade is relevant with gain 1, as in trec_eval's binary measures: editions of
Cranfield disagree on whether high grades are best or worst.

Known items measure a corpus without grades: how well a short form of a text finds that text among others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.corpus.corpus import Corpus
from cse.corpus.dialect import is_number
from cse.corpus.lines import text_lines
from cse.corpus.supervised import texts_of
from cse.corpus.words import spans_within
from cse.evaluation.tasks import Task, TaskData
from cse.vectors import unit_rows

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores, Search, Unit

TOP, RECALL_DEPTH = 10, 100
CORPORA = ("corpus.jsonl", "corpus.tsv")
TEXT_HEADINGS = ("text", "query", "question", "document", "passage", "body", "content")  # beside one such as doc_id
MIN_WORDS = 3  # of a known item: fewer leave one word, which is no question
MAX_FORM_WORDS = 10  # of its short form, as many as a question has
EQUAL_COSINES = 1e-6  # cosines that differ by less are equal in float32
SPLITS = ("test", "dev", "train")  # of BEIR's relevance; the first that is there is scored


def units(data: TaskData) -> dict[str, Unit]:
    """Return a unit for each set in the folder or its subfolders. Raises ValueError without a set or a `search`."""
    if data.search is None:
        raise ValueError("retrieval needs a vector search; give `search`")
    folders = [path for path in (data.folder, *sorted(data.folder.glob("*"))) if _files(path, *CORPORA)]
    if not folders:
        raise ValueError(f"{data.folder}: no corpus.jsonl or corpus.tsv in it or its folders, as in {TASK.layout}")
    one = partial(score, search=data.search, query_prompt=data.query_prompt, document_prompt=data.document_prompt)
    return {folder.resolve().name: partial(one, folder=folder) for folder in folders}


def score(
    encode: Encode, folder: Path, search: Search, query_prompt: str | None = None, document_prompt: str | None = None
) -> Scores:
    """`ndcg@10`, `mrr@10`, `recall@10`, `recall@100` x 100, averaged over the queries with a relevant document.

    `encode` has an argument `prompt` if a prompt is not None.
    """
    documents = read_texts(_only(folder, *CORPORA))
    queries = read_texts(_only(folder, "queries.jsonl", "queries*.tsv"))
    qrels = next((files for split in SPLITS if (files := _files(folder, f"qrels/{split}.tsv"))), None)
    relevant = read_relevance(qrels[0] if qrels else _only(folder, "qrels*.tsv"), queries, documents)
    names = list(documents)
    judged = [query for query in queries if query in relevant]
    depth = min(RECALL_DEPTH + 1, len(names))
    encode_query, encode_document = (
        encode if prompt is None else partial(encode, prompt=prompt) for prompt in (query_prompt, document_prompt)
    )
    vectors = encode_document(list(documents.values()))
    rows = search(vectors, encode_query([queries[query] for query in judged]), depth)
    measured = []
    for query, ranking in zip(judged, rows, strict=True):
        # A query that is a document is excluded, as in BEIR: Quora's are.
        itself = query if documents.get(query) == queries[query] else None
        if answers := relevant[query] - {itself}:
            measured.append(measures([names[row] for row in ranking if names[row] != itself], answers))
    if not measured:
        raise ValueError(f"{folder}: no query has a relevant document other than itself")
    means = {key: round(100 * float(np.mean([one[key] for one in measured])), 2) for key in measured[0]}
    return {**means, "queries": len(measured), "documents": len(names)}


def measures(ranking: Sequence[Any], relevant: Set[Any]) -> dict[str, float]:
    """The four measures in [0, 1] of one query's ranking (best first) against its relevant documents."""
    hits = np.array([name in relevant for name in ranking], float)
    discounts = 1 / np.log2(np.arange(2, TOP + 2))
    ideal = discounts[: len(relevant)].sum()
    first = np.flatnonzero(hits[:TOP])
    return {
        f"ndcg@{TOP}": float((hits[:TOP] * discounts[: len(hits[:TOP])]).sum() / ideal),
        f"mrr@{TOP}": 1 / (1 + float(first[0])) if len(first) else 0.0,
        f"recall@{TOP}": float(hits[:TOP].sum() / len(relevant)),
        f"recall@{RECALL_DEPTH}": float(hits[:RECALL_DEPTH].sum() / len(relevant)),
    }


def read_texts(path: Path) -> dict[str, str]:
    """Texts by id of JSON lines, or of `id<TAB>text` or `id<TAB>title<TAB>text`.

    A title stands before the text, as BEIR joins them; in a .tsv one that the text begins with is not repeated, and a
    header is left out.
    """
    rows: list[tuple[str, str, str]] = []  # where it stands, its id, its text
    if ".jsonl" in path.suffixes:
        corpus = Corpus.read(path, "text")
        if "_id" not in corpus.columns:
            raise ValueError(f"{path}: no key '_id'; it has {', '.join(corpus.columns)}")
        columns = ["_id", *(["title"] if "title" in corpus.columns else []), "text"]
        cells = [texts_of(corpus.table, name) for name in columns]
        for number, (name, *parts) in enumerate(zip(*cells, strict=True), start=1):
            rows.append((f"row {number}", name, " ".join(parts).strip()))
    else:
        for number, line in enumerate(text_lines(path), start=1):
            name, *parts = (cell.strip() for cell in line.split("\t"))
            header = number == 1 and name.lower().endswith("id") and parts[-1:] and parts[-1].lower() in TEXT_HEADINGS
            if header or not line.strip():
                continue
            if not name or len(parts) not in (1, 2):
                raise ValueError(f"{path}: line {number} has {len(parts) + 1} columns, not id, text or id, title, text")
            rows.append((f"line {number}", name, parts[-1] if parts[-1].startswith(parts[0]) else " ".join(parts)))
    texts: dict[str, str] = {}
    for where, name, text in rows:
        if not name or name in texts:
            raise ValueError(f"{path}: {where} {f'repeats the id {name!r}' if name else 'has no id'}")
        texts[name] = text
    if not texts:
        raise ValueError(f"{path}: no text in it")
    return texts


def read_relevance(path: Path, queries: Mapping[str, str], documents: Mapping[str, str]) -> dict[str, set[str]]:
    """The documents with a positive grade by query; queries without any are left out, and so is a header.

    Raises ValueError with file and line for a row that is not query, document, grade, and for an unknown id.
    """
    relevant: dict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3:
            raise ValueError(f"{path}: line {number} has {len(cells)} columns, not query, document, grade")
        if number == 1 and cells[0] not in queries and not is_number(cells[2]):
            continue  # a header
        for kind, name, known in (("query", cells[0], queries), ("document", cells[1], documents)):
            if name not in known:
                raise ValueError(f"{path}: line {number}: no {kind} {name!r}")
        try:
            grade = float(cells[2])
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: the grade {cells[2]!r} is not a number") from error
        if grade > 0:
            relevant[cells[0]].add(cells[1])
    if not relevant:
        raise ValueError(f"{path}: no query has a relevant document")
    return dict(relevant)


def _files(folder: Path, *patterns: str) -> list[Path]:
    """Return the files in a folder with one of the names, packed or not: those of the first name that is there."""
    for pattern in patterns:
        if files := [path for end in ("", ".gz") for path in sorted(folder.glob(pattern + end)) if path.is_file()]:
            return files
    return []


def _only(folder: Path, *patterns: str) -> Path:
    files = _files(folder, *patterns)
    if len(files) != 1:
        raise ValueError(f"{folder}: {len(files)} files {' or '.join(patterns)}; a set has exactly one")
    return files[0]


def known_item(text: str) -> tuple[str, str]:
    """Return a short form that asks for a text, "" for one of fewer than `MIN_WORDS`, and what it has to find.

    A text of more than twice `MAX_FORM_WORDS` is asked for by so many words from its middle, and has to be found
    without them (the inverse cloze task of Lee et al. 2019, arXiv:1906.00300): with them every model finds it, by the
    words alone. A shorter text is asked for by its first, third, … word, and has to be found whole. Words stand between
    spaces; scripts without spaces are cut as `cse.corpus.words` says.
    """
    spans = [span for part in re.finditer(r"\S+", text) for span in spans_within(text, *part.span())]
    if len(spans) <= 2 * MAX_FORM_WORDS:
        return " ".join(text[slice(*span)] for span in spans[::2] if len(spans) >= MIN_WORDS), text
    first = (len(spans) - MAX_FORM_WORDS) // 2
    start, end = spans[first][0], spans[first + MAX_FORM_WORDS - 1][1]
    return text[start:end], f"{text[:start].rstrip()} {text[end:].lstrip()}"


def ranks(queries: np.ndarray, own: np.ndarray, texts: np.ndarray, draws: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rank (draws, Q) from 1 by cosine of text `own[q]` for each of the `queries` (Q, d).

    `texts` are (N, d). In a draw, an (m,) array of numbers, a query is compared with these texts and its own. A text
    that is as near as the query's own counts as nearer.
    """
    unit = unit_rows(np.asarray(texts, np.float32))
    members = np.zeros((len(unit), len(draws)), np.float32)
    for number, draw in enumerate(draws):
        members[draw, number] = 1
    cosines, numbers = unit_rows(np.asarray(queries, np.float32)) @ unit.T, np.arange(len(queries))
    nearer = (cosines >= cosines[numbers, own][:, None] - EQUAL_COSINES) | np.isnan(cosines)
    nearer[numbers, own] = False
    return (1 + nearer.astype(np.float32) @ members).T


def known_item_values(
    queries: np.ndarray, own: np.ndarray, texts: np.ndarray, draws: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return recall@1 and reciprocal rank of each query (Q,), in [0, 1], as means over the draws of `ranks`."""
    placed = ranks(queries, own, texts, draws)
    return {"recall@1": (placed == 1).mean(axis=0), "mrr": (1 / placed).mean(axis=0)}


TASK = Task(
    name="retrieval",
    units=units,
    layout="corpus.jsonl, queries.jsonl, qrels/test.tsv, or corpus.tsv, queries*.tsv, qrels*.tsv",
    shown=("ndcg@10", "mrr@10", "recall@10", "recall@100"),
    title="Retrieval",
    summary="Relevant documents among the nearest of the whole corpus, by exact search.",
    options=("final_period", "store", "smooth", "expand"),
    ranks=True,
)
