"""Contrastive losses and the weight of the masked-LM term: pure functions of tensors and numbers."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy, normalize


def info_nce(
    anchors: torch.Tensor,
    positives: torch.Tensor,
    negatives: torch.Tensor | None = None,
    *,
    temperature: float = 0.05,
) -> torch.Tensor:
    """Mean cross-entropy of each anchor's own positive among all positives and all negatives, by cosine / temperature.

    All (N, d), rows need not be unit; anchor i belongs to positive i. SimCSE Eq. 1 and 5, PromptBERT Eq. 4, ConPVP
    Eq. 1.
    """
    candidates = positives if negatives is None else torch.cat([positives, negatives])
    with torch.autocast(anchors.device.type, enabled=False):  # bfloat16 cosines over 0.05 would be off by a tenth
        cosines = normalize(anchors.float(), dim=-1) @ normalize(candidates.float(), dim=-1).T  # (N, N) or (N, 2N)
        labels = torch.arange(len(anchors), device=anchors.device)
        return cross_entropy(cosines / temperature, labels)


def nt_xent(first: torch.Tensor, second: torch.Tensor, *, temperature: float = 0.1) -> torch.Tensor:
    """NT-Xent of two views (N, d): each row's other view among the 2N - 1 other rows of both, by cosine / temperature.

    The mean over the first view plus the mean over the second, as in ConSERT's released code (SimCLR Eq. 1).
    """
    with torch.autocast(first.device.type, enabled=False):
        rows = normalize(torch.cat([first, second]).float(), dim=-1)
        logits = (rows @ rows.T / temperature).fill_diagonal_(float("-inf"))  # (2N, 2N), nothing is its own candidate
        labels = torch.arange(len(rows), device=rows.device).roll(len(first))
        return 2 * cross_entropy(logits, labels)


def energy_hinge(
    anchors: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor | None = None, *, margin: float = 0.2
) -> torch.Tensor:
    """PromCSE's energy-based hinge: mean of max(0, margin - cosine of the pair + cosine of the nearest negative).

    All (N, d). The negatives of anchor i are the other positives and all `negatives` (Jiang, Zhang and Wang 2022,
    PromCSE's supervised training).
    """
    with torch.autocast(anchors.device.type, enabled=False):
        rows, own = normalize(anchors.float(), dim=-1), normalize(positives.float(), dim=-1)
        cosines = rows @ own.T  # (N, N)
        nearest = cosines.clone().fill_diagonal_(-1.0).amax(1)
        if negatives is not None:
            nearest = torch.maximum(nearest, (rows @ normalize(negatives.float(), dim=-1).T).amax(1))
        return (margin - cosines.diagonal() + nearest).clamp(min=0).mean()


def mlm_weight(start: float, step: int) -> float:
    """DCPCSE's decaying weight of the masked-LM term: start * 0.95 ** (step / 100)."""
    return start * 0.95 ** (step / 100)
