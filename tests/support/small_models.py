"""Small models under the names of the bundled ones, for what is claimed of any model."""

from pathlib import Path

import pytest
import torch
from conftest import ROOT, SENTENCES
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertTokenizer

import cse
from cse.models import names

BUNDLED = ROOT / "cse" / "bundled"
PIECES = 4000  # the most frequent ones of the bundled vocabulary


def small_backbone(folder: Path, layers: int = 1, *, head: bool = True) -> Path:
    """Write a random BERT that knows common words."""
    pieces = AutoTokenizer.from_pretrained(BUNDLED / "backbone").get_vocab().items()
    BertTokenizer(vocab={piece: number for piece, number in pieces if number < PIECES}).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=PIECES, hidden_size=48, intermediate_size=96, num_attention_heads=2, num_hidden_layers=layers,
        initializer_range=0.2,
    )  # fmt: skip
    model = BertForMaskedLM(config)
    (model if head else model.base_model).save_pretrained(folder)
    return folder


def small_bundled(folder: Path) -> Path:
    """Write a folder for `names.BUNDLED`: a backbone of one layer, the four methods on it, and the demo corpus."""
    small_backbone(folder / "backbone")
    (folder / "demo").symlink_to(BUNDLED / "demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "BUNDLED", folder)
        for name in names.BUNDLED_NAMES:
            cse.train(name, SENTENCES, output=folder / name, batch_size=2, max_steps=1, progress=False)
    return folder
