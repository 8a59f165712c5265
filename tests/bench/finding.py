"""Candidates of `adapt` on the documents of retrieval sets: does finding by known items say how they rank these?"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cse.adaptation.adapt import AdaptRequest, tried
from cse.adaptation.candidates import OWN, STAGE_OF, Trial
from cse.adaptation.choice import START, candidates, choose
from cse.adaptation.projection import raw_vectors
from cse.evaluation import retrieval
from cse.evaluation.metrics import correlation_or_none
from cse.vectors import unit_rows
from tests.bench.recipes import rows_of

NDCG, KNOWN_ITEMS = f"ndcg@{retrieval.TOP}", ("recall@1", "mrr")
MARGIN = 0.5  # points of nDCG@10 by which two candidates differ
QUERIES_AT_ONCE = 512


def measure(
    folder: Path, start: str, seed: int, output: Path, note: Callable[[str], object], cheap: bool = False
) -> dict[str, Any]:
    """Return a row: the `scores` of each candidate of `adapt` on the documents of a set, and the one that is `chosen`.

    There are no labels. `cheap` leaves out what takes minutes. Known items are documents that are held out; nDCG@10 is
    that of the set's queries in all documents. A row that `output` has is not measured again; a new one is added there.
    """
    backbone, _, pooling = start.partition(":")
    row = {"texts": folder.name, "seed": seed, "start": f"{Path(backbone).name} {pooling}".strip()}
    for known in rows_of(output):
        if row.items() <= known.items():
            return known
    (file,) = (path for name in retrieval.CORPORA for path in folder.glob(f"{name}*"))
    with tempfile.TemporaryDirectory() as work:
        data, vectors = Path(work) / "texts.jsonl", dict[str, dict[str, np.ndarray]]()
        data.write_text("".join(json.dumps({"text": text}) + "\n" for text in retrieval.read_texts(file).values()))
        request = AdaptRequest(str(data), backbone, pooling or None, "text", minutes=None, seed=seed)
        trial, _ = tried(request, Path(work) / "adapted", note=note, later=not cheap)
        stages = trial.workspace.stages
        scores = {
            name: {**scored["scores"], NDCG: retrieval.score(encoding(trial, name, vectors), folder, search)[NDCG]}
            for name, scored in candidates(stages).items()
        }
        row |= {"chosen": choose(stages).result, "scores": scores}
    with output.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")
    return row


def encoding(
    trial: Trial, candidate: str, known: dict[str, dict[str, np.ndarray]]
) -> Callable[[list[str]], np.ndarray]:
    """Return what encodes texts by a candidate of a trial; vectors before its layer are kept in `known`."""
    name, _, variant = candidate.partition(" ")
    stage = STAGE_OF.get(name, name)
    model = trial.model(stage)
    encoder, vectors = (model.joined, trial.vectors(stage)) if variant else (model.encoder, trial.vectors(stage, OWN))
    layer = trial.fitted(stage, variant) if variant else np.asarray
    rows = known.setdefault(f"{stage} {encoder.reading.pooling}", {
        **dict(zip(trial.fit, vectors.fit, strict=False)),  # not all that may be fitted on are encoded
        **dict(zip(trial.held, vectors.held, strict=True)),
    })  # fmt: skip

    def encode(texts: list[str]) -> np.ndarray:
        if new := [text for text in dict.fromkeys(texts) if text not in rows]:
            rows.update(zip(new, raw_vectors(encoder, new), strict=True))
        return layer(np.stack([rows[text] for text in texts]))

    return encode


def search(documents: np.ndarray, queries: np.ndarray, count: int) -> np.ndarray:
    """Return the (q, count) rows of the documents (N, d) nearest to each of the queries (q, d) by cosine."""
    unit, rows = unit_rows(documents), []
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        cosines = unit_rows(queries[start : start + QUERIES_AT_ONCE]) @ unit.T
        near = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        rows.append(np.take_along_axis(near, order, axis=1))
    return np.concatenate(rows)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | str | None]]:
    """Return for each row what known items are worth, by a measure of these.

    `rank correlation`: Spearman x 100 of the measure with nDCG@10 over all candidates. `same order`: the percent of
    the pairs of candidates that differ by `MARGIN` of nDCG@10 or more which the measure orders alike. `taken` and
    `best`: what the candidate gains in nDCG@10 over the start that has the highest score, and the most that any gains.
    """
    found: dict[str, dict[str, float | str | None]] = {}
    for row in rows:
        scores = row["scores"]
        ndcg = np.array([values[NDCG] for values in scores.values()])
        gains = ndcg - scores[START][NDCG]
        chosen = round(scores[row["chosen"]][NDCG] - scores[START][NDCG], 2)
        for measure in KNOWN_ITEMS:
            known = np.array([values[measure] for values in scores.values()])
            apart = [pair for pair in combinations(range(len(ndcg)), 2) if abs(np.diff(ndcg[[*pair]])[0]) >= MARGIN]
            alike = [np.diff(ndcg[[*pair]])[0] * np.diff(known[[*pair]])[0] > 0 for pair in apart]
            found[f"{row['texts']}, {row['start']}, seed {row['seed']}, {measure}"] = {
                "candidates": len(ndcg), "rank correlation": correlation_or_none(known, ndcg),
                "same order": round(100 * float(np.mean(alike)), 1) if alike else None,
                "taken": round(float(gains[known.argmax()]), 2), "best": round(float(gains.max()), 2),
                "chosen": chosen,
            }  # fmt: skip
    return found
