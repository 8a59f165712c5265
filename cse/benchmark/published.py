"""The papers' own numbers: every row this project can run, and rows that others' papers copied, each with its source.

Only facts stand here. A row is found by paper and table, or by what it is a row of: its `key`, which the benchmark
makes of an encoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cse.evaluation import sts, transfer

PAPERS = ("promptbert", "dcpcse", "conpvp")
CLUSTERING = (
    "agnews", "biomedical", "googlenews_S", "googlenews_T", "googlenews_TS", "searchsnippets", "stackoverflow", "tweet",
)  # fmt: skip
SETS = {"sts": tuple(sts.TASKS), "transfer": tuple(transfer.SETS), "clustering": CLUSTERING}


@dataclass(frozen=True)
class Row:
    """One published row: `values` by set (x 100), their `average`, and its `deviation` over `seeds` runs.

    `train` are the options of `scripts.train` the row needs beyond method and backbone, `evaluate` those of
    `scripts.evaluate`; `read` is the way to the number in its results where that is not the task's average. `copied`
    marks what no command here makes: the paper took it from elsewhere, or it needs
    something that is not here; `source` says where it stands, and what is odd about it.
    """

    paper: str
    table: str
    name: str
    key: str
    task: str
    average: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    deviation: float | None = None
    seeds: int = 1
    method: str | None = None
    train: str = ""
    evaluate: str = ""
    read: tuple[str, ...] = ()
    copied: bool = False
    source: str = ""


def _row(paper: str, table: str, name: str, key: str, numbers: str | float, task: str = "sts", **more: object) -> Row:
    """A row from the numbers of its sets in the papers' order, the average last, or from the average alone."""
    *values, average = map(float, str(numbers).split())
    sets = dict(zip(SETS[task], values, strict=True)) if values else {}
    return Row(paper, table, name, key, task, average, sets, **more)  # type: ignore[arg-type]


def _untrained() -> Iterator[Row]:
    base = "bert-base-uncased"
    for name, pooling, numbers, more in (
        ("last layer average", "mean", "30.87 59.89 47.73 60.29 63.73 47.29 58.22 52.57", {}),
        ("static average", "static", "42.38 56.74 50.60 65.08 62.39 56.82 58.15 56.02", {}),
        ("first-last average", "first-last", "39.70 59.38 49.67 66.03 66.19 53.87 62.06 56.70",
         {"source": "embedding layer as first; with layer 1 it is 60.73 (SimCSE's issue 285)"}),
        ("manual prompt", "prompt", "60.96 73.83 62.18 71.54 68.68 70.60 67.16 67.85", {"evaluate": "--final-period"}),
    ):  # fmt: skip
        yield _row("promptbert", "5", name, f"{base} {pooling}", numbers, **{"evaluate": "", **more})
    yield _row(
        "promptbert", "5", "BERT-whitening", f"{base} first-last+whitening",
        "57.83 66.90 60.90 75.08 71.31 68.24 63.73 66.28", copied=True,
        source="fitted on all of SNLI and MNLI, layers 1 and 12; run it with --postprocess whitening --fit",
    )  # fmt: skip
    yield _row(
        "promptbert", "5", "BERT-flow", f"{base} first-last+flow", 66.55, copied=True,
        source="fitted on NLI text; run it with --postprocess flow --fit",
    )  # fmt: skip
    yield _row(
        "promptbert", "5", "GloVe average", "glove", "55.14 70.66 59.73 68.25 63.66 58.02 53.76 61.32", copied=True,
        source="Reimers and Gurevych 2019; run it with --model on a file of word vectors",
    )  # fmt: skip
    yield _row(
        "promptbert", "6", "RoBERTa-whitening", "roberta-base first-last+whitening",
        "46.99 63.24 57.23 71.36 68.99 61.36 62.91 61.73", copied=True, source="fitted on NLI text",
    )  # fmt: skip
    for backbone, static, last in (
        (base, 56.02, 52.57), ("bert-base-cased", 56.65, 56.93), ("roberta-base", 55.88, 53.49),
    ):  # fmt: skip
        yield _row("promptbert", "1", f"{backbone}, static", f"{backbone} static", static)
        yield _row("promptbert", "1", f"{backbone}, last layer", f"{backbone} mean", last)
    for name, pooling, average, subtracted in (
        ("[MASK], no denoising", "prompt", 67.85, ""),
        ("[MASK], denoised", "prompt-denoised", 67.43, "before the head"),
        ("top 200 tokens, no denoising", "top-tokens", 56.19, ""),
        ("top 200 tokens, denoised", "top-tokens-denoised", 60.39, "between logits"),
    ):
        yield _row(
            "promptbert", "9", name, f"{base} {pooling}", average, evaluate="--final-period",
            source=f"where the bias is subtracted is not said; here {subtracted}" if subtracted else "",
        )  # fmt: skip


