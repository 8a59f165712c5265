"""Computation of a backbone's last block only at the token of each row that is read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FAMILIES = ("bert", "roberta", "xlm-roberta", "camembert")  # whose blocks are BERT's
FUSED = "sdpa"  # other attentions are for analysis of the blocks (`cse.analysis.prefix`)


def can_read_at(model: PreTrainedModel) -> bool:
    """Make `model.base_model` accept `read_at` (B,), the token of each row to compute; False if it cannot.

    With `read_at` its last hidden states are (B, 1, d). Without it the model is unchanged.
    """
    if model.config.model_type not in FAMILIES:
        return False
    encoder: Any = model.base_model.encoder
    encoder.layer[-1].forward = partial(_forward, encoder.layer[-1])  # a bound method could not be unpickled
    return True


def _forward(
    block: Any,
    hidden: torch.Tensor,
    mask: torch.Tensor | None = None,
    *args: Any,
    read_at: torch.Tensor | None = None,
    **options: Any,
) -> torch.Tensor:
    """Run a block's own forward or, with `read_at`, only these tokens; the others are needed for keys and values."""
    if read_at is None:
        return type(block).forward(block, hidden, mask, *args, **options)
    from transformers import Cache

    own = block.attention.self
    read = hidden[torch.arange(len(hidden), device=hidden.device), read_at][:, None]  # (B, 1, d)
    queries, keys, values = (
        states.unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)  # (B, heads, 1 or L, d / heads)
        for states in (own.query(read), own.key(hidden), own.value(hidden))
    )
    for option in (*args, *options.values()):
        if isinstance(option, Cache):  # transformers 5.24 renamed it
            keys, values = option.update(keys, values, own.layer_idx)
    if mask is not None:  # (B, 1, L, P + L), boolean or additive, equal for all L queries
        mask = mask[:, :, :1] if mask.dtype is torch.bool else mask[:, :, :1].to(queries.dtype)
    dropout = own.dropout.p if block.training else 0.0
    context = scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout)
    return block.feed_forward_chunk(block.attention.output(context.transpose(1, 2).flatten(2), read))
