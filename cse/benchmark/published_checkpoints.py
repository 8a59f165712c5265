"""What the authors of published checkpoints say these score on STS. Only facts stand here."""

from __future__ import annotations

from collections.abc import Iterator

from cse.benchmark.published_row import SETS, PublishedRow
from cse.models.families import PUBLISHED_IDS

SIMCSE, PROMPTBERT, PROMCSE = "SimCSE's README", "PromptBERT's README", "PromCSE's README"
BEST = f"{PROMPTBERT}, the best of 10 seeds"
UNSHIFTED = f"{PROMPTBERT}, its template bias at unshifted positions (docs/decisions.md)"

# id -> (the seven tasks and their average, or the average alone; where it stands)
SCORES = {
    "princeton-nlp/unsup-simcse-bert-base-uncased": ("76.25", SIMCSE),
    "princeton-nlp/unsup-simcse-bert-large-uncased": ("78.41", SIMCSE),
    "princeton-nlp/unsup-simcse-roberta-base": ("76.57", SIMCSE),
    "princeton-nlp/unsup-simcse-roberta-large": ("78.90", SIMCSE),
    "princeton-nlp/sup-simcse-bert-base-uncased": (
        "75.30 84.67 80.19 85.40 80.82 84.26 80.39 81.58", f"{SIMCSE}, whose list of averages has 81.57"
    ),
    "princeton-nlp/sup-simcse-bert-large-uncased": ("82.21", SIMCSE),
    "princeton-nlp/sup-simcse-roberta-base": ("82.52", SIMCSE),
    "princeton-nlp/sup-simcse-roberta-large": ("83.76", SIMCSE),
    "ffgcc/esimcse-bert-base-uncased": ("73.40 83.27 77.25 82.66 78.81 80.17 72.30 78.27", "ESimCSE's paper"),
    "royokong/unsup-PromptBERT": ("71.98 84.66 77.13 84.52 81.10 82.03 70.64 78.87", BEST),
    "royokong/unsup-PromptRoBERTa": ("73.98 84.73 77.88 84.93 81.89 82.74 69.21 79.34", BEST),
    "royokong/sup-PromptBERT": ("75.48 85.59 80.57 85.99 81.08 84.56 80.52 81.97", UNSHIFTED),
    "royokong/sup-PromptRoBERTa": ("76.75 85.93 82.28 86.69 82.80 86.14 80.04 82.95", UNSHIFTED),
    "YuxinJiang/unsup-promcse-bert-base-uncased": ("73.03 85.18 76.70 84.19 79.69 80.62 70.00 78.49", PROMCSE),
    "YuxinJiang/sup-promcse-roberta-base": ("76.75 85.86 80.98 86.51 83.51 86.58 80.41 82.94", PROMCSE),
    "YuxinJiang/sup-promcse-roberta-large": ("79.14 88.64 83.73 87.33 84.57 87.84 82.07 84.76", PROMCSE),
}  # fmt: skip


def rows() -> Iterator[PublishedRow]:
    """A row for every published id, without a number where its authors gave none."""
    for name, family in PUBLISHED_IDS.items():
        numbers, source = SCORES.get(name, ("", "no number given"))
        *values, average = map(float, numbers.split()) if numbers else (None,)
        yield PublishedRow(
            "published", "sts", name, f"{name} {family.name}", "sts", average,
            dict(zip(SETS["sts"], values, strict=True)) if values else {}, checkpoint=True, source=source,
            evaluate="--final-period" if name.startswith("royokong/") else "",
        )  # fmt: skip