def _trained() -> Iterator[Row]:
    base = "bert-base-uncased"
    for name, average in (("tied embeddings", 45.68), ("untied embeddings", 49.41), ("MLM head", 43.33)):
        yield Row(
            "promptbert", "12", name, f"{base} static", "sts", average, copied=True,
            source="needs BERT pretrained anew; scripts.pretrain makes small ones",
        )  # fmt: skip
    yield _row(
        "promptbert", "5", "OptiPrompt", f"{base} optiprompt", "64.56 79.96 70.05 79.37 75.35 77.25 68.56 73.59",
        method="optiprompt", evaluate="--final-period",
    )  # fmt: skip
    for table in ("6", "10"):
        yield _row(
            "promptbert", table, "PromptBERT", f"{base} promptbert", "71.56 84.58 76.98 84.47 80.60 81.60 69.87 78.54",
            method="promptbert", evaluate="--final-period", deviation=0.15, seeds=10,
            source="mean of 10 seeds, 78.33 to 78.86",
        )  # fmt: skip
    yield _row(
        "promptbert", "10", "SimCSE", f"{base} simcse", 75.42, method="simcse", deviation=0.86, seeds=10,
        source="10 seeds, 73.50 to 76.64; SimCSE's own paper gives 76.25",
    )  # fmt: skip
    yield _row(
        "promptbert", "6", "PromptRoBERTa", "roberta-base promptbert",
        "73.94 84.74 77.28 84.99 81.74 81.88 69.50 79.15", method="promptbert", evaluate="--final-period",
        deviation=0.25, seeds=10,
    )  # fmt: skip
    yield _row(
        "promptbert", "6", "PromptBERT, supervised", f"{base} promptbert supervised",
        "75.48 85.59 80.57 85.99 81.08 84.56 80.52 81.97", method="promptbert", train="--supervised",
        evaluate="--final-period",
    )  # fmt: skip
    yield _row(
        "promptbert", "6", "PromptRoBERTa, supervised", "roberta-base promptbert supervised",
        "76.75 85.93 82.28 86.69 82.80 86.14 80.04 82.95", method="promptbert", train="--supervised",
        evaluate="--final-period",
    )  # fmt: skip
    for backbone, same, different, denoised in (
        (base, (78.16, 0.17), (78.19, 0.29), (78.54, 0.15)),
        ("roberta-base", (78.16, 0.44), (78.17, 0.44), (79.15, 0.25)),
    ):
        for name, method, (average, deviation) in (
            ("same template", "promptbert-same", same),
            ("different templates", "promptbert-no-denoising", different),
            ("different templates, denoised", "promptbert", denoised),
        ):
            yield _row(
                "promptbert", "8", f"{backbone}, {name}", f"{backbone} {method}", average, method=method,
                evaluate="--final-period", deviation=deviation, seeds=10,
            )  # fmt: skip
    yield _row(
        "dcpcse", "1", "SCPCSE", f"{base} scpcse", "64.28 78.97 70.51 78.45 75.71 76.33 68.73 73.28", method="scpcse",
    )  # fmt: skip
    for backbone, average in ((base, 78.49), ("bert-large-uncased", 79.42), ("roberta-base", 77.93)):
        yield _row("dcpcse", "1", f"DCPCSE, {backbone}", f"{backbone} dcpcse", average, method="dcpcse")
    for backbone, average in (
        (base, 81.65), ("bert-large-uncased", 82.89), ("roberta-base", 82.94), ("roberta-large", 84.76),
    ):  # fmt: skip
        yield _row(
            "dcpcse", "1", f"DCPCSE, {backbone}, supervised", f"{backbone} dcpcse supervised", average,
            method="dcpcse", train="--supervised",
            source="a re-run elsewhere gave 81.32 (BERT-base) and 82.75 (RoBERTa-base)",
        )  # fmt: skip
    for backbone, method, average in (
        (base, "dcpcse-mlm", 78.10), (base, "dcpcse", 78.49),
        ("roberta-base", "dcpcse", 77.93), ("roberta-base", "dcpcse-no-mlm", 69.24),
    ):  # fmt: skip
        yield _row("dcpcse", "2", f"{backbone}, {method}", f"{backbone} {method}", average, method=method)
    for backbone, average in (
        (base, 78.85), ("bert-large-uncased", 80.01), ("roberta-base", 79.18), ("roberta-large", 80.18),
    ):  # fmt: skip
        yield _row(
            "conpvp", "3", f"ConPVP, {backbone}", f"{backbone} conpvp", average, method="conpvp",
            source="best of 4 seeds, not their mean",
        )  # fmt: skip
    for name, method, average, deviation in (
        ("ConPVP", "conpvp", 79.90, 0.32), ("manual anchor", "conpvp-manual", 79.18, 0.49),
        ("without c-", "conpvp-no-negative", 78.49, 0.33),
        ("without c+ and c-", "conpvp-no-prototypes", 77.28, 0.25),
        ("SimCSE", "simcse", 77.37, 0.88), ("PromptBERT", "promptbert", 78.51, 0.77),
    ):  # fmt: skip
        yield _row(
            "conpvp", "4", name, f"roberta-large {method}", average, method=method, deviation=deviation, seeds=4,
        )  # fmt: skip


