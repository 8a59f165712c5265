"""A result of an endpoint that a visitor downloads, its answers by model, and its caption in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cse
from cse.app.export.look import line
from cse.app.models.naming import title

PLACES = {"pairs": "models", "results": "models", "map": "maps"}  # the key of the models in nested answers
REASONS = ("changes", "disagreements")  # answers with failed models under "errors"
SINGLE = ("duplicates", "ballot", "training")  # answers that are not by model
QUOTED = ("sentence", "s1", "s2", "query", "template")  # inputs that a caption quotes
NAMED = {"k": "k", "seed": "seed of t-SNE", "share": "share of the template subtracted", "task": "task",
         "corpus": "corpus", "threshold": "minimum percentile",
         "nines": "nines of the percentile", "keep": "kept of each group", "method": "method"}  # fmt: skip
NAMES = {
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


@dataclass(frozen=True)
class Taken:
    """The `answer` of an endpoint to `inputs`, with the fingerprints of its `models` and the app's `version`.

    `seeds` are those of the models' training. `percentiles` are those of a pair's cosines by model, which the page
    shows too, among random pairs of the corpus `reference`. Figures alone show the `histograms` of random pairs, and
    the `colours` of models that are not bundled.
    `added` are the names by which the visitor added models. An answer with `own` is about the visitor's corpus, whose
    texts code has to send. A `private` one is about other data of the visitor's page, so no code can repeat it.
    """

    endpoint: str
    inputs: dict[str, Any]
    models: dict[str, str]
    answer: Any
    added: tuple[str, ...] = ()
    own: bool = False
    private: bool = False
    percentiles: dict[str, float] = field(default_factory=dict)
    reference: str = ""
    seeds: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, list[float]] = field(default_factory=dict)
    colours: dict[str, str] = field(default_factory=dict)
    version: str = cse.__version__

    @property
    def answered(self) -> dict[str, Any]:
        """Return the answers by model, without failures."""
        return divided_answer(self.endpoint, self.answer)[0]

    @property
    def missing(self) -> list[str]:
        """Return the names of the models that failed, and so have no row in a table."""
        return divided_answer(self.endpoint, self.answer)[1]


def divided_answer(endpoint: str, answer: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the answers by model, and the names of the models that failed."""
    if endpoint in REASONS:
        return {}, list(answer["errors"])
    if endpoint in SINGLE:
        return {}, []
    place = PLACES.get(endpoint)
    models = answer[place] if place else answer if isinstance(answer, Mapping) else {}
    missing = [name for name, found in models.items() if isinstance(found, Mapping) and set(found) == {"error"}]
    return {name: found for name, found in models.items() if name not in missing}, missing


def caption(taken: Taken) -> str:
    """Return the caption in one line, plain text."""
    quoted = [f"“{line(taken.inputs[name], SHOWN)}”" for name in QUOTED if taken.inputs.get(name)]
    named = [f"{words} {line(taken.inputs[name], SHOWN)}" for name, words in NAMED.items() if taken.inputs.get(name)]
    what = NAMES.get(taken.endpoint, taken.endpoint.capitalize())
    what += f" of {line(taken.reference, SHOWN)}" if taken.reference else ""
    parts = [f"{what}: {', '.join(quoted + named)}." if quoted or named else f"{what}."]
    if "protocol" in (taken.answer if isinstance(taken.answer, dict) else {}):
        parts.append(line(taken.answer["protocol"], 600))
    models = [model_said(taken, name) for name in taken.models if name not in taken.missing]
    parts += [f"Models: {'; '.join(models)}."] if models else []
    return f"{' '.join(parts)} cse {taken.version}."


def model_said(taken: Taken, name: str) -> str:
    """Return a model's name, seed and fingerprint."""
    seed = f"seed {taken.seeds[name]}, " if name in taken.seeds else ""
    return f"{line(title(name), 40)} ({seed}fingerprint {taken.models[name]})"
