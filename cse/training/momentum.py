"""ESimCSE's additional negatives: a queue of vectors from a momentum copy of the encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.func import functional_call

from cse.methods.method import When

if TYPE_CHECKING:
    from cse.encoding.rows import TokenTemplate
    from cse.engines.torch_encoder import TorchEncoder

KEPT = 0.995  # momentum per step; ESimCSE, section 3.2
HEAD = "head."


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
        weights = {name: tensor.detach().clone() for name, tensor in learned.items() if not name.startswith(HEAD)}
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
    def follow(self) -> None:
        """Update the moving averages: 0.995 x average + 0.005 x encoder."""
        live = dict(self.encoder.named_parameters())
        for name, tensor in self.weights.items():
            tensor.lerp_(live[name], 1 - KEPT)

    @torch.no_grad()
    def encode(self, contents: Sequence[Sequence[int]], templates: Sequence[TokenTemplate]) -> torch.Tensor:
        """(B, d) vectors of token ids from the copy, without dropout, through the encoder's own head."""
        encoder, training = self.encoder, self.encoder.training
        encoder.eval()
        vectors = functional_call(encoder, self.weights, (contents, templates))
        if encoder.head is not None and encoder.reading.head_when is When.TRAINING:
            vectors = encoder.head(vectors)
        encoder.train(training)
        return vectors

    def push(self, vectors: torch.Tensor) -> None:
        """Append (B, d) vectors and drop the oldest."""
        size = len(self.vectors)
        self.vectors.copy_(torch.cat([self.vectors, vectors])[-size:])
        self.count.add_(len(vectors)).clamp_(max=size)

    def advance(
        self,
        contents: Sequence[Sequence[int]],
        templates: Sequence[TokenTemplate],
        gather: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """Update the copy after a step's loss and queue its vectors of the sentences of all processes."""
        self.follow()
        self.push(gather(self.encode(contents, templates)))
