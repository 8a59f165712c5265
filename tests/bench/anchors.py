"""Near-duplicates beside semhash, and topics beside BERTopic: the same texts and vectors, quality and time.

Both peers are optional: `pip install semhash bertopic`, best in an environment of its own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from cse.analysis.duplicates import default_percentile, groups_of, strongest_links, threshold
from cse.analysis.topics import class_words, default_groups, grouped
from cse.evaluation.clustering import nmi, purity
from cse.evaluation.retrieval import read_relevance, read_texts
from cse.vectors import unit_rows

SEED, WORDS = 42, 10
DEFAULT_OF_SEMHASH = 0.9  # cosine


def questions(folder: Path, most: int) -> tuple[list[str], np.ndarray]:
    """Return texts of a retrieval folder, and (N,) the groups of those that are relevant to each other.

    Whole groups are drawn at random until there are `most` texts; a text without a partner is a group.
    """
    texts = read_texts(folder / "corpus.tsv")
    leads = {name: name for name in texts}

    def lead(name: str) -> str:
        while leads[name] != name:
            leads[name] = name = leads[leads[name]]
        return name

    queries = read_texts(next(folder.glob("queries*.tsv")))
    for query, documents in read_relevance(next(folder.glob("qrels*.tsv")), queries, texts).items():
        for document in documents if query in leads else ():
            leads[lead(document)] = lead(query)
    members: dict[str, list[str]] = {}
    for name in texts:
        members.setdefault(lead(name), []).append(name)
    groups, names, numbers = list(members.values()), [], []
    for number in np.random.default_rng(SEED).permutation(len(groups)):
        names += groups[number]
        numbers += [number] * len(groups[number])
        if len(names) >= most:
            break
    return [texts[name] for name in names], np.array(numbers)


def measure_duplicates(texts: Sequence[str], gold: np.ndarray, vectors: np.ndarray) -> dict[str, dict[str, float]]:
    """Return what this project and semhash remove at the default cosine of each."""
    began = time.process_time()
    advised = threshold(vectors, default_percentile(len(texts)), SEED)
    rows = {"calibration": {"cosine": advised, "seconds": time.process_time() - began}}
    for name, drop in (("cse", _linked), ("semhash", _semhash)):
        for cosine in (advised, DEFAULT_OF_SEMHASH):
            began = time.process_time()
            dropped = drop(texts, vectors, cosine)
            spent = time.process_time() - began
            rows[f"{name} {cosine:.2f}"] = {**removal(gold, dropped), "seconds": spent}
    return rows


def _linked(_: Sequence[str], vectors: np.ndarray, cosine: float) -> list[int]:
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(unit_rows(vectors))
    groups = groups_of(strongest_links(vectors, index.search, cosine).groups(cosine))
    return [row for group in groups for row in group[1:].tolist()]


def removal(gold: np.ndarray, dropped: Sequence[int]) -> dict[str, float]:
    """Return how many rows are dropped, and precision and recall (percent) by the groups (N,) of equal texts.

    A row is dropped rightly if another of its group stays; all but one of each group should go.
    """
    sizes, gone = Counter(gold.tolist()), Counter(gold[list(dropped)].tolist())
    right = sum(min(count, sizes[group] - 1) for group, count in gone.items())
    wanted = sum(size - 1 for size in sizes.values())
    return {"dropped": len(dropped), "precision": 100 * right / max(1, len(dropped)), "recall": 100 * right / wanted}


def _semhash(texts: Sequence[str], vectors: np.ndarray, cosine: float) -> list[int]:
    from semhash import SemHash

    places = {text: row for row, text in enumerate(texts)}
    found = SemHash.from_embeddings(vectors, list(texts), _Vectors(places, vectors))
    return [places[each.record] for each in found.self_deduplicate(threshold=cosine).filtered]


class _Vectors:
    """An encoder for semhash that looks vectors up."""

    def __init__(self, places: dict[str, int], vectors: np.ndarray) -> None:
        self.places, self.vectors = places, vectors

    def encode(self, inputs: Sequence[str], **_: Any) -> np.ndarray:
        return self.vectors[[self.places[text] for text in inputs]]


def measure_topics(texts: Sequence[str], labels: Sequence[str], vectors: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the groups of this project, with its own number and with BERTopic's, and those of BERTopic."""
    gold = np.unique(np.asarray(labels), return_inverse=True)[1]

    def ours(count: int) -> np.ndarray:
        groups = grouped(vectors, count, SEED)
        class_words(texts, groups, WORDS)
        return groups

    rows = {"cse": _grouping(gold, lambda: ours(default_groups(len(texts))))}
    rows["BERTopic"] = _grouping(gold, lambda: _bertopic(texts, vectors))
    count = int(rows["BERTopic"]["groups"])
    rows[f"cse, {count} groups"] = _grouping(gold, lambda: ours(count))
    return rows


def _grouping(gold: np.ndarray, make: Callable[[], np.ndarray]) -> dict[str, float]:
    """Scores of groups; texts in none (below 0) count as one group more in purity and NMI."""
    began = time.process_time()
    groups = make()
    spent = time.process_time() - began
    return {
        "groups": len(set(groups[groups >= 0].tolist())), "in none": 100 * float((groups < 0).mean()),
        "purity": 100 * purity(gold, groups), "nmi": 100 * nmi(gold, groups), "seconds": spent,
    }  # fmt: skip


def _bertopic(texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
    from bertopic import BERTopic
    from umap import UMAP

    reducer = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=SEED)  # its default
    return np.array(BERTopic(umap_model=reducer).fit_transform(list(texts), vectors)[0])
