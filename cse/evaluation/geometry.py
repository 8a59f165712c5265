"""Geometry of sentence vectors: isotropy and cosines by grade on STS-B test, and the effect of single tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.corpus import Corpus
from cse.corpus.supervised import log_once, scored_pairs
from cse.evaluation import sts
from cse.evaluation.isotropy import DIGITS, alignment, anisotropy, pair_map, uniformity
from cse.evaluation.metrics import distinct_texts, pair_vectors
from cse.evaluation.tasks import Task, TaskData, TokenAccess
from cse.evaluation.token_bias import (
    StaticEmbeddings,
    cumulative_removal,
    frequent_tokens,
    group_cosines,
    picture,
    removal_curve,
    token_groups,
)
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores, Unit

STSB_TEST = Path("STSB") / "test.tsv"
POSITIVE_GRADE = 4.0  # STS-B pairs from here on count as positives for `alignment`
TOP_GRADE = 5
MAX_SENTENCES, MAX_SENTENCE_WORDS = 100_000, 32  # PromptBERT's sample for Eq. 1


def grade_distribution(cosines: np.ndarray, grades: Sequence[float]) -> Scores:
    """Distribution of cosines (N,) per bucket of grades 0 to 5, and separation of the outer ones (ConPVP Figure 4).

    `separation`: mean cosine of the highest bucket minus that of the lowest. `buckets`: grades (0-1 is 0 <= g < 1, 4-5
    includes both ends), count, mean and quartiles; empty ones are left out. `points`: the N grades and cosines. Raises
    ValueError for a grade outside 0 to 5 and for fewer than two non-empty buckets.
    """
    graded = np.asarray(grades, np.float64)
    if wrong := [grade for grade in grades if not 0 <= grade <= TOP_GRADE]:
        raise ValueError(f"grade {wrong[0]:g} is outside 0 to {TOP_GRADE}, the scale of STS-B")
    floors = np.minimum(graded.astype(int), TOP_GRADE - 1)
    buckets = []
    for floor in np.unique(floors).tolist():
        inside = cosines[floors == floor]
        quartiles = np.round(np.quantile(inside, (0.25, 0.5, 0.75)), DIGITS).tolist()
        mean = round(float(inside.mean()), DIGITS)
        buckets.append({"grades": f"{floor}-{floor + 1}", "count": len(inside), "mean": mean, "quartiles": quartiles})
    if len(buckets) < 2:
        raise ValueError(f"{len(buckets)} bucket of grades has pairs; the separation needs two of 0-1, 1-2, ... 4-5")
    return {
        "separation": round(buckets[-1]["mean"] - buckets[0]["mean"], DIGITS),
        "buckets": buckets,
        "points": {"grades": graded.tolist(), "cosines": np.round(cosines, DIGITS).tolist()},
    }


def units(data: TaskData) -> dict[str, Unit]:
    """Return the units on STS-B test, rounded to four decimals, and with `tokens` those on all seven STS tasks.

    Tasks are read by `sts.sources`. The first 100,000 of `sentences` (a text file or table) replace STS-B for the
    anisotropy. `removal` and `static-bias` are averages over the seven tasks and need all of them. Raises ValueError if
    STS-B test or the file of sentences is missing, and as `sts.sources` does.
    """
    files = sts.sources(data) if sts.files(data.folder) else {}
    pairs = files.get("STS-B", [data.folder / STSB_TEST])[0]
    if missing := [path for path in (pairs, data.sentences) if path and not path.is_file()]:
        raise ValueError(f"{missing[0]}: no such file; give the folder that holds STSB, and sentences in a text file")
    measures: dict[str, Unit] = {
        "anisotropy": partial(_anisotropy, pairs, data.sentences),
        "alignment-uniformity": partial(_alignment_uniformity, pairs),
        "distribution": partial(_distribution, pairs),
        "map": partial(pair_map, path=pairs),
    }
    if data.tokens and len(files) == len(sts.SETS):
        measures["removal"] = partial(_removal, files, data.tokens)
        measures["static-bias"] = partial(_static_bias, files, data.tokens.static)
    return measures


def _anisotropy(pairs: Path, sentences: Path | None, encode: Encode) -> Scores:
    if sentences is None:
        texts = distinct_texts(scored_pairs(pairs))
    else:  # lower-cased and cut to 32 words by PromptBERT's released code
        corpus = Corpus.read(sentences, limit=MAX_SENTENCES)
        log_once(corpus.understood())
        words = (sentence.lower().split() for sentence in corpus.sentences)
        texts = list(dict.fromkeys(" ".join(of_sentence[:MAX_SENTENCE_WORDS]) for of_sentence in words))
    return {"anisotropy": round(anisotropy(encode(texts)), DIGITS), "sentences": len(texts)}


def _alignment_uniformity(path: Path, encode: Encode) -> Scores:
    pairs = scored_pairs(path)
    positive = [number for number, (grade, _, _) in enumerate(pairs) if grade >= POSITIVE_GRADE]
    if not positive:
        raise ValueError(f"{path}: no pair has a grade of {POSITIVE_GRADE:g} or more, which alignment needs")
    vectors, first, second = pair_vectors(encode, pairs)
    return {
        "alignment": round(alignment(first[positive], second[positive]), DIGITS),
        "uniformity": round(uniformity(vectors), DIGITS),
        "positives": len(positive),
        "sentences": len(vectors),
    }


def _distribution(path: Path, encode: Encode) -> Scores:
    pairs = scored_pairs(path)
    _, first, second = pair_vectors(encode, pairs)
    return grade_distribution(cosines(first, second), [grade for grade, _, _ in pairs])


def _removal(files: Mapping[str, Sequence[Path]], tokens: TokenAccess, _: Encode) -> Scores:
    """ConPVP Figure 5, on the seven STS tasks, tokens counted in STS-B test."""
    sets = sts.all_pairs(files)
    return removal_curve(tokens.tokenise, tokens.encode_ids, sets, counted=distinct_texts(sets["STS-B"]))


def _static_bias(files: Mapping[str, Sequence[Path]], static: StaticEmbeddings, _: Encode) -> Scores:
    """PromptBERT section 3, on the seven STS tasks, tokens counted in STS-B test."""
    sets = sts.all_pairs(files)
    counted = distinct_texts(sets["STS-B"])
    groups = token_groups(static, counted)
    removal = cumulative_removal(static, sets, frequent_tokens(static, counted))
    return {**removal, "groups": group_cosines(static, groups), "picture": picture(static, groups)}


TASK = Task(
    name="geometry",
    units=units,
    layout=sts.LAYOUT,
    data_of="sts",
    shown=("anisotropy", "alignment", "uniformity", "separation", "K=0", "K=100"),
    title="Geometry",
    summary=(
        "How evenly the vectors of STS-B test fill the sphere. Anisotropy: mean cosine of any two sentences. "
        "Alignment: squared distance of pairs graded 4 or more. Uniformity: log of the mean of exp(-2 x squared "
        "distance) of any two (Wang and Isola). Separation: mean cosine of pairs graded 4 to 5 less that of pairs "
        "graded 0 to 1. K: STS average without the K most frequent tokens."
    ),
    lower=("anisotropy", "alignment", "uniformity"),
    options=("sentences", "figures", "tokenised"),  # a final period would not reach the tokens that are counted
    figures={
        "similarity": "distribution", "pairs": "map", "removal": "removal", "static-embeddings": "static-bias",
    },
    points=("points", "picture"),
    token_units=("removal", "static-bias"),
    unit_headings=False,
)  # fmt: skip
