"""Validation of pretraining: masked-language-modelling loss and accuracy on held-out text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.encoding.backbone import row_limit
from cse.encoding.rows import render
from cse.methods.templates import PLAIN
from cse.pretraining.batches import MaskedBatch, masked_inputs
from cse.pretraining.objectives import forward_logits, masked_lm_loss

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.pretraining.corpus import TokenFile
    from cse.pretraining.records import HeldOutScores

EVAL_ROWS = 512
EVAL_LENGTH = 64  # tokens of a row
EVAL_BATCH = 64  # rows


def evaluate(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, valid: TokenFile) -> HeldOutScores:
    """Held-out loss and accuracy over a fixed draw of rows and masks; leaves the model in training mode."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    length = min(EVAL_LENGTH, len(valid.ids) + 2, row_limit(model))
    text = torch.from_numpy(valid.rows(EVAL_ROWS, length - 2, rng))
    inputs, labels = masked_inputs(text, render(PLAIN, tokenizer), tokenizer, generator)
    losses, accuracies = [], []
    model.eval()
    with torch.no_grad():
        for rows in MaskedBatch(inputs, labels, 0, text).split(EVAL_BATCH):
            batch = rows.to(model.device)
            logits, _ = forward_logits(model, batch, bag=False)
            losses.append(float(masked_lm_loss(logits, batch.targets)))
            right = logits.argmax(-1) == batch.targets  # never at padding, which is -100
            accuracies.append(float(right.sum() / batch.masked.sum()))
    model.train()
    return {
        "held_out_loss": round(float(np.mean(losses)), 4),
        "held_out_accuracy": round(float(np.mean(accuracies)), 4),
    }
