"""The rows a backbone is pretrained on: running text in a template, some of it masked, with the words it speaks of.

Masking is dynamic: 15 % of the text's positions, of which 80 % become [MASK], 10 % a random token, 10 % stay
(BERT, 3.1). A row is also read where a sentence vector will be: the state there is to predict the bag of words of the
text and of what follows it (Ma et al. 2024, arXiv:2401.11248), rare words counting more by the weights of SIF (Arora,
Liang and Ma 2017). From masking alone, the first token and a prompt's [MASK] of a small model say little of a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.backbone import mlm_head
from cse.masking import mask_tokens
from cse.templates import CONTINUOUS, MEANS, PLAIN, TokenTemplate

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.pretraining.corpus import TokenFile

IGNORED = -100
FORMS = (PLAIN, MEANS, CONTINUOUS)  # how the methods read a sentence
AHEAD = 32  # tokens of the following text in the bag
RARITY = 1e-4  # SIF's a: words of this share count half


@dataclass(frozen=True)
class Rows:
    """B rows: `inputs` and `labels` (B, L), -100 where nothing is predicted, read `at` a column; `bag` (B, n) ids."""

    inputs: torch.Tensor
    labels: torch.Tensor
    at: int
    bag: torch.Tensor

    def to(self, device: torch.device) -> Rows:
        """The rows on a device."""
        inputs, labels, bag = (part.to(device, non_blocking=True) for part in (self.inputs, self.labels, self.bag))
        return Rows(inputs, labels, self.at, bag)

    def split(self, size: int) -> list[Rows]:
        """Parts of at most `size` rows."""
        parts = zip(self.inputs.split(size), self.labels.split(size), self.bag.split(size), strict=True)
        return [Rows(inputs, labels, self.at, bag) for inputs, labels, bag in parts]


def masked_rows(
    text: torch.Tensor, form: TokenTemplate, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs (B, L), labels (B, L)) of (B, n) ids put into a template of L - n tokens; only text is masked."""
    changed, chosen = mask_tokens(text, tokenizer, generator)
    before, after = (text.new_tensor(ids).expand(len(text), -1) for ids in (form.before, form.after))
    inputs = torch.cat([before, changed, after], 1)
    edges = (len(form.before), len(form.after))
    return inputs, torch.nn.functional.pad(text.masked_fill(~chosen, IGNORED), edges, value=IGNORED)


def draw_rows(
    corpus: TokenFile,
    form: TokenTemplate,
    tokenizer: PreTrainedTokenizerBase,
    *,
    tokens: int,
    length: int,
    longest: int,
    rng: np.random.Generator,
) -> Rows:
    """As many rows as `tokens` allow, each of `length` - 2 tokens of text or what `longest` leaves to the template."""
    text = max(1, min(length - 2, longest - form.length, len(corpus.ids)))
    bag = min(text + AHEAD, len(corpus.ids))
    ids = torch.from_numpy(corpus.rows(max(1, tokens // (text + form.length)), bag, rng))
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    inputs, labels = masked_rows(ids[:, :text], form, tokenizer, generator)
    return Rows(inputs, labels, form.row(range(text)).pool_at, ids)


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
