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

from cse.backbone import row_limit
from cse.masking import mask_tokens
from cse.pretraining.flops import training_flops
from cse.pretraining.objectives import IGNORED, rarity
from cse.templates import CONTINUOUS, MEANS, PLAIN, TokenTemplate, render

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.pretraining.config import PretrainConfig
    from cse.pretraining.corpus import TokenFile

FORMS = (PLAIN, MEANS, CONTINUOUS)  # how the methods read a sentence
AHEAD = 32  # tokens of the following text in the bag


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


@dataclass(frozen=True)
class Lesson:
    """What steps draw from: the text, the `forms` it is read in, the words' `weights` (V,), the `longest` row."""

    config: PretrainConfig
    text: TokenFile
    tokenizer: PreTrainedTokenizerBase
    forms: list[TokenTemplate]
    weights: torch.Tensor
    longest: int

    @classmethod
    def of(
        cls, config: PretrainConfig, text: TokenFile, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel
    ) -> Lesson:
        """The lesson of a run, its weights where the model is."""
        forms = [render(form, tokenizer) for form in (FORMS if config.bag_weight else (PLAIN,))]
        weights = rarity(text.counts(len(tokenizer)), tokenizer.all_special_ids).to(model.device)
        return cls(config, text, tokenizer, forms, weights, row_limit(model))

    def rows(self, step: int) -> Rows:
        """The rows of a step: a function of the seed and the step alone."""
        rng = np.random.default_rng((self.config.seed, step))
        length = int(rng.choice(self.config.lengths))
        form, tokens = self.forms[rng.integers(len(self.forms))], self.config.batch_tokens
        return draw_rows(self.text, form, self.tokenizer, tokens=tokens, length=length, longest=self.longest, rng=rng)

    def flops(self, model: PreTrainedModel) -> float:
        """FLOP of a token, averaged over the mixed lengths."""
        lengths = [min(length, self.longest) for length in self.config.lengths]
        return float(np.mean([training_flops(model, length, bag=self.config.bag_weight > 0) for length in lengths]))
