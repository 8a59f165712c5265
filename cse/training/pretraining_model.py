"""The model that pretraining starts from, new or an encoder with a new MLM head, and its set-up for a device."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from cse.encoder.backbone import HEADS, backbone_tensors
from cse.errors import ArtefactError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.training.pretraining_data import PretrainConfig, TokenFile


def new_model(config: PretrainConfig, tokenizer: PreTrainedTokenizerBase, corpus: TokenFile) -> PreTrainedModel:
    """A fresh BERT without dropout, its output bias at the unigram log-probabilities of `corpus`."""
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
            tie_word_embeddings=not config.untied,
        )
    )
    with torch.no_grad():
        # An untied decoder has its own bias; transformers leaves an unused one in `cls.predictions`.
        model.get_output_embeddings().bias.copy_(unigram_log_probabilities(corpus, len(tokenizer)))
        model.get_output_embeddings().weight.copy_(model.get_input_embeddings().weight)  # the same tensor unless untied
    return model


def lacks_mlm_head(model: PreTrainedModel) -> bool:
    """True if a backbone was saved without its masked-LM head.

    Raises ArtefactError for one that is not BERT, since `add_mlm_head` knows only BERT's head.
    """
    if any(hasattr(model, name) for name in HEADS):
        return False
    if model.config.model_type != "bert":
        raise ArtefactError(
            f"a {model.config.model_type} model without a masked-language-model head cannot be pretrained (only BERT "
            "gets a new one); give the model it was made from as `init`"
        )
    return True


def add_mlm_head(encoder: PreTrainedModel, corpus: TokenFile) -> PreTrainedModel:
    """A masked language model: a BERT encoder with its weights, and an untrained head.

    The dense transform is the identity, LayerNorm has weight 1 and bias 0, the decoder is tied to the word embeddings
    and the output bias holds the unigram log-probabilities of `corpus`.
    """
    from transformers import BertForMaskedLM

    config: Any = copy.deepcopy(encoder.config)
    config.tie_word_embeddings = True
    model: Any = BertForMaskedLM(config)
    model.bert.load_state_dict(encoder.state_dict())
    head = model.cls.predictions
    with torch.no_grad():
        torch.nn.init.eye_(head.transform.dense.weight)
        torch.nn.init.zeros_(head.transform.dense.bias)
        torch.nn.init.ones_(head.transform.LayerNorm.weight)
        torch.nn.init.zeros_(head.transform.LayerNorm.bias)
        head.bias.copy_(unigram_log_probabilities(corpus, config.vocab_size))
    return model


def unigram_log_probabilities(corpus: TokenFile, vocabulary: int) -> torch.Tensor:
    """(V,) float32 log-probabilities of the tokens of `corpus`, with 0.5 added to each count."""
    counts = torch.from_numpy(corpus.counts(vocabulary))
    return ((counts + 0.5) / (counts.sum() + 0.5 * len(counts))).log()


def freeze_lowest(model: PreTrainedModel, layers: int) -> None:
    """Freeze the embeddings and the lowest `layers` of an encoder; 0 freezes nothing.

    If all layers are frozen, only the masked-LM head learns. Raises ValueError for more layers than it has.
    """
    encoder: Any = model.base_model.encoder
    blocks = encoder.layer
    if layers > len(blocks):
        raise ValueError(f"`frozen_layers` is {layers}, but `init` has {len(blocks)} layers; give no more")
    frozen = (model.base_model.embeddings, *blocks[:layers]) if layers else ()
    for part in frozen:
        part.requires_grad_(False)


def average_in(model: PreTrainedModel, start: Mapping[str, torch.Tensor], share: float | Sequence[float]) -> None:
    """Set the weights below the head to `share` x `start` + (1 - `share`) x themselves.

    `share` may have a value for the embeddings and one for each layer, from the lowest. `start` has the
    `backbone_tensors` to average in. Weights between those before and after fine-tuning keep much of both abilities
    (WiSE-FT: Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
    """
    with torch.no_grad():
        for name, tensor in backbone_tensors(model).items():
            layer = re.search(r"\.layer\.([0-9]+)\.", name)
            floor = int(layer[1]) + 1 if layer else 0  # 0 is that of the embeddings
            tensor.lerp_(start[name].to(tensor.device), share[floor] if isinstance(share, Sequence) else share)


def configure_for_device(model: PreTrainedModel, device: torch.device) -> None:
    """Compile the model's blocks on a GPU; on a CPU use eager attention, which is 1.5 times as fast.

    The backward pass of fused attention is slow there, and compiling gains nothing (docs/decisions.md).
    """
    if device.type == "cpu":
        model.set_attn_implementation("eager")
    if device.type == "cuda":
        blocks: Any = model.base_model.encoder
        for block in blocks.layer:  # by itself, so that all blocks share the compiled code
            block.compile()
