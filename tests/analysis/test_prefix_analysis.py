"""Attention on a prefix and its ablation, and ConPVP's prototypes, against plain transformers written out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from app_models import write_model
from conftest import SENTENCES

import cse
from cse.analysis.prefix_analysis import head_attention, prefix_attention, prototypes, without_prefix
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.method import Pooling
from cse.methods.templates import NEGATIVE, POSITIVE

SENTENCE = SENTENCES[2]


@pytest.fixture
def prefixed(tmp_path: Path, backbone: str) -> TorchEncoder:
    """A DCPCSE model of either family whose prefix is large enough to matter."""
    encoder = cse.load(str(write_model(tmp_path / "dcpcse", Path(backbone), "dcpcse")), backend="torch")
    with torch.no_grad():
        encoder.prefix.mul_(20)
    return encoder


def plain(encoder: TorchEncoder, sentence: str, off: tuple[int, ...]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The first token's last state, and each layer's attention (heads, L, P + L), layer by layer."""
    model, length = encoder.model.base_model, encoder.reading.prefix
    ids = torch.tensor([encoder.tokenizer(sentence)["input_ids"]])
    start = (0 if "roberta" not in encoder.model.config.model_type else 2) + (length if len(off) < 2 else 0)
    state = model.embeddings(input_ids=ids, position_ids=torch.arange(start, start + ids.shape[1])[None])
    weights = []
    for number, layer in enumerate(model.encoder.layer):
        own, heads = layer.attention.self, encoder.model.config.num_attention_heads
        query, key, value = (part(state)[0].unflatten(1, (heads, -1)) for part in (own.query, own.key, own.value))
        if number + 1 not in off:
            learned = encoder.prefix.unflatten(1, (2, 2, heads, -1))[:, number]
            key, value = (torch.cat([learned[:, side], part]) for side, part in enumerate((key, value)))
        shares = (torch.einsum("qhd,khd->hqk", query, key) / query.shape[2] ** 0.5).softmax(-1)
        weights.append(shares.numpy())
        read = torch.einsum("hqk,khd->qhd", shares, value).flatten(1)[None]
        state = layer.attention.output(read, state)
        state = layer.output(layer.intermediate(state), state)
    return state[0, 0].numpy(), weights


@torch.no_grad()
def test_the_attention_on_the_prefix_is_that_of_a_plain_model(prefixed):
    attention, (_, weights) = prefix_attention(prefixed, SENTENCE), plain(prefixed, SENTENCE, ())
    length = prefixed.reading.prefix
    for layer, shares in enumerate(weights):
        on_prefix = shares[:, :, :length].sum(2).mean(0)
        assert attention.read[layer] == pytest.approx(on_prefix[0], abs=1e-5)
        assert attention.mean[layer] == pytest.approx(on_prefix.mean(), abs=1e-5)
    assert len(attention.read) == 2
    assert attention.even == pytest.approx(length / weights[0].shape[2])
    assert prefixed.model.config._attn_implementation == "sdpa"


@torch.no_grad()
def test_attention_by_head_is_that_of_a_plain_model(prefixed):
    attention, (_, weights) = head_attention(prefixed, SENTENCE), plain(prefixed, SENTENCE, ())
    expected = np.stack(weights)[:, :, 0]  # of the first token, which is read
    np.testing.assert_allclose(attention.shares, expected, atol=1e-5)
    assert attention.tokens[: attention.prefix] == tuple(f"prefix {n}" for n in range(1, prefixed.reading.prefix + 1))
    ids = prefixed.tokenizer(SENTENCE)["input_ids"]
    assert attention.tokens[attention.prefix :] == tuple(prefixed.tokenizer.convert_ids_to_tokens(ids))
    assert attention.read == attention.tokens[attention.prefix]
    mean = head_attention(prefixed.reading_by(replace(prefixed.reading, pooling=Pooling.MEAN)), SENTENCE)
    assert mean.read is None
    np.testing.assert_allclose(mean.shares, np.stack(weights).mean(2), atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("off", [(), (2,), (1, 2)])
def test_layers_without_their_prefix_are_those_of_a_plain_model(prefixed, off):
    """Two sentences at once, so that one of them is padded."""
    vectors = without_prefix(prefixed, [SENTENCE, SENTENCES[5]], off)
    for row, sentence in zip(vectors, (SENTENCE, SENTENCES[5]), strict=True):
        np.testing.assert_allclose(row, plain(prefixed, sentence, off)[0], atol=1e-5)
    assert (np.abs(vectors - prefixed.encode([SENTENCE, SENTENCES[5]])).max() > 1e-3) == bool(off)


@torch.no_grad()
def test_prototypes_are_the_templates_read_at_the_mask_minus_what_they_say_alone(tmp_path, bert_folder):
    encoder = cse.load(str(write_model(tmp_path / "conpvp", bert_folder, "conpvp")), backend="torch")
    by_template = {prototype.template: prototype for prototype in prototypes(encoder, SENTENCE)}
    assert set(by_template) == {template.text for template in (*POSITIVE, *NEGATIVE)}
    assert [p.cosine for p in by_template.values()] == sorted((p.cosine for p in by_template.values()), reverse=True)
    model, tokenizer = encoder.model.base_model, encoder.tokenizer
    content = tokenizer(SENTENCE, add_special_tokens=False)["input_ids"]
    words = model.get_input_embeddings().weight

    def at_mask(before: list, after: list) -> torch.Tensor:
        """`before` and `after` are word embeddings, of which one is the mask's."""
        mask, first = words[tokenizer.mask_token_id], words[tokenizer.cls_token_id]
        number = next(i for i, row in enumerate((*before, *after)) if torch.equal(row, mask))
        whole = torch.stack([first, *before, *words[content], *after, words[tokenizer.sep_token_id]])
        alone = torch.stack([*before, *after])
        positions = [*range(1, len(before) + 1), *range(len(before) + len(content) + 1, len(whole) - 1)]
        spoken = model(inputs_embeds=whole[None]).last_hidden_state[0]
        bias = model(inputs_embeds=alone[None], position_ids=torch.tensor([positions])).last_hidden_state[0]
        return spoken[1 + number + (len(content) if number >= len(before) else 0)] - bias[number]

    def embedded(text: str) -> list:
        return list(words[tokenizer(text, add_special_tokens=False)["input_ids"]]) if text.strip() else []

    own = at_mask([], [*encoder.slots, *embedded("[MASK] .")])
    for template in (POSITIVE[0], POSITIVE[4], NEGATIVE[6]):
        vector = at_mask(*(embedded(part) for part in template.text.split("[X]")))
        cosine = float(torch.nn.functional.cosine_similarity(own, vector, dim=0))
        assert by_template[template.text].cosine == pytest.approx(cosine, abs=1e-5)
        assert by_template[template.text].positive == (template in POSITIVE)
