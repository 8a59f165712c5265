"""Objectives of pretraining: masked language modelling (MLM) and SIF-weighted bag-of-words prediction.

The bag-of-words term makes the position that a sentence vector is read from predict the text and the text that follows
(Ma et al. 2024, arXiv:2401.11248); rare words count more, by their SIF weights (Arora, Liang and Ma 2017). With masking
alone, the first token and a prompt's [MASK] of a small model carry little about the sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.encoding.backbone import mlm_head
from cse.pretraining.batches import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cse.pretraining.batches import MaskedBatch

SIF_CONSTANT = 1e-4  # a of SIF: words of this probability have weight 0.5


def sif_weights(counts: np.ndarray, special: list[int]) -> torch.Tensor:
    """(V,) float32 SIF weights a / (a + p(w)) of token counts (V,); `special` ids have weight 0."""
    weights = SIF_CONSTANT / (SIF_CONSTANT + counts / max(1, counts.sum()))
    weights[special] = 0.0
    return torch.from_numpy(weights.astype(np.float32))


def forward_logits(model: PreTrainedModel, batch: MaskedBatch, bag: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (n, V) at the n `places` of the batch and, with `bag`, (B, V) at `batch.pool_at`, else (0, V).

    Only these positions go through the masked-language-model head.
    """
    hidden = model.base_model(input_ids=batch.inputs, attention_mask=torch.ones_like(batch.inputs)).last_hidden_state
    masked = hidden.flatten(0, 1)[batch.places]
    pooled = hidden[:, batch.pool_at] if bag else masked[:0]
    logits = mlm_head(model)(torch.cat([masked, pooled]))
    return logits[: len(masked)], logits[len(masked) :]


def masked_lm_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) of logits (n, V) against ids (n,), without those of -100.

    It is 0 if none is left: short rows may have no mask.
    """
    total = torch.nn.functional.cross_entropy(logits.float(), targets, ignore_index=IGNORED, reduction="sum")
    return total / (targets != IGNORED).sum().clamp(min=1)


def bag_loss(logits: torch.Tensor, bag: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) of logits (B, V) against the words of bag (B, n), each with its weight of (V,)."""
    shares = weights[bag]
    shares = shares / shares.sum(1, keepdim=True).clamp(min=1e-9)
    return -(logits.float().log_softmax(-1).gather(1, bag) * shares).sum(1).mean()
