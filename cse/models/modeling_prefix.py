"""BERT and RoBERTa with learned keys and values in every layer (DCPCSE). Exports contain this file unchanged."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers import BertModel, DynamicCache, RobertaModel


class Prefixed:
    """Mixin with the parameter `prefix` (P, layers * 2 * width): learned keys and values for every layer.

    The row layout is layer 0 keys, layer 0 values, layer 1 keys, ...; P is `prefix_length` of the configuration.
    """

    def __init__(self, config: Any, add_pooling_layer: bool = False) -> None:
        super().__init__(config, add_pooling_layer=False)  # type: ignore[call-arg]
        rows, width = config.prefix_length, config.num_hidden_layers * 2 * config.hidden_size
        self.prefix = torch.nn.Parameter(torch.zeros(rows, width))
        self.post_init()  # type: ignore[attr-defined]

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **options: Any) -> Any:
        """The output of the model for ids (B, L); its last hidden states are (B, L, d), without the prefix."""
        model: Any = self
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        first = 0 if model.config.model_type == "bert" else model.config.pad_token_id + 1
        start = first + len(self.prefix)
        options["position_ids"] = torch.arange(start, start + input_ids.shape[1], device=input_ids.device)[None]
        options["attention_mask"] = torch.cat([mask.new_ones(len(mask), len(self.prefix)), mask], 1)
        # transformers 5.24 renamed the argument. A model ignores an unknown one, and then the mask does not fit.
        name = "cache" if "cache" in inspect.signature(BertModel.forward).parameters else "past_key_values"
        options[name] = cache = DynamicCache()
        sizes = model.config.num_hidden_layers, 2, model.config.num_attention_heads, -1
        parts = self.prefix.expand(len(input_ids), -1, -1).unflatten(2, sizes).permute(2, 3, 0, 4, 1, 5)
        for layer, (keys, values) in enumerate(parts):  # each (B, heads, P, d / heads)
            cache.update(keys, values, layer)
        return super().forward(input_ids=input_ids, **options)  # type: ignore[misc]


class PrefixBertModel(Prefixed, BertModel):
    """BERT with a prefix."""


class PrefixRobertaModel(Prefixed, RobertaModel):
    """RoBERTa with a prefix."""
