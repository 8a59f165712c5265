"""Held-out loss and accuracy of masked language modelling, the validation of pretraining."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.backbone import row_limit
from cse.pretraining.batches import IGNORED, Rows, masked_rows
from cse.pretraining.corpus import TokenFile
from cse.pretraining.objectives import masked_loss, read
from cse.templates import PLAIN, render

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EVAL_ROWS = 512
EVAL_LENGTH = 64


def evaluate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, valid: TokenFile, device: torch.device
) -> dict[str, float]:
    """Held-out loss (nats) and accuracy over a fixed draw of rows and masks."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    length = min(EVAL_LENGTH, len(valid.ids) + 2, row_limit(model))
    text = torch.from_numpy(valid.rows(EVAL_ROWS, length - 2, rng))
    inputs, labels = masked_rows(text, render(PLAIN, tokenizer), tokenizer, generator)
    model.eval()
    parts = []
    with torch.no_grad():
        for rows in Rows(inputs, labels, 0, text).split(64):
            logits, _ = read(model, rows.to(device), bag=False)
            wanted = rows.labels[rows.labels != IGNORED].to(device)
            parts.append((float(masked_loss(logits, wanted)), float((logits.argmax(-1) == wanted).float().mean())))
    model.train()
    loss, accuracy = np.mean(parts, axis=0)
    return {"held_out_loss": round(float(loss), 4), "held_out_accuracy": round(float(accuracy), 4)}
