"""The contrastive loss as a double loop."""

import math

import torch


def slow_info_nce(
    anchors: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor | None, temperature: float
) -> float:
    def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
        return float((a @ b) / (a.norm() * b.norm()))

    total = 0.0
    for i in range(len(anchors)):
        terms = [math.exp(cosine(anchors[i], positives[j]) / temperature) for j in range(len(positives))]
        own = terms[i]
        if negatives is not None:
            terms += [math.exp(cosine(anchors[i], negatives[j]) / temperature) for j in range(len(negatives))]
        total -= math.log(own / sum(terms))
    return total / len(anchors)