def _other_tasks() -> Iterator[Row]:
    base = "bert-base-uncased"
    for name, pooling, numbers in (
        ("BERT average", "mean", "78.66 86.25 94.37 88.66 84.40 92.80 69.54 84.94"),
        ("BERT [CLS]", "cls", "78.68 84.85 94.21 88.23 84.13 91.40 71.13 84.66"),
    ):
        yield _row("promptbert", "15", name, f"{base} {pooling}", numbers, "transfer")
    for name, backbone, train, average in (
        ("PromptBERT", base, "", 85.49), ("PromptRoBERTa", "roberta-base", "", 87.36),
        ("PromptBERT, supervised", base, "--supervised", 86.90),
        ("PromptRoBERTa, supervised", "roberta-base", "--supervised", 89.00),
    ):  # fmt: skip
        supervised = " supervised" if train else ""
        yield _row(
            "promptbert", "15", name, f"{backbone} promptbert{supervised}", average, "transfer", method="promptbert",
            train=train,
        )  # fmt: skip
    for name, backbone, method, average, deviation in (
        ("ConPVP, RoBERTa-base", "roberta-base", "conpvp", 86.27, 0.11),
        ("ConPVP, RoBERTa-large", "roberta-large", "conpvp", 88.60, 0.14),
        ("SimCSE, RoBERTa-base", "roberta-base", "simcse", 85.06, 0.13),
        ("SimCSE, RoBERTa-large", "roberta-large", "simcse", 86.42, 0.23),
    ):
        yield _row(
            "conpvp", "5", name, f"{backbone} {method}", average, "transfer", method=method, deviation=deviation,
            seeds=4,
        )  # fmt: skip
    for backbone, numbers in (
        (base, "79.56 32.46 54.35 47.12 61.61 64.04 21.87 45.35 50.80"),
        ("bert-large-uncased", "83.13 30.52 56.34 46.11 61.51 66.54 26.10 44.20 51.81"),
    ):
        yield _row("conpvp", "6", backbone, f"{backbone} mean", numbers, "clustering")
    for backbone, method, average in (
        (base, "conpvp", 63.86), ("bert-large-uncased", "conpvp", 64.14),
        (base, "simcse", 57.58), ("bert-large-uncased", "simcse", 63.06),
    ):  # fmt: skip
        yield _row(
            "conpvp", "6", f"{method}, {backbone}", f"{backbone} {method}", average, "clustering", method=method,
            source="its text says +1.21 and +2.18 over SimCSE; the table gives +6.28 and +1.08",
        )  # fmt: skip


