"""The caption of a result: what it shows, of which text, and each model's seed and fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse.app.export.look import line
from cse.app.models.naming import title

if TYPE_CHECKING:
    from cse.app.export.taken import Taken

QUOTED = ("sentence", "s1", "s2", "query", "template")  # inputs that a caption quotes
NAMED = {"k": "k", "seed": "seed of t-SNE", "share": "share of the template subtracted", "task": "task",
         "corpus": "corpus", "threshold": "minimum percentile",
         "nines": "nines of the percentile", "keep": "kept of each group", "method": "method"}  # fmt: skip
SAID = {
    "similarity": "Cosine of two sentences among those of random pairs",
    "words": "Fall of the cosine of two sentences without each word",
    "pairs": "Cosines of all pairs of a list",
    "search": "Ranks of the sentences nearest to a query",
    "tokens": "Likeliest words at [MASK] for the sentence in the template, for the template alone, and denoised",
    "template": "Score on the demo's graded pairs under each model's own template and another",
    "map": "Aligned t-SNE maps with their trustworthiness",
    "changes": "How far changes of a sentence move its vector",
    "disagreements": "Pairs on which the models' ranks differ most",
    "xray": "Attention on the prefix by layer, displacement without it, and prototypes",
    "attention": "Attention of the token that is read, by layer and head",
    "duplicates": "Near-duplicates: texts that would go by strictness",
    "ballot": "Blind votes between two models",
    "labels": "Scores of the models on the labels of a corpus",
    "training": "Loss and guard's score of a training by step",
    "times": "Time of a sentence on one machine against the average of the STS tasks",
    "results": "Scores; bars are plus and minus a standard deviation, rings the same model before training",
    "ledger": "Published scores and those obtained here",
}
SHOWN = 90  # characters of a quoted text


def caption(taken: Taken) -> str:
    """Return the caption in one line, plain text."""
    quoted = [f"“{line(taken.inputs[name], SHOWN)}”" for name in QUOTED if taken.inputs.get(name)]
    named = [f"{words} {line(taken.inputs[name], SHOWN)}" for name, words in NAMED.items() if taken.inputs.get(name)]
    said = SAID.get(taken.endpoint, taken.endpoint.capitalize())
    parts = [f"{said}: {', '.join(quoted + named)}." if quoted or named else f"{said}."]
    if "protocol" in (taken.answer if isinstance(taken.answer, dict) else {}):
        parts.append(line(taken.answer["protocol"], 600))
    models = [model_said(taken, name) for name in taken.models if name not in taken.missing]
    parts += [f"Models: {'; '.join(models)}."] if models else []
    return f"{' '.join(parts)} cse {taken.version}."


def model_said(taken: Taken, name: str) -> str:
    """Return a model's name, seed and fingerprint."""
    seed = f"seed {taken.seeds[name]}, " if name in taken.seeds else ""
    return f"{line(title(name), 40)} ({seed}fingerprint {taken.models[name]})"
