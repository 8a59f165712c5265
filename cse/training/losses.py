"""Contrastive losses and the weight of the masked-LM term: pure functions of tensors and numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy, normalize

from cse.methods.method import When

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from cse.encoder.rows import TokenRows
    from cse.encoder.torch_encoder import TorchEncoder


def info_nce(
    anchors: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor | None = None, *, temperature: float = 0.05
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


CHOSEN_SHARE, MASKED_SHARE, REPLACED_SHARE = 0.15, 0.8, 0.9  # BERT, section 3.1; shares of the chosen, cumulated
FIRST_WORD_ID = 5  # lower ids are special tokens in BERT's and RoBERTa's vocabularies


def mask_tokens(
    ids: torch.Tensor, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(changed ids, chosen) of int64 `ids` of any shape; `chosen` is True where the token is to be predicted."""
    chosen = torch.rand(ids.shape, generator=generator) < CHOSEN_SHARE
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD_ID, len(tokenizer), ids.shape, generator=generator)
    changed = torch.where(chosen & (fate < MASKED_SHARE), tokenizer.mask_token_id, ids)
    return torch.where(chosen & (fate >= REPLACED_SHARE), words, changed), chosen


MOMENTUM = 0.995  # momentum per step; ESimCSE, section 3.2


@dataclass(frozen=True)
class MomentumQueue:
    """A queue of `vectors` (Q, d), newest last, of which the last `count` (0-dimensional) are filled.

    `weights` are the moving averages of the parameters that `encoder` learns below its head, by name; the head is the
    encoder's own.
    """

    encoder: TorchEncoder
    weights: dict[str, torch.Tensor]
    vectors: torch.Tensor
    count: torch.Tensor

    @classmethod
    def start(cls, encoder: TorchEncoder) -> MomentumQueue:
        """An empty queue as long as the method of `encoder` says, and a copy of the learned parameters."""
        learned = {name: tensor for name, tensor in encoder.named_parameters() if tensor.requires_grad}
        weights = {name: tensor.detach().clone() for name, tensor in learned.items() if not name.startswith("head.")}
        vectors = torch.zeros(encoder.method.queue, encoder.dim, device=encoder.device)
        return cls(encoder, weights, vectors, torch.zeros((), dtype=torch.int64, device=encoder.device))

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a resumed run needs, by name."""
        weights = {f"momentum.{name}": tensor for name, tensor in self.weights.items()}
        return {**weights, "queue.vectors": self.vectors, "queue.count": self.count}

    def negatives(self) -> torch.Tensor:
        """(K, d) vectors in the queue, K at most Q, 0 before the first step; a copy, which the backward pass needs."""
        return self.vectors[len(self.vectors) - int(self.count) :].clone()

    @torch.no_grad()
    def advance(self, rows: TokenRows, gather: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Update the averages after a step's loss, and queue their vectors of the sentences of all processes.

        The vectors (B, d) are those of the copy without dropout, through the encoder's own head; the oldest leave.
        """
        encoder, training, size = self.encoder, self.encoder.training, len(self.vectors)
        learned = dict(encoder.named_parameters())
        for name, tensor in self.weights.items():
            tensor.lerp_(learned[name], 1 - MOMENTUM)
        encoder.eval()
        vectors = functional_call(encoder, self.weights, (rows,))
        if encoder.head is not None and encoder.reading.head_when is When.TRAINING:
            vectors = encoder.head(vectors)
        encoder.train(training)
        vectors = gather(vectors)
        self.vectors.copy_(torch.cat([self.vectors, vectors])[-size:])
        self.count.add_(len(vectors)).clamp_(max=size)
