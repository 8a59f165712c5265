"""The numbers of PromptBERT's tables and figures, and the rows of all three papers. Only facts stand here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cse.benchmark import published_conpvp, published_dcpcse
from cse.benchmark.published_row import BASE, CASED, LARGE, ROBERTA, SENTEVAL, PublishedRow, published_row

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
GENERATED = {"Also called [MASK]. [X]": 64.75}  # section 4.2: the best of 500 templates that T5 wrote


# Rows that stand in several tables.
LAST = "30.87 59.89 47.73 60.29 63.73 47.29 58.22 52.57"
STATIC = "42.38 56.74 50.60 65.08 62.39 56.82 58.15 56.02"
REMOVED = "53.09 66.48 65.09 69.80 67.85 61.60 57.80 63.10"
PROMPT = "60.96 73.83 62.18 71.54 68.68 70.60 67.16 67.85"
TRAINED = "71.56 84.58 76.98 84.47 80.60 81.60 69.87 78.54"
TRAINED_ROBERTA = "73.94 84.74 77.28 84.99 81.74 81.88 69.50 79.15"

_promptbert = partial(published_row, paper="promptbert")


def _promptbert_baselines() -> Iterator[PublishedRow]:
    """The rows of Tables 5 and 6 that need no training."""
    for name, pooling, numbers, more in (
        ("last layer average", "mean", LAST, {}),
        ("static average", "static", STATIC, {}),
        ("first-last average", "first-last", "39.70 59.38 49.67 66.03 66.19 53.87 62.06 56.70",
         {"source": "embedding layer as first; with layer 1 it is 60.73 (SimCSE's issue 285)"}),
        ("manual prompt", "prompt", PROMPT, {"evaluate": "--final-period"}),
    ):  # fmt: skip
        yield _promptbert("5", name, f"{BASE} {pooling}", numbers, **more)
    yield _promptbert(
        "5", "BERT-whitening", f"{BASE} first-last+whitening", "57.83 66.90 60.90 75.08 71.31 68.24 63.73 66.28",
        copied=True,
        source="fitted on all of SNLI and MNLI, layers 1 and 12; run it with --postprocess whitening --fit",
    )  # fmt: skip
    yield _promptbert(
        "5", "BERT-flow", f"{BASE} first-last+flow", 66.55, copied=True,
        source="fitted on NLI text; run it with --postprocess flow --fit",
    )  # fmt: skip
    yield _promptbert(
        "5", "GloVe average", "glove", "55.14 70.66 59.73 68.25 63.66 58.02 53.76 61.32", copied=True,
        source="Reimers and Gurevych 2019; run it with --model on a file of word vectors",
    )  # fmt: skip
    yield _promptbert(
        "6", "RoBERTa-whitening", f"{ROBERTA} first-last+whitening", "46.99 63.24 57.23 71.36 68.99 61.36 62.91 61.73",
        copied=True, source="fitted on NLI text",
    )  # fmt: skip


def _promptbert_untrained() -> Iterator[PublishedRow]:
    """Tables 1, 9 and 12."""
    for backbone, static, last in ((BASE, STATIC, LAST), (CASED, 56.65, 56.93), (ROBERTA, 55.88, 53.49)):
        yield _promptbert("1", f"{backbone}, static", f"{backbone} static", static)
        yield _promptbert("1", f"{backbone}, last layer", f"{backbone} mean", last)
    for name, pooling, average, subtracted in (
        ("[MASK], no denoising", "prompt", PROMPT, ""),
        ("[MASK], denoised", "prompt-denoised", 67.43, "before the head"),
        ("top 200 tokens, no denoising", "top-tokens", 56.19, ""),
        ("top 200 tokens, denoised", "top-tokens-denoised", 60.39, "between logits"),
    ):
        source = f"where the bias is subtracted is not said; here {subtracted}" if subtracted else ""
        yield _promptbert("9", name, f"{BASE} {pooling}", average, evaluate="--final-period", source=source)
    for name, average in (("tied embeddings", 45.68), ("untied embeddings", 49.41), ("MLM head", 43.33)):
        source = "needs BERT pretrained anew; scripts.pretrain makes small ones"
        yield _promptbert("12", name, f"{BASE} static", average, copied=True, source=source)


def _promptbert_trained() -> Iterator[PublishedRow]:
    """The trained rows of Tables 5, 6 and 10."""
    promptbert = partial(_promptbert, method="promptbert", evaluate="--final-period")
    yield _promptbert(
        "5", "OptiPrompt", f"{BASE} optiprompt", "64.56 79.96 70.05 79.37 75.35 77.25 68.56 73.59",
        method="optiprompt", evaluate="--final-period",
    )  # fmt: skip
    for table in ("6", "10"):
        yield promptbert(
            table, "PromptBERT", f"{BASE} promptbert", TRAINED,
            deviation=0.15, seeds=10, source="mean of 10 seeds, 78.33 to 78.86",
        )  # fmt: skip
    yield _promptbert(
        "10", "SimCSE", f"{BASE} simcse", 75.42, method="simcse", deviation=0.86, seeds=10,
        source="10 seeds, 73.50 to 76.64; SimCSE's own paper gives 76.25",
    )  # fmt: skip
    yield promptbert(
        "6", "PromptBERT, BERT-large", f"{LARGE} promptbert",
        source="its number is not recorded here; settings of the author's command (Prompt-BERT's issue 3)",
    )  # fmt: skip
    yield promptbert(
        "6", "PromptRoBERTa", f"{ROBERTA} promptbert", TRAINED_ROBERTA,
        deviation=0.25, seeds=10,
    )  # fmt: skip
    yield promptbert(
        "6", "PromptBERT, supervised", f"{BASE} promptbert supervised",
        "75.48 85.59 80.57 85.99 81.08 84.56 80.52 81.97", supervised=True,
    )  # fmt: skip
    yield promptbert(
        "6", "PromptRoBERTa, supervised", f"{ROBERTA} promptbert supervised",
        "76.75 85.93 82.28 86.69 82.80 86.14 80.04 82.95", supervised=True,
    )  # fmt: skip


def _promptbert_ablations() -> Iterator[PublishedRow]:
    """Table 8."""
    for backbone, same, different, denoised in (
        (BASE, (78.16, 0.17), (78.19, 0.29), (TRAINED, 0.15)),
        (ROBERTA, (78.16, 0.44), (78.17, 0.44), (TRAINED_ROBERTA, 0.25)),
    ):
        for name, method, (average, deviation) in (
            ("same template", "promptbert-same", same),
            ("different templates", "promptbert-no-denoising", different),
            ("different templates, denoised", "promptbert", denoised),
        ):
            yield _promptbert(
                "8", f"{backbone}, {name}", f"{backbone} {method}", average, method=method, evaluate="--final-period",
                deviation=deviation, seeds=10,
            )  # fmt: skip


def _promptbert_transfer() -> Iterator[PublishedRow]:
    """Table 15."""
    for name, pooling, numbers in (
        ("BERT average", "mean", "78.66 86.25 94.37 88.66 84.40 92.80 69.54 84.94"),
        ("BERT [CLS]", "cls", "78.68 84.85 94.21 88.23 84.13 91.40 71.13 84.66"),
    ):
        yield _promptbert("15", name, f"{BASE} {pooling}", numbers, "transfer", evaluate=SENTEVAL)
    for name, backbone, supervised, average in (
        ("PromptBERT", BASE, False, 85.49), ("PromptRoBERTa", ROBERTA, False, 87.36),
        ("PromptBERT, supervised", BASE, True, 86.90), ("PromptRoBERTa, supervised", ROBERTA, True, 89.00),
    ):  # fmt: skip
        key = f"{backbone} promptbert{' supervised' if supervised else ''}"
        yield _promptbert(
            "15", name, key, average, "transfer", method="promptbert", supervised=supervised,
            evaluate=f"{SENTEVAL} --final-period{' --bare' if supervised else ''}",
            source="without head and denoising, as its author ran it (its issue 34)" if supervised else "",
        )  # fmt: skip


def _promptbert_geometry() -> Iterator[PublishedRow]:
    """Tables 1 to 4 and Figure 1."""
    for backbone, static, last in ((BASE, 0.8250, 0.4874), (CASED, 0.5755, 0.7514), (ROBERTA, 0.5693, 0.9554)):
        for pooling, value in (("static", static), ("mean", last)):
            yield _promptbert(
                "1", f"{backbone}, {pooling}, anisotropy", f"{backbone} {pooling}", value, "geometry",
                read=("anisotropy", "anisotropy"),
                source="over 100,000 sentences of Wikipedia; here over --sentences, or STS-B test",
            )  # fmt: skip
    for backbone, value in ((BASE, 0.4445), (CASED, 0.1465), (ROBERTA, 0.0235)):
        read = ("static-bias", "groups", "all", "cosine")
        yield _promptbert("2", f"{backbone}, word embeddings", f"{backbone} static", value, "geometry", read=read)
    for removed, averages in (
        ("-Freq", (59.65, 60.27, 65.41)), ("-Freq&Sub", (62.20, 64.83, 64.89)),
        ("-Freq&Sub&Case", (None, 65.07, 65.06)), ("-Freq&Sub&Case&Pun", (
            REMOVED, "57.86 68.51 66.43 75.67 68.99 64.51 60.39 66.05",
            "60.54 66.90 66.81 76.85 71.68 69.11 61.56 67.64")),
    ):  # fmt: skip
        for backbone, average in zip((BASE, CASED, ROBERTA), averages, strict=True):
            if average is not None:
                yield _promptbert(
                    "3", f"{backbone} {removed}", f"{backbone} static", average, "geometry",
                    read=("static-bias", removed, "average"), source="on SentEval's tokenised, lower-cased text",
                )  # fmt: skip
    yield _promptbert(
        "5", "static average, biases removed", f"{BASE} static", REMOVED, "geometry",
        read=("static-bias", "-Freq&Sub&Case&Pun", "average"),
    )  # fmt: skip
    for template, value in TEMPLATES.items():
        yield _promptbert("4", template, f"{BASE} prompt", value, "templates")
    for backbone in (BASE, CASED, ROBERTA):
        yield _promptbert("figure-1", f"word embeddings of {backbone}", f"{backbone} static", task="geometry")


PAPER_ROWS: tuple[PublishedRow, ...] = (
    *_promptbert_baselines(), *_promptbert_untrained(), *_promptbert_trained(), *_promptbert_ablations(),
    *_promptbert_transfer(), *_promptbert_geometry(), *published_dcpcse.rows(), *published_conpvp.rows(),
)  # fmt: skip
