"""SimCSE: [CLS] under a fresh linear layer with tanh in training; at test without it, supervised with it."""

import pytest
import torch
from reference import Reference, check


def first_token(reference: Reference, template: str, sentence: str) -> torch.Tensor:
    return reference.read(reference.row(template, sentence))


def unsupervised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    hidden = first_token(reference, template, sentence)
    return reference.mlp(hidden) if training else hidden


def supervised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    return reference.mlp(first_token(reference, template, sentence))


@pytest.mark.parametrize(("views", "vector"), [(2, unsupervised), (3, supervised)])
def test_simcse_is_the_released_one(backbone, views, vector):
    check(backbone, "simcse", [["[X]"]] * views, vector)
