"""Attention by layer and head, from eager attention, which returns its weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from cse.errors import ArtefactError
from cse.methods.method import Pooling

if TYPE_CHECKING:  # the app shows stored results before torch is imported
    import numpy as np
    import torch
    from torch import nn

    from cse.encoder.rows import TokenRows
    from cse.encoder.torch_encoder import TorchEncoder

LEARNED_TOKEN = "[P]"  # a learned token of a template


class HeadAttention(NamedTuple):
    """Attention of the token that a vector is read from: `shares` (layers, heads, T) float32 on T `tokens`.

    The shares of a head add up to 1. `read` names the token, None if the vector is the mean of all tokens; then the
    shares are their means. The first `prefix` of the tokens are the learned ones of every layer.
    """

    read: str | None
    tokens: tuple[str, ...]
    prefix: int
    shares: np.ndarray


def head_attention(encoder: TorchEncoder, sentence: str) -> HeadAttention:
    """Measure a sentence's attention in the encoder's template, by layer and head."""
    import torch

    template, length = encoder.views[0][0], encoder.reading.prefix
    row = encoder.rows_of([sentence], [template])
    words = encoder.tokenizer.convert_ids_to_tokens(row.ids.tolist())
    texts = [word if slot < 0 else LEARNED_TOKEN for word, slot in zip(words, row.tokens[1], strict=True)]
    weights = torch.stack(attention_weights(encoder, row))  # (layers, heads, L, P + L)
    one, read_at = encoder.reading.pooling is Pooling.TOKEN, int(row.read_at[0])
    shares = weights[:, :, read_at] if one else weights.mean(2)
    tokens = (*(f"prefix {number}" for number in range(1, length + 1)), *texts)
    return HeadAttention(texts[read_at] if one else None, tokens, length, shares.float().cpu().numpy())


def attention_weights(encoder: TorchEncoder, row: TokenRows) -> list[torch.Tensor]:
    """Return each layer's attention (heads, L, P + L) on a prefix of length P, which may be 0, and the L tokens."""
    seen: list[torch.Tensor] = []

    def watch(module: nn.Module, inputs: Any, output: tuple[torch.Tensor, torch.Tensor]) -> None:
        seen.append(output[1][0])

    with eager_layers(encoder) as layers:
        hooks = [layer.register_forward_hook(watch) for layer in layers]
        try:
            with encoder.inference():
                encoder.hidden(row)
        finally:
            for hook in hooks:
                hook.remove()
    return seen


@contextmanager
def eager_layers(encoder: TorchEncoder) -> Iterator[list[nn.Module]]:
    """Yield the layers' attention modules with eager attention, as fused attention returns no weights.

    Raises ArtefactError for a family whose layers have no such modules.
    """
    model = encoder.model
    modules = [module for module in model.base_model.modules() if getattr(module, "layer_idx", None) is not None]
    if len(modules) != layer_count(encoder):
        raise ArtefactError(f"{encoder.name}: the attention of a {model.config.model_type} model cannot be read")
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield modules
    finally:
        model.set_attn_implementation(before)


def layer_count(encoder: TorchEncoder) -> int:
    """The number of layers of a model's backbone."""
    return int(encoder.model.config.num_hidden_layers)
