"""PromptBERT: [MASK] less the template alone, at the positions of such a sentence, under the released heads."""

import pytest
import torch
from reference import Reference, check

OF, COLON = 'This sentence of "[X]" means [MASK].', 'This sentence : "[X]" means [MASK].'
THIS, THE = "This sentence : ' [X] ' means [MASK].", "The sentence : ' [X] ' means [MASK]."
WORDS = {"bert": COLON, "roberta": THIS}


def states(reference: Reference, template: str, sentence: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The sentence's hidden state at the mask, and the template's: its ids alone, those behind the gap moved on."""
    ids = reference.row(template, sentence)
    before, after = reference.around(template)
    gap = len(ids) - len(before) - len(after)
    moved = [*range(len(before)), *range(len(before) + gap, len(ids))]
    return reference.read(ids), reference.read([*before, *after], positions=moved)


def denoised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    hidden, bias = states(reference, template, sentence)
    return reference.mlp(hidden - bias) if training else hidden


def not_denoised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    hidden, _ = states(reference, template, sentence)
    return reference.mlp(hidden) if training else hidden


def supervised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    """BERT: the transform of both, subtracted; RoBERTa: the fresh head of the difference. The same at test."""
    hidden, bias = states(reference, template, sentence)
    if reference.roberta:
        return reference.mlp(hidden - bias)
    return reference.transform(hidden) - reference.transform(bias)


@pytest.mark.parametrize(
    ("name", "bert", "roberta", "vector"),
    [
        ("promptbert", [OF, COLON], [THIS, THE], denoised),
        ("promptbert", [OF] * 3, [THIS] * 3, supervised),
        ("promptbert-same", [OF] * 2, [THIS] * 2, not_denoised),
        ("promptbert-no-denoising", [OF, COLON], [THIS, THE], not_denoised),
    ],
)
def test_promptbert_is_the_released_one(backbone, name, bert, roberta, vector):
    check(backbone, name, [[text] for text in (roberta if "roberta" in backbone else bert)], vector)


def soft(reference: Reference, template: str, sentence: str) -> torch.Tensor:
    """[MASK] with every other word of the template a learned vector, found by its place."""
    ids = reference.row(template, sentence)
    before, after = reference.around(template)
    mask, end = reference.at_mask(ids), len(ids) - len(after)
    places = [place for place in (*range(1, len(before)), *range(end, len(ids) - 1)) if place != mask]
    assert len(places) == len(reference.parts["slots"])
    embedded = reference.words[ids].clone()
    embedded[places] = reference.parts["slots"]
    return reference.read(ids, embedded=embedded)


def optiprompt(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    hidden = soft(reference, template, sentence)
    return reference.transform(hidden) if training else hidden


def shallow(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    hidden = soft(reference, template, sentence)
    return reference.mlp(hidden) if training else hidden


@pytest.mark.parametrize(("name", "vector", "end"), [("optiprompt", optiprompt, "."), ("scpcse", shallow, "")])
def test_learned_templates_replace_the_words_of_the_template(backbone, name, vector, end):
    text = WORDS["roberta" if "roberta" in backbone else "bert"].removesuffix(".") + end
    check(backbone, name, [[text]] * 2, vector, "slots")