def _geometry() -> Iterator[Row]:
    base, cased, roberta = "bert-base-uncased", "bert-base-cased", "roberta-base"
    for backbone, static, last in ((base, 0.8250, 0.4874), (cased, 0.5755, 0.7514), (roberta, 0.5693, 0.9554)):
        for pooling, value in (("static", static), ("mean", last)):
            yield Row(
                "promptbert", "1", f"{backbone}, {pooling}, anisotropy", f"{backbone} {pooling}", "geometry", value,
                read=("anisotropy", "anisotropy"), source="over 100,000 sentences of Wikipedia; here over STS-B test",
            )  # fmt: skip
    for backbone, value in ((base, 0.4445), (cased, 0.1465), (roberta, 0.0235)):
        yield Row(
            "promptbert", "2", f"{backbone}, word embeddings", f"{backbone} static", "geometry", value,
            read=("static-bias", "groups", "all", "cosine"),
        )  # fmt: skip
    ladder = {
        "-Freq": (59.65, 60.27, 65.41), "-Freq&Sub": (62.20, 64.83, 64.89), "-Freq&Sub&Case": (None, 65.07, 65.06),
        "-Freq&Sub&Case&Pun": (63.10, 66.05, 67.64),
    }  # fmt: skip
    for rung, values in ladder.items():
        for backbone, average in zip((base, cased, roberta), values, strict=True):
            if average is not None:
                yield Row(
                    "promptbert", "3", f"{backbone} {rung}", f"{backbone} static", "geometry", average,
                    read=("static-bias", rung, "average"), source="on SentEval's tokenised, lower-cased text",
                )  # fmt: skip


def _figures() -> Iterator[Row]:
    base = "bert-base-uncased"
    yield Row("promptbert", "figure-1", "static embeddings in two dimensions", f"{base} static", "geometry")
    for template, value in TEMPLATES.items():
        yield Row("promptbert", "4", template, f"{base} prompt", "templates", value)
    for length, average in ((1, 76.50), (4, None), (8, None), (12, None), (16, 78.49), (20, None)):
        yield Row(
            "dcpcse", "figure-2", f"prompt length {length}", f"{base} dcpcse", "sts", average, method="dcpcse",
            train=f"--prefix {length}", source="read off the figure" if average == 76.50 else "",
        )  # fmt: skip
    for figure, task in (
        ("figure-4", "geometry"),
        ("figure-5", "geometry"),
        ("figure-6", "geometry"),
        ("figure-7", "few-shot"),
    ):
        yield Row("conpvp", figure, "untrained [CLS]", "roberta-large cls", task)
        for method in ("simcse", "conpvp"):
            yield Row("conpvp", figure, method, f"roberta-large {method}", task, method=method)


# PromptBERT's Table 4, STS-B dev with bert-base-uncased.
TEMPLATES = {
    "[X] [MASK] .": 39.34,
    "[X] is [MASK] .": 47.26,
    "[X] mean [MASK] .": 53.94,
    "[X] means [MASK] .": 63.56,
    "This [X] means [MASK] .": 64.19,
    "This sentence of [X] means [MASK] .": 68.97,
    'This sentence of "[X]" means [MASK] .': 70.19,
    'This sentence : "[X]" means [MASK] .': 73.44,
}

ROWS: tuple[Row, ...] = (*_untrained(), *_trained(), *_other_tasks(), *_geometry(), *_figures())


def rows(paper: str, table: str) -> list[Row]:
    """The rows of a table. Raises ValueError, with the choices, for an unknown paper or table."""
    if paper not in PAPERS:
        raise ValueError(f"unknown paper {paper!r}; choose from {', '.join(PAPERS)}")
    found = [row for row in ROWS if row.paper == paper and row.table == table]
    if not found:
        tables = {row.table for row in ROWS if row.paper == paper}
        known = sorted(tables, key=lambda name: (not name.isdigit(), len(name), name))
        raise ValueError(f"{paper} has no table {table!r} here; choose from {', '.join(known)}")
    return found


def published(task: str, key: str | None) -> Row | None:
    """The first published row of a task for a `key`."""
    return next((row for row in ROWS if row.task == task and row.key == key), None)
