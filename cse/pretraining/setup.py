"""Preparation of a pretraining run: tokenizer, tokenised corpus and starting model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.backbones.backbone import backbone_tensors, load_backbone, set_dropout
from cse.errors import ArtefactError
from cse.methods.settings import SETTINGS
from cse.models.names import location
from cse.pretraining.config import NEW_VOCABULARY, is_table
from cse.pretraining.corpus import TokenFile, corpus_lines, tokenise, train_tokenizer
from cse.pretraining.model import add_mlm_head, average_in, freeze_lowest, lacks_mlm_head, new_model
from cse.storage.checksums import check_checksums, write_checksums
from cse.storage.replace import recover
from cse.storage.writing import write_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.pretraining.config import PretrainRequest

DELETE = "delete its folder to have it made again"


@dataclass(frozen=True)
class PretrainingSetup:
    """The starting `model`, without dropout, its tokenizer, and the tokenised text to train and to validate on."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    train: TokenFile
    valid: TokenFile


def prepare(request: PretrainRequest) -> PretrainingSetup:
    """Tokenizer, tokenised corpus and starting model; those in the output folder from an earlier run are reused.

    An `init` saved without a masked-LM head gets a new one. Raises ValueError if the corpus, the vocabulary or the
    settings do not fit, ArtefactError if `init` cannot be opened.
    """
    if not request.init:
        tokenizer = _tokenizer(request)
        train, valid = _tokenised(request, tokenizer)
        return PretrainingSetup(new_model(request.config, tokenizer, train), tokenizer, train, valid)
    model, tokenizer = load_backbone(location(request.init))
    _blend(request, model, tokenizer)
    headless = lacks_mlm_head(model)
    train, valid = _tokenised(request, tokenizer)
    if headless:
        model = add_mlm_head(model, train)
    set_dropout(model, 0.0)
    freeze_lowest(model, request.config.frozen_layers)
    return PretrainingSetup(model, tokenizer, train, valid)


def check_request(request: PretrainRequest) -> None:
    """Raise ValueError for settings out of bounds, or that need an `init` or exclude one, and for a corpus whose first
    line cannot be read; OSError for one that is missing.
    """
    _check_settings(request)
    if request.column is not None and not any(map(is_table, request.corpora)):
        raise ValueError(
            f"`column` is {request.column!r}, but text files have no columns; leave it out or give a table"
        )
    for corpus in request.corpora:
        next(corpus_lines(corpus, request.column), None)


def _check_settings(request: PretrainRequest) -> None:
    config = request.config
    SETTINGS["seed"].check(config.seed)
    if not 0 < config.learning_rate < math.inf:
        raise ValueError(f"`learning_rate` is {config.learning_rate}; give a number above 0")
    if config.hidden % config.heads:
        raise ValueError(f"`hidden` is {config.hidden}, which {config.heads} heads cannot share; give a multiple")
    by_layer = config.blend_share if isinstance(config.blend_share, Sequence) else (config.blend_share,)
    for name, shares in (("start_share", (config.start_share,)), ("blend_share", by_layer)):
        for share in shares:
            if not 0 <= share <= 1:
                raise ValueError(f"`{name}` is {share}; give a share from 0 to 1")
    if request.init:
        if config.untied:
            raise ValueError("`untied` is for a new model; an `init` keeps the decoder it has")
        if config.vocabulary is not None:
            raise ValueError("`vocabulary` is for a new model; an `init` keeps its word pieces")
        return
    of_init = {"frozen_layers": config.frozen_layers, "start_share": config.start_share, "blend": request.blend}
    if given := [name for name, value in of_init.items() if value]:
        raise ValueError(f"`{given[0]}` needs a model to continue from; give an `init`")


def _blend(request: PretrainRequest, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Average the model `blend` into `model`. Raises ArtefactError for other word pieces or another shape."""
    if not request.blend:
        return
    other, its_tokenizer = load_backbone(location(request.blend))
    tensors, wanted = backbone_tensors(other), backbone_tensors(model)
    same_shape = {name: tensor.shape for name, tensor in tensors.items()} == {
        name: tensor.shape for name, tensor in wanted.items()
    }
    if not same_shape or its_tokenizer.get_vocab() != tokenizer.get_vocab():
        raise ArtefactError(
            f"{request.blend} cannot be averaged into {request.init}: it has another shape or other word pieces; give "
            "one trained from the same model"
        )
    shares, layers = request.config.blend_share, model.config.num_hidden_layers
    if isinstance(shares, Sequence) and len(shares) != layers + 1:
        raise ValueError(f"`blend_share` has {len(shares)} shares; give one, or {layers + 1}: embeddings and layers")
    average_in(model, tensors, shares)


def _tokenizer(request: PretrainRequest) -> PreTrainedTokenizerBase:
    """The tokenizer of a new model in the output folder; a missing one is learned from the corpora."""
    from transformers import AutoTokenizer

    saved = request.output / "tokenizer"
    recover(saved)
    if saved.is_dir():
        check_checksums(saved, DELETE)
        return AutoTokenizer.from_pretrained(saved)
    tokenizer = train_tokenizer(request.corpora, request.config.vocabulary or NEW_VOCABULARY, request.column)

    def fill(folder: Path) -> None:
        tokenizer.save_pretrained(folder)
        write_checksums(folder)

    write_folder(saved, fill)
    return tokenizer


def _tokenised(request: PretrainRequest, tokenizer: PreTrainedTokenizerBase) -> tuple[TokenFile, TokenFile]:
    """(training, held-out) text in the output folder, tokenised if it is not there yet."""
    if len(tokenizer) > np.iinfo(np.uint16).max:
        other = "another `init`" if request.init else "a `vocabulary` below 65,536"
        raise ValueError(f"a vocabulary of {len(tokenizer)} does not fit 16-bit token files; give {other}")
    folder = request.output / "corpus"
    recover(folder)
    if not folder.is_dir():
        tokenise(request.corpora, tokenizer, folder, request.column)
    check_checksums(folder, DELETE)
    return TokenFile.open(folder, "train"), TokenFile.open(folder, "valid")
