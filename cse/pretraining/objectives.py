"""Objectives of pretraining: masked language modelling and the bag of words, the logits they need and SIF weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.backbone import mlm_head

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cse.pretraining.batches import Rows

IGNORED = -100
RARITY = 1e-4  # SIF's a: words of this share count half


def rarity(counts: np.ndarray, special: list[int]) -> torch.Tensor:
    """(V,) SIF weights a / (a + p(w)) of token counts (V,); `special` ids weigh nothing."""
    weights = RARITY / (RARITY + counts / max(1, counts.sum()))
    weights[special] = 0.0
    return torch.from_numpy(weights.astype(np.float32))


def bag_loss(logits: torch.Tensor, bag: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of logits (B, V) against the words of bag (B, n), each with its weight of (V,)."""
    shares = weights[bag]
    shares = shares / shares.sum(1, keepdim=True).clamp(min=1e-9)
    return -(logits.float().log_softmax(-1).gather(1, bag) * shares).sum(1).mean()


def read(model: PreTrainedModel, rows: Rows, bag: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (n, V) of the n masked positions and, with `bag`, (B, V) where the rows are read, else (0, V).

    Only these positions reach the vocabulary.
    """
    hidden = model.base_model(input_ids=rows.inputs, attention_mask=torch.ones_like(rows.inputs)).last_hidden_state
    masked = hidden[rows.labels != IGNORED]
    spoken = hidden[:, rows.at] if bag else masked[:0]
    logits = mlm_head(model)(torch.cat([masked, spoken]))
    return logits[: len(masked)], logits[len(masked) :]


def masked_loss(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of logits (n, V); 0 where n is, as a few short rows may have nothing to guess."""
    total = torch.nn.functional.cross_entropy(logits.float(), wanted, reduction="sum")
    return total / max(1, len(wanted))
