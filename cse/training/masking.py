"""Masking for masked language modelling: 15 % of the tokens, of which 80 % become [MASK], 10 % a random token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHOSEN, MASKED, REPLACED = 0.15, 0.8, 0.9  # BERT, section 3.1; shares of the chosen, cumulated
FIRST_WORD = 5  # lower ids are special tokens in BERT's and RoBERTa's vocabularies


def mask_tokens(
    ids: torch.Tensor, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(changed ids, chosen) of int64 `ids` of any shape; `chosen` is True where the token is to be predicted."""
    chosen = torch.rand(ids.shape, generator=generator) < CHOSEN
    fate = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, len(tokenizer), ids.shape, generator=generator)
    changed = torch.where(chosen & (fate < MASKED), tokenizer.mask_token_id, ids)
    return torch.where(chosen & (fate >= REPLACED), words, changed), chosen
