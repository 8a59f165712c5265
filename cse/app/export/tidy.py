"""Results as tidy tables: a row per observation, with fixed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from cse.analysis.duplicates import GROUP_COLUMNS
from cse.app.export.taken import Taken

Rows = Iterator[tuple[Any, ...]]
STAGES = {"before": "before", "alone": "template alone", "after": "denoised"}
LEDGER = {
    "row": "row", "task": "task", "source": "source", "published": "published",
    "published_deviation": "published_deviation", "published_on": "published_on", "obtained": "mean",
    "deviation": "deviation", "difference": "difference", "verdict": "verdict", "backbone": "backbone", "note": "note",
}  # fmt: skip


class Table(NamedTuple):
    """A file name without suffix, its columns and rows; the value of the input `chosen` is added to the name."""

    name: str
    columns: tuple[str, ...]
    rows: Callable[[Taken], Rows]
    chosen: str = ""


def _similarity(taken: Taken) -> Rows:
    for name, cosine in taken.answered.items():
        yield taken.inputs["s1"], taken.inputs["s2"], name, cosine, taken.percentiles.get(name)


def _pairs(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        for i, j in combinations(range(len(taken.answer["sentences"])), 2):
            first, second = (taken.answer["sentences"][place] for place in (i, j))
            yield first, second, name, found["cosines"][i][j], found["percentiles"][i][j]


def _words(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        for sentence, words in zip((taken.inputs["s1"], taken.inputs["s2"]), found["words"], strict=True):
            for place, (word, change) in enumerate(words, start=1):
                yield sentence, name, place, word, change


def _search(taken: Taken) -> Rows:
    for name, hits in taken.answered.items():
        for hit in hits:
            yield taken.inputs["query"], taken.inputs["corpus"], name, hit["rank"], hit["score"], hit["text"]


def _tokens(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        for key, stage in STAGES.items():
            for rank, (token, probability) in enumerate(found[key], start=1):
                yield taken.inputs["sentence"], name, stage, rank, token, probability


def _template(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        for whose in ("own", "other"):
            trial = found[whose]
            for rank, (token, probability) in enumerate(trial["words"], start=1):
                yield taken.inputs["sentence"], name, whose, trial["template"], trial["score"], rank, token, probability


def _map(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        texts, labels = taken.answer["texts"], taken.answer["labels"]
        points = zip(texts, labels or [None] * len(texts), found["groups"]["of"], found["xy"], strict=True)
        yield from ((name, text, label, group + 1, x, y) for text, label, group, (x, y) in points)


def _changes(taken: Taken) -> Rows:
    for change in taken.answer["changes"]:
        for name, moved in change["moved"].items():
            yield taken.inputs["sentence"], change["name"], change["keeps"], change["changed"], name, moved


def _disagreements(taken: Taken) -> Rows:
    for rank, pair in enumerate(taken.answer["pairs"], start=1):
        for name, place in pair["places"].items():
            yield rank, pair["s1"], pair["s2"], name, place


def _xray(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        for row in _inside(found):
            yield taken.inputs["s1"], taken.inputs["s2"], name, *row


def _inside(found: Mapping[str, Any]) -> Rows:
    """Yield rows of an X-ray: part, item, measure and value."""
    yield "pair", "", "cosine", found["cosine"]
    attention = found.get("attention", {"read": (), "mean": ()})
    for layer, (read, mean) in enumerate(zip(attention["read"], attention["mean"], strict=True), start=1):
        yield "layer", layer, "attention_of_vector", read
        yield "layer", layer, "attention_of_all", mean
    for ablation in found.get("ablations", ()):
        for measure in ("moved", "cosine"):
            yield "prefix off", " ".join(map(str, ablation["layers"])), measure, ablation[measure]
    for prototype in found.get("prototypes", ()):
        kind = "positive" if prototype["positive"] else "negative"
        yield f"{kind} prototype", prototype["template"], "cosine", prototype["cosine"]


def _attention(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        for layer, heads in enumerate(found["shares"], start=1):
            for head, shares in enumerate(heads, start=1):
                for place, (token, share) in enumerate(zip(found["tokens"], shares, strict=True), start=1):
                    yield taken.inputs["sentence"], name, layer, head, place, token, share


def _duplicates(taken: Taken) -> Rows:
    for number, group in enumerate(taken.answer["page"], start=1):
        for member in group:
            kept = "yes" if member["kept"] else "no"
            yield number, member["number"], kept, member["cosine"], member["reason"], member["text"]


def _ballot(taken: Taken) -> Rows:
    for side in taken.answer["sides"]:
        name = side["name"]
        yield name, "votes", side["votes"], None, None
        yield name, "share of the votes", side["share"], side["low"], side["high"]
        yield from ((name, f"labels: {score}", value, None, None) for score, value in side["labels"].items())
        yield name, "milliseconds per text", side["milliseconds"], None, None
        yield name, "megabytes of weights", side["megabytes"], None, None
        yield name, "guard", side["found"], None, None


def _training(taken: Taken) -> Rows:
    if taken.answer["start"] is not None:
        yield 0, "guard's score", taken.answer["start"]
    for what, key in (("loss", "losses"), ("guard's score", "scores")):
        yield from ((step, what, value) for step, value in taken.answer[key])


def _labels(taken: Taken) -> Rows:
    for name, scores in taken.answered.items():
        yield from ((name, score, value) for score, value in scores.items())


def _times(taken: Taken) -> Rows:
    for name, found in taken.answered.items():
        yield name, found["milliseconds"], found["score"]


def _results(taken: Taken) -> Rows:
    for name, row in taken.answered.items():
        for column, figure in zip(taken.answer["columns"], row["figures"], strict=True):
            if figure:
                measured = (figure["value"], figure["deviation"], figure["runs"])
                yield taken.answer["task"], name, column["unit"], column["score"], *measured


def _ledger(taken: Taken) -> Rows:
    for entry in taken.answer:
        yield tuple(entry.get(key) for key in LEDGER.values())


PAIR = ("first", "second", "model", "cosine", "percentile")
TABLES: dict[str, Table] = {
    "similarity": Table("similarity", PAIR, _similarity),
    "words": Table("similarity-words", ("sentence", "model", "place", "word", "change_of_cosine"), _words),
    "pairs": Table("similarity-pairs", PAIR, _pairs),
    "search": Table("search", ("query", "corpus", "model", "rank", "cosine", "sentence"), _search, "corpus"),
    "tokens": Table("tokens", ("sentence", "model", "stage", "rank", "token", "probability"), _tokens),
    "template": Table(
        "template-lab",
        ("sentence", "model", "template", "text", "score", "rank", "token", "probability"),
        _template,
    ),
    "map": Table("clusters", ("model", "sentence", "label", "group", "x", "y"), _map),
    "changes": Table("probe-changes", ("sentence", "change", "keeps_meaning", "changed", "model", "moved"), _changes),
    "disagreements": Table("probe-disagreements", ("rank", "first", "second", "model", "place"), _disagreements),
    "xray": Table("probe-xray", ("first", "second", "model", "part", "item", "measure", "value"), _xray),
    "attention": Table(
        "probe-attention", ("sentence", "model", "layer", "head", "place", "token", "attention"), _attention
    ),
    "duplicates": Table("near-duplicates", GROUP_COLUMNS, _duplicates, "model"),
    "ballot": Table("verdict", ("model", "measure", "value", "low", "high"), _ballot),
    "labels": Table("label-scores", ("model", "score", "value"), _labels, "corpus"),
    "training": Table("training", ("step", "measure", "value"), _training, "name"),
    "times": Table("results-times", ("model", "milliseconds", "average_sts"), _times),
    "results": Table("results", ("task", "model", "set", "score", "value", "deviation", "runs"), _results, "task"),
    "ledger": Table("results-ledger", tuple(LEDGER), _ledger),
}
