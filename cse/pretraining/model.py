"""The model that pretraining starts from, and how it is set up for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cse.pretraining.config import PretrainConfig
from cse.pretraining.corpus import TokenFile
from cse.pretraining.word_vectors import word_vectors

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def new_model(config: PretrainConfig, tokenizer: PreTrainedTokenizerBase, corpus: TokenFile) -> PreTrainedModel:
    """A fresh BERT without dropout, its output bias at the unigram log-probabilities.

    With `head_start` its embeddings are the corpus's own counted word vectors instead of noise.
    """
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(config.seed)
    model: Any = BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=4 * config.hidden,
            max_position_embeddings=config.positions,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    counts = torch.from_numpy(corpus.counts(len(tokenizer)))
    with torch.no_grad():
        model.cls.predictions.bias.copy_(((counts + 0.5) / (counts.sum() + 0.5 * len(counts))).log())
        if config.head_start:
            vectors = word_vectors(np.asarray(corpus.ids), len(tokenizer), config.hidden, seed=config.seed)
            model.get_input_embeddings().weight.copy_(vectors)
    return model


def suit_device(model: PreTrainedModel, device: torch.device) -> None:
    """Compile the model's blocks on a GPU; on a CPU take plain attention, since the fused one's backward is slow.

    Measured in docs/decisions.md: there it is half again as fast, and compiling gains nothing.
    """
    if device.type == "cpu":
        model.set_attn_implementation("eager")
    if device.type == "cuda":
        encoder: Any = model.base_model.encoder
        for block in encoder.layer:
            block.compile()
