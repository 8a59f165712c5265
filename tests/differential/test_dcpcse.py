"""DCPCSE: learned keys and values in front of every layer's own, positions after them; the masked-LM term."""

import pytest
import torch
from reference import TEXTS, Reference, check, pair
from torch.nn.functional import cross_entropy

from cse.encoder.rows import TokenRows
from cse.training.step import masked_language_loss


def states(reference: Reference, ids: list[int]) -> torch.Tensor:
    """(L, d) last hidden states, attention written out head by head."""
    model, prefix = reference.model.base_model, reference.parts["prefix"]
    heads, layers = model.config.num_attention_heads, model.config.num_hidden_layers
    first = len(prefix) + (2 if reference.roberta else 0)
    hidden = model.embeddings(
        input_ids=torch.tensor([ids]), position_ids=torch.arange(first, first + len(ids))[None]
    )[0]  # fmt: skip
    width = hidden.shape[1] // heads
    for number, layer in enumerate(model.encoder.layer):
        inner = layer.attention.self
        query, key, value = inner.query(hidden), inner.key(hidden), inner.value(hidden)
        flat = prefix.view(len(prefix), layers, 2, -1)  # of each slot: layer 0 keys, layer 0 values, layer 1 keys, ...
        key, value = torch.cat([flat[:, number, 0], key]), torch.cat([flat[:, number, 1], value])
        parts = []
        for head in range(heads):
            own = slice(head * width, (head + 1) * width)
            parts.append(torch.softmax(query[:, own] @ key[:, own].T / width**0.5, -1) @ value[:, own])
        attended = layer.attention.output(torch.cat(parts, 1), hidden)
        hidden = layer.output(layer.intermediate(attended), attended)
    return hidden


def unsupervised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    hidden = states(reference, reference.row(template, sentence))[0]
    return reference.mlp(hidden) if training else hidden


def supervised(reference: Reference, template: str, sentence: str, training: bool) -> torch.Tensor:
    return reference.mlp(states(reference, reference.row(template, sentence))[0])


@pytest.mark.parametrize(("views", "vector"), [(2, unsupervised), (3, supervised)])
def test_dcpcse_is_the_released_one(backbone, views, vector):
    check(backbone, "dcpcse", [["[X]"]] * views, vector, "prefix")


def test_the_masked_language_term_guesses_15_percent_behind_the_same_prefix(backbone):
    """The draws are repeated: which tokens are guessed, what becomes of each, and by which random token."""
    encoder, reference = pair(backbone, "dcpcse-mlm")
    template = encoder.views[0][0]
    contents = encoder.tokenise(TEXTS, [template] * 3, 30)
    encoder.train()
    torch.manual_seed(2)
    loss = masked_language_loss(encoder, TokenRows.of(contents, [template] * 3))
    loss.backward()

    torch.manual_seed(2)
    logits, labels = [], []
    decode = reference.model.lm_head if reference.roberta else reference.model.cls
    for ids in contents:
        guessed, fate = torch.rand(len(ids)) < 0.15, torch.rand(len(ids))
        words = torch.randint(5, len(reference.tokenizer), (len(ids),)).tolist()
        changed = list(ids)
        for place in guessed.nonzero()[:, 0].tolist():
            if not 0.8 <= fate[place] < 0.9:  # a tenth stays
                changed[place] = reference.tokenizer.mask_token_id if fate[place] < 0.8 else words[place]
        hidden = states(reference, [reference.tokenizer.cls_token_id, *changed, reference.tokenizer.sep_token_id])
        for place in guessed.nonzero()[:, 0].tolist():
            logits.append(decode(hidden[place + 1][None])[0])
            labels.append(ids[place])
    expected = cross_entropy(torch.stack(logits), torch.tensor(labels))
    expected.backward()
    assert len(labels) > 3
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(encoder.prefix.grad, reference.parts["prefix"].grad, atol=1e-5, rtol=0)
