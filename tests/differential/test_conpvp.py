"""ConPVP: a continuous anchor against drawn prototypes, each less the same row with its sentence hidden."""

import pytest
import torch
from reference import Reference, check

CONTINUOUS = "[X] [P][P][P][P] [MASK] ."
MANUAL = {"bert": 'This sentence : " [X] " means [MASK] .', "roberta": "This sentence : ' [X] ' means [MASK]."}
POSITIVE = [
    'Given " [X] " , we assume that " [MASK] "', '" [X] " , Is this review positive ? [MASK] .',
    '" [X] " , is related to " [MASK] "', '" [X] " is a [MASK] news', '" [X] " is a [MASK] one',
    '" [X] " . In summary : " [MASK] "', 'By " [X] " they mean [MASK] .', 'Article " [X] " belongs to a [MASK] topic',
    'This sentence : " [X] " means [MASK] .',
]  # fmt: skip
NEGATIVE = [
    '" [X] " , Is this review negative ? [MASK] .', 'Without " [X] " they mean [MASK] .',
    '" [X] " is inconsistent to " [MASK] "', '" [X] " is totally different to : " [MASK] "',
    '" [X] " which not denotes [MASK] .', '" [X] " is not a [MASK] one', 'This sentence : " [X] " not means [MASK] .',
    'Article " [X] " is definitely not about the [MASK] topic',
]  # fmt: skip


def state(reference: Reference, template: str, sentence: str, hidden: bool) -> torch.Tensor:
    """At the mask; with the sentence and both special tokens hidden from attention, the template's own."""
    ids = reference.row(template, sentence)
    before, after = reference.around(template)
    embedded = reference.words[ids].clone()
    if "[P]" in template:
        mask = reference.at_mask(ids)
        embedded[mask - 4 : mask] = reference.parts["slots"]
    seen = [1] * len(ids)
    if hidden:
        inside = len(ids) - len(before) - len(after)
        seen = [0, *[1] * (len(before) - 1), *[0] * inside, *[1] * (len(after) - 1), 0]
    return reference.read(ids, seen=seen, embedded=embedded)


def denoised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    found = state(reference, template, sentence, False)
    return reference.mlp(found - state(reference, template, sentence, True)) if training else found


def not_denoised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    found = state(reference, template, sentence, False)
    return reference.mlp(found) if training else found


@pytest.mark.parametrize(
    ("name", "views", "vector"),
    [
        ("conpvp", [[CONTINUOUS], POSITIVE, NEGATIVE], denoised),
        ("conpvp-no-negative", [[CONTINUOUS], POSITIVE], denoised),
        ("conpvp-no-prototypes", [[CONTINUOUS]] * 2, not_denoised),
    ],
)
def test_conpvp_is_the_released_one(backbone, name, views, vector):
    check(backbone, name, views, vector, "slots")
    check(backbone, name, views, vector, draw=1)


def test_a_manual_anchor_is_promptberts(backbone):
    anchor = MANUAL["roberta" if "roberta" in backbone else "bert"]
    check(backbone, "conpvp-manual", [[anchor], POSITIVE, NEGATIVE], denoised)
