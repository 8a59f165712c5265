"""Masked-language-model (MLM) batches of running text, their sampler, logits and loss.

Masking is dynamic: 15 % of the text's positions, of which 80 % become [MASK], 10 % a random token and 10 % stay
(BERT, 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.backbones.backbone import mlm_head
from cse.encoding.rows import TokenTemplate, render
from cse.methods.templates import PLAIN
from cse.training.masking import mask_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.pretraining.config import PretrainConfig
    from cse.pretraining.corpus import TokenFile

ROUNDED = 64  # predicted positions of a batch are padded to a multiple of this
IGNORED = -100  # label of positions that are not predicted


@dataclass(frozen=True)
class MaskedBatch:
    """An MLM batch of B rows of L tokens.

    `inputs` (B, L) int64 are the ids after masking; `labels` (B, L) int64 the ids to predict, -100 elsewhere.
    """

    inputs: torch.Tensor
    labels: torch.Tensor

    @cached_property
    def masked(self) -> torch.Tensor:
        """(B, L) True where a token is to be predicted."""
        return self.labels != IGNORED

    @cached_property
    def places(self) -> torch.Tensor:
        """(n,) int64 flat indices of the tokens to predict, padded with 0 to a multiple of 64.

        For every new size oneDNN would cache another kernel, and the logits need another buffer.
        """
        found = self.masked.flatten().nonzero()[:, 0]
        return torch.nn.functional.pad(found, (0, -len(found) % ROUNDED))

    @cached_property
    def targets(self) -> torch.Tensor:
        """(n,) the id to predict at each of `places`, -100 at the padding."""
        count = int(self.masked.sum())
        return torch.nn.functional.pad(self.labels[self.masked], (0, len(self.places) - count), value=IGNORED)

    def to(self, device: torch.device) -> MaskedBatch:
        """The batch on a device."""
        return MaskedBatch(*(tensor.to(device, non_blocking=True) for tensor in (self.inputs, self.labels)))

    def split(self, size: int) -> list[MaskedBatch]:
        """Micro-batches of at most `size` rows."""
        return [MaskedBatch(*rows) for rows in zip(self.inputs.split(size), self.labels.split(size), strict=True)]


def masked_inputs(
    text: torch.Tensor, around: TokenTemplate, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator
) -> MaskedBatch:
    """Text ids (B, n) between the special tokens `around` it; only the text is masked."""
    changed, chosen = mask_tokens(text, tokenizer, generator)
    before, after = (text.new_tensor(ids).expand(len(text), -1) for ids in (around.before, around.after))
    padding = (len(around.before), len(around.after))
    labels = torch.nn.functional.pad(text.masked_fill(~chosen, IGNORED), padding, value=IGNORED)
    return MaskedBatch(torch.cat([before, changed, after], 1), labels)


@dataclass(frozen=True)
class BatchSampler:
    """Draws the MLM batch of each step from a tokenised corpus, in rows of at most `max_length` tokens."""

    config: PretrainConfig
    corpus: TokenFile
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    @cached_property
    def around(self) -> TokenTemplate:
        """The special tokens around the text of a row."""
        return render(PLAIN, self.tokenizer)

    def batch(self, step: int) -> MaskedBatch:
        """The batch of a step: a function of the seed and the step alone.

        Its rows have one of the configured lengths, or what `max_length` and the corpus allow, and each starts at a
        random sentence; there are as many as `batch_tokens` allows.
        """
        rng = np.random.default_rng((self.config.seed, step))
        specials, wanted = self.around.length, int(rng.choice(self.config.lengths))
        text = max(1, min(min(wanted, self.max_length) - specials, len(self.corpus.ids)))
        ids = self.corpus.rows(max(1, self.config.batch_tokens // (text + specials)), text, rng)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        return masked_inputs(torch.from_numpy(ids), self.around, self.tokenizer, generator)


def masked_logits(model: PreTrainedModel, batch: MaskedBatch) -> torch.Tensor:
    """Logits (n, V) at the n `places` of the batch; no other position goes through the masked-LM head."""
    hidden = model.base_model(input_ids=batch.inputs, attention_mask=torch.ones_like(batch.inputs)).last_hidden_state
    return mlm_head(model)(hidden.flatten(0, 1)[batch.places])


def masked_lm_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) of logits (n, V) against ids (n,), without those of -100.

    It is 0 if none is left: short rows may have no mask.
    """
    total = torch.nn.functional.cross_entropy(logits.float(), targets, ignore_index=IGNORED, reduction="sum")
    return total / (targets != IGNORED).sum().clamp(min=1)
