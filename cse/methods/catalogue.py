"""The catalogue: the papers' methods, their supervised forms and variants, and the poolings of a backbone.

To add a method, add an entry to `METHODS`, and its rows to `cse.methods.presets.PUBLISHED` (CONTRIBUTING.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cse.methods.method import Contrast, Head, Method, Pooling, Reading, When
from cse.methods.templates import (
    CONTINUOUS,
    MANUAL,
    MEANS,
    MEANS_OF,
    NEGATIVE,
    OPTI,
    PLAIN,
    POSITIVE,
    SHALLOW,
    Template,
)

SIMCSE = Method(
    "simcse", Reading(PLAIN), ((PLAIN,),), "the same sentence twice; dropout is the only difference",
    "Gao, Yao and Chen 2021 (EMNLP)", title="SimCSE", arxiv="2104.08821",
)  # fmt: skip
PROMPTBERT = Method(
    "promptbert", Reading(MEANS_OF, When.TRAINING), ((MEANS,),),
    "two templates read at [MASK], their bias subtracted in training", "Jiang et al. 2022 (EMNLP)",
    title="PromptBERT", arxiv="2201.04337",
)  # fmt: skip
DCPCSE = Method(
    "dcpcse", Reading(PLAIN, frozen=True, prefix=16), ((PLAIN,),),
    "frozen backbone; keys and values learned in front of every layer",
    "Jiang, Zhang and Wang 2022 (Findings of EMNLP)", title="DCPCSE", arxiv="2203.06875",
)  # fmt: skip
CONPVP = Method(
    "conpvp", Reading(CONTINUOUS, When.TRAINING, specials_in_bias=False), (POSITIVE, NEGATIVE),
    "a continuous prompt against positive and negative prototypes", "Zeng et al. 2022 (Findings of EMNLP)",
    title="ConPVP", arxiv="2211.03348",
)  # fmt: skip


def _variant(method: Method, name: str, **differences: Any) -> Method:
    """Return a method's form under another name, without a title of its own."""
    return method.replaced(name=name, title="", **differences)


METHODS = {
    method.name: method
    for method in (
        SIMCSE,
        PROMPTBERT,
        DCPCSE,
        CONPVP,
        Method(
            "optiprompt", Reading(OPTI, head=Head.TRANSFORM, frozen=True), ((OPTI,),),
            "frozen backbone; the template's own words become learned vectors", "PromptBERT, section 4.3",
            title="OptiPrompt", arxiv=PROMPTBERT.arxiv,
        ),
        Method(
            "scpcse", Reading(SHALLOW, frozen=True), ((SHALLOW,),),
            "frozen backbone; learned input vectors only, DCPCSE made shallow", "DCPCSE, section 3.3 and appendix A",
            title="SCPCSE", arxiv=DCPCSE.arxiv,
        ),
        replace(
            SIMCSE, name="esimcse", repetition=0.32, queue=160, citation="Wu et al. 2022 (COLING)",
            summary="SimCSE with repeated word pieces and a queue of momentum negatives", title="ESimCSE",
            arxiv="2109.04380",
        ),
        Method(
            "consert", Reading(PLAIN, head_when=When.NEVER, pooling=Pooling.LAST_TWO), ((PLAIN,),),
            "mean pooling; dimensions cut off against positions shuffled, no dropout", "Yan et al. 2021 (ACL)",
            training_pooling=Pooling.MEAN, cutoff=0.2, shuffled=True, contrast=Contrast.NT_XENT, loss_weight=0.15,
            title="ConSERT", arxiv="2105.11741",
        ),
        _variant(CONPVP, "conpvp-manual", template=MANUAL, summary="ConPVP with a manual anchor (Table 4)"),
        _variant(
            PROMPTBERT, "promptbert-same", further=((MEANS_OF,),), denoise=When.NEVER,
            summary="PromptBERT with one template, dropout differs (Table 8)",
        ),
        _variant(
            PROMPTBERT, "promptbert-no-denoising", denoise=When.NEVER,
            summary="PromptBERT with two templates, not denoised (Table 8)",
        ),
        _variant(DCPCSE, "dcpcse-mlm", summary="DCPCSE with the masked-LM term (Table 2)"),
        _variant(DCPCSE, "dcpcse-no-mlm", summary="DCPCSE without the masked-LM term (Table 2)"),
        _variant(CONPVP, "conpvp-no-negative", further=(POSITIVE,), summary="ConPVP without c- (Table 4)"),
        _variant(
            CONPVP, "conpvp-no-prototypes", further=((CONTINUOUS,),), denoise=When.NEVER,
            summary="ConPVP without c+ and c-: the continuous prompt twice (Table 4)",
        ),
    )
}  # fmt: skip

# Texts are premise, entailed, contradicted; the head is kept for encoding (the methods' released evaluation).
SUPERVISED = {
    "simcse": SIMCSE.replaced(further=((PLAIN,),) * 2, supervised=True, head_when=When.ALWAYS),
    "promptbert": PROMPTBERT.replaced(
        further=((MEANS_OF,),) * 2,
        supervised=True,
        denoise=When.ALWAYS,
        head=Head.TRANSFORM,
        head_when=When.ALWAYS,
        roberta_head=Head.TANH,  # as in the released code
    ),
    "dcpcse": DCPCSE.replaced(further=((PLAIN,),) * 2, supervised=True, head_when=When.ALWAYS, prefix=12),
}


def _pooling(name: str, summary: str, template: Template = PLAIN, citation: str = "", **reading: Any) -> Method:
    return Method(
        name, Reading(template, **{"head_when": When.NEVER, **reading}), (), summary, citation, untrained=True
    )


UNTRAINED = {
    method.name: method
    for method in (
        _pooling("mean", "mean of the last layer", pooling=Pooling.MEAN),
        _pooling("cls", "last layer at the first token"),
        _pooling("last", "last layer at the last token", pooling=Pooling.LAST),
        _pooling("max", "largest number of the last layer in every dimension", pooling=Pooling.MAX),
        _pooling("weighted-mean", "mean of the last layer, weighted by place", pooling=Pooling.WEIGHTED_MEAN),
        _pooling(
            "mean-sqrt-len", "sum of the last layer over the root of the length", pooling=Pooling.MEAN_SQRT_LEN
        ),
        _pooling("cls-mean", "last layer at the first token, then the mean", pooling=Pooling.CLS_MEAN),
        _pooling("mean-cls", "mean of the last layer, then the first token", pooling=Pooling.MEAN_CLS),
        _pooling("pooler", "the model's own pooler (linear, tanh) over the first token", head_when=When.ALWAYS),
        _pooling("first-last", "mean of the embedding layer and the last", pooling=Pooling.FIRST_LAST),
        _pooling(
            "cls-first-last", "embedding layer and the last, averaged: at the first token, then the mean",
            pooling=Pooling.CLS_FIRST_LAST,
        ),
        _pooling("last-two", "mean of the last two layers", citation="ConSERT", pooling=Pooling.LAST_TWO),
        _pooling("static", "mean of the word embeddings", pooling=Pooling.STATIC),
        _pooling(
            "static-output", "mean of the output embeddings, the rows of the decoder", pooling=Pooling.STATIC_OUTPUT,
            citation="PromptBERT, Table 12",
        ),
        _pooling("prompt", f"last layer at the [MASK] of {MEANS.text}", MEANS, "PromptBERT, Table 4"),
        _pooling(
            "prompt-denoised", "last layer at the template's [MASK], minus what the template alone says there",
            MEANS, "PromptBERT, Table 9", denoise=When.ALWAYS,
        ),
    )
}  # fmt: skip
