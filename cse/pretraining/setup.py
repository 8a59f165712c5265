"""What a pretraining run needs before its first step: tokenizer, tokenised corpus and starting model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.backbone import load_backbone, set_dropout
from cse.files import write_folder
from cse.model_names import location
from cse.pretraining.config import PretrainConfig
from cse.pretraining.corpus import TokenFile, tokenise, train_tokenizer
from cse.pretraining.model import new_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def prepare(
    corpora: list[Path], output: Path, config: PretrainConfig, init: str | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, TokenFile, TokenFile]:
    """Tokenizer, tokenised corpus and starting model; what an earlier run left in `output` is used again."""
    from transformers import AutoTokenizer

    tokens, saved = output / "corpus", output / "tokenizer"
    if init:
        model, tokenizer = load_backbone(location(init))
        set_dropout(model, 0.0)
    elif saved.is_dir():
        tokenizer = AutoTokenizer.from_pretrained(saved)
    else:
        tokenizer = train_tokenizer(corpora, config.vocabulary)
        write_folder(saved, lambda folder: tokenizer.save_pretrained(folder))
    if len(tokenizer) > np.iinfo(np.uint16).max:
        raise ValueError(
            f"a vocabulary of {len(tokenizer)} does not fit 16-bit token files; give a `vocabulary` below 65,536"
        )
    if not tokens.is_dir():
        tokenise(corpora, tokenizer, tokens)
    train, valid = TokenFile.open(tokens, "train"), TokenFile.open(tokens, "valid")
    if not init:
        model = new_model(config, tokenizer, train)
    return model, tokenizer, train, valid
