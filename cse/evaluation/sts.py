"""Semantic textual similarity: Spearman correlation x 100 of cosines with human grades.

SentEval's "all" protocol as the papers score it: a task's subsets are concatenated and ranked once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from cse.data import Pair, scored_pairs

Encode = Callable[[list[str]], np.ndarray]

TASKS = {
    "STS12": ("STS12/*.tsv",),
    "STS13": ("STS13/*.tsv",),
    "STS14": ("STS14/*.tsv",),
    "STS15": ("STS15/*.tsv",),
    "STS16": ("STS16/*.tsv",),
    "STS-B": ("STSB/test.tsv",),
    "SICK-R": ("SICK/test.tsv",),
}


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(N,) cosine of the rows of two (N, d) arrays; 0 where a row is zero."""
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.divide((first * second).sum(1), norms, out=np.zeros(len(first), np.float64), where=norms > 0)


def spearman(encode: Encode, pairs: Sequence[Pair]) -> float:
    """Spearman x 100 of the pairs' cosines with their grades; each distinct sentence is encoded once.

    0 where all cosines are equal. Raises ValueError where all grades are.
    """
    if len({score for score, _, _ in pairs}) < 2:
        raise ValueError(f"all {len(pairs)} pairs have the same grade; a correlation needs different ones")
    from scipy.stats import spearmanr

    texts = list(dict.fromkeys(text for _, first, second in pairs for text in (first, second)))
    row = {text: number for number, text in enumerate(texts)}
    vectors = encode(texts).astype(np.float64)
    first = vectors[[row[text] for _, text, _ in pairs]]
    second = vectors[[row[text] for _, _, text in pairs]]
    found = cosines(first, second)
    return 100 * float(spearmanr(found, [score for score, _, _ in pairs]).statistic) if np.ptp(found) > 0 else 0.0


def evaluate(encode: Encode, folder: Path, report: Callable[[str], None] = lambda line: None) -> dict[str, float]:
    """Scores of the seven tasks found under `folder` and, where all are there, their average as the papers round it.

    Raises ValueError naming the missing tasks when any has no file; nothing is averaged over silently.
    """
    files = {
        task: sorted(path for pattern in patterns for path in Path(folder).glob(pattern))
        for task, patterns in TASKS.items()
    }
    if missing := [task for task, found in files.items() if not found]:
        raise ValueError(
            f"{folder}: no files for {', '.join(missing)}; the layout is STS12/*.tsv … STSB/test.tsv, SICK/test.tsv"
        )
    scores: dict[str, float] = {}
    for task, paths in files.items():
        scores[task] = round(spearman(encode, [pair for path in paths for pair in scored_pairs(path)]), 2)
        report(f"{task} {scores[task]:.2f}")
    return {**scores, "average": round(sum(scores.values()) / len(scores), 2)}
