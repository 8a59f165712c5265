"""The last block of a backbone at one token of each row: no other is read, so no other is computed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from transformers import Cache, PreTrainedModel

FAMILIES = ("bert", "roberta", "xlm-roberta", "camembert")  # whose blocks are BERT's
FUSED = "sdpa"  # by another attention somebody looks into the blocks (`cse.analysis.prefix`)


def can_read_at(model: PreTrainedModel) -> bool:
    """Whether `model.base_model` takes `read_at` (B,) from now on: the token of each row whose last state comes back.

    Its last hidden states then are (B, 1, d). Without the argument the model does what it did.
    """
    if model.config.model_type not in FAMILIES:
        return False
    encoder: Any = model.base_model.encoder
    encoder.layer[-1].forward = partial(_forward, encoder.layer[-1])  # a pickle could not find a method of that name
    return True


def _forward(
    block: Any,
    hidden: torch.Tensor,
    mask: torch.Tensor | None = None,
    *args: Any,
    past_key_values: Cache | None = None,
    read_at: torch.Tensor | None = None,
    **options: Any,
) -> torch.Tensor:
    """A block's own forward or, with `read_at`, the same of these tokens: keys and values alone need all the others.

    With a `packing` (`cse.encoding.packed`) among the options they are tokens of its one sequence; returns (1, B, d).
    """
    if read_at is None:
        return type(block).forward(block, hidden, mask, *args, past_key_values=past_key_values, **options)
    own, packing = block.attention.self, options.get("packing")
    if packing is not None:
        read = hidden[:, read_at]  # (1, B, d)
    else:
        read = hidden[torch.arange(len(hidden), device=hidden.device), read_at][:, None]  # (B, 1, d)
    queries, keys, values = (
        states.unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)  # (B, heads, 1 or L, d / heads)
        for states in (own.query(read), own.key(hidden), own.value(hidden))
    )
    if past_key_values is not None:
        keys, values = past_key_values.update(keys, values, own.layer_idx)
    if packing is not None:
        context = packing.attend(queries, keys, values, single=True)
        return block.feed_forward_chunk(block.attention.output(context.flatten(2), read))
    if mask is not None:  # (B, 1, L, P + L), whose L queries see the same, or of floats to add
        mask = mask[:, :, :1] if mask.dtype is torch.bool else mask[:, :, :1].to(queries.dtype)
    dropout = own.dropout.p if block.training else 0.0
    context = scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout)
    return block.feed_forward_chunk(block.attention.output(context.transpose(1, 2).flatten(2), read))
