"""MLM batches and their sampler: running text in a template, some of its tokens masked.

Masking is dynamic: 15 % of the text's positions, of which 80 % become [MASK], 10 % a random token and 10 % stay
(BERT, 3.1). The text is put into the templates that methods encode sentences with, so that the position a sentence
vector is read from is trained as well (`cse.pretraining.objectives.bag_loss`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.encoding.rows import TokenTemplate, render
from cse.methods.templates import CONTINUOUS, MEANS, PLAIN
from cse.training.masking import mask_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from cse.pretraining.config import PretrainConfig
    from cse.pretraining.corpus import TokenFile

ROUNDED = 64  # predicted positions of a batch are padded to a multiple of this
IGNORED = -100  # label of positions that are not predicted
TEMPLATES = (PLAIN, MEANS, CONTINUOUS)  # of the methods
BAG_LOOKAHEAD = 32  # tokens of the following text in the bag of words


@dataclass(frozen=True)
class MaskedBatch:
    """An MLM batch of B rows of L tokens, all in one template.

    `inputs` (B, L) int64 are the ids after masking; `labels` (B, L) int64 the ids to predict, -100 elsewhere.
    `pool_at` is the column a sentence vector is read from. `bag` (B, n) int64 are the ids of the text and of the text
    that follows.
    """

    inputs: torch.Tensor
    labels: torch.Tensor
    pool_at: int
    bag: torch.Tensor

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
        inputs, labels, bag = (tensor.to(device, non_blocking=True) for tensor in (self.inputs, self.labels, self.bag))
        return MaskedBatch(inputs, labels, self.pool_at, bag)

    def split(self, size: int) -> list[MaskedBatch]:
        """Micro-batches of at most `size` rows."""
        tensors = zip(self.inputs.split(size), self.labels.split(size), self.bag.split(size), strict=True)
        return [MaskedBatch(inputs, labels, self.pool_at, bag) for inputs, labels, bag in tensors]


@dataclass(frozen=True)
class BatchSize:
    """`tokens` of a batch and `length` of a row, at most the model's `max_length`; all with special tokens."""

    tokens: int
    length: int
    max_length: int


def masked_inputs(
    text: torch.Tensor, template: TokenTemplate, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs (B, L), labels (B, L)) of text ids (B, n) in a template of L - n tokens; only the text is masked."""
    changed, chosen = mask_tokens(text, tokenizer, generator)
    before, after = (text.new_tensor(ids).expand(len(text), -1) for ids in (template.before, template.after))
    inputs = torch.cat([before, changed, after], 1)
    padding = (len(template.before), len(template.after))
    return inputs, torch.nn.functional.pad(text.masked_fill(~chosen, IGNORED), padding, value=IGNORED)


def sample_batch(
    corpus: TokenFile,
    template: TokenTemplate,
    tokenizer: PreTrainedTokenizerBase,
    size: BatchSize,
    rng: np.random.Generator,
) -> MaskedBatch:
    """A masked batch of as many rows as `size.tokens` allows, each from a random sentence start of `corpus`.

    A row has `size.length` - 2 tokens of text in any template, or what `size.max_length` and the corpus allow.
    """
    text = max(1, min(size.length - 2, size.max_length - template.length, len(corpus.ids)))
    bag = min(text + BAG_LOOKAHEAD, len(corpus.ids))
    ids = torch.from_numpy(corpus.rows(max(1, size.tokens // (text + template.length)), bag, rng))
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    inputs, labels = masked_inputs(ids[:, :text], template, tokenizer, generator)
    return MaskedBatch(inputs, labels, template.row(range(text)).pool_at, ids)


@dataclass(frozen=True)
class BatchSampler:
    """Draws the MLM batch of each step from a tokenised corpus.

    With a `bag_weight` in `config` each batch draws one of `TEMPLATES`, without one all are plain text.
    """

    config: PretrainConfig
    corpus: TokenFile
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    @cached_property
    def templates(self) -> list[TokenTemplate]:
        """The templates of the batches."""
        return [render(template, self.tokenizer) for template in (TEMPLATES if self.config.bag_weight else (PLAIN,))]

    def batch(self, step: int) -> MaskedBatch:
        """The batch of a step: a function of the seed and the step alone."""
        rng = np.random.default_rng((self.config.seed, step))
        length = int(rng.choice(self.config.lengths))
        template = self.templates[rng.integers(len(self.templates))]
        size = BatchSize(self.config.batch_tokens, length, self.max_length)
        return sample_batch(self.corpus, template, self.tokenizer, size, rng)
