"""Prefix models (DCPCSE): attention to the prefix by layer, and vectors without the prefix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cse.analysis.attention import attention_weights, eager_layers, layer_count

if TYPE_CHECKING:  # the app shows stored results before torch is imported
    import numpy as np
    from torch import nn

    from cse.engines.torch_encoder import TorchEncoder


class PrefixAttention(NamedTuple):
    """Share of attention on the prefix by layer, averaged over heads: of the `read` token, and the `mean` over tokens.

    `even` is the share under uniform attention over prefix and tokens.
    """

    read: tuple[float, ...]
    mean: tuple[float, ...]
    even: float


def prefix_attention(encoder: TorchEncoder, sentence: str) -> PrefixAttention:
    """Measure a sentence's attention to the prefix. Raises ValueError for a model without a prefix."""
    length = prefix_length(encoder)
    template = encoder.views[0][0]
    row = template.row(encoder.tokenise([sentence], [template])[0])
    seen = [shares[..., :length].sum(-1).mean(0) for shares in attention_weights(encoder, row)]  # (L,) by layer
    read, mean = (tuple(map(float, shares)) for shares in ([s[row.pool_at] for s in seen], [s.mean() for s in seen]))
    return PrefixAttention(read, mean, length / (length + len(row.ids)))


def without_prefix(encoder: TorchEncoder, sentences: Sequence[str], layers: Collection[int]) -> np.ndarray:
    """(N, d) float32 vectors of N sentences with the prefix masked in some `layers`, counted from 1.

    In a masked layer no token attends to the prefix. With all layers masked the prefix is removed, so that positions
    start at the sentence: the plain backbone with the model's pooling. Raises ValueError for a model without a prefix,
    and for a layer that it does not have.
    """
    import torch

    length, count = prefix_length(encoder), layer_count(encoder)
    if wrong := sorted(set(layers) - set(range(1, count + 1))):
        raise ValueError(f"{encoder.name} has no layer {wrong[0]}; choose from 1 to {count}")
    if len(set(layers)) == count:
        return _bare(encoder).encode(sentences)

    def hide(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        states, mask = inputs[0], named["attention_mask"]
        hidden = states.new_zeros(1, 1, 1, length + states.shape[1]) if mask is None else mask.clone()
        hidden[..., :length] = torch.finfo(hidden.dtype).min
        return inputs, {**named, "attention_mask": hidden}

    with eager_layers(encoder) as attention:
        hooks = [attention[layer - 1].register_forward_pre_hook(hide, with_kwargs=True) for layer in layers]
        try:
            return encoder.encode(list(sentences))
        finally:
            for hook in hooks:
                hook.remove()


def prefix_length(encoder: TorchEncoder) -> int:
    """The length of a model's prefix. Raises ValueError if it has none."""
    if not encoder.reading.prefix:
        raise ValueError(f"{encoder.name} has no prefix")
    return encoder.reading.prefix


def _bare(encoder: TorchEncoder) -> TorchEncoder:
    """The encoder without its prefix, truncating sentences at the same length."""
    from cse.engines.torch_encoder import TorchEncoder

    method = encoder.method.replaced(prefix=0)
    bare = TorchEncoder(encoder.model, encoder.tokenizer, method, name=encoder.name, head=encoder.head)
    bare.max_row_length = encoder.max_content + encoder.views[0][0].length
    return bare
