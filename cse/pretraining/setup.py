"""What a pretraining run needs before its first step: tokenizer, tokenised corpus and starting model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cse.backbone import load_backbone, set_dropout
from cse.checksums import check_checksums
from cse.files import write_folder
from cse.model_names import location
from cse.pretraining.config import NEW_VOCABULARY
from cse.pretraining.corpus import TokenFile, tokenise, train_tokenizer
from cse.pretraining.model import add_mlm_head, freeze_lowest, lacks_mlm_head, new_model
from cse.pretraining.vocabulary import keep_rows, pruned_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.pretraining.config import PretrainRequest


@dataclass(frozen=True)
class PretrainingSetup:
    """The starting `model`, without dropout, its tokenizer, and the tokenised text to train and to validate on."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    train: TokenFile
    valid: TokenFile


def prepare(request: PretrainRequest, resumed: bool) -> PretrainingSetup:
    """Tokenizer, tokenised corpus and starting model; what an earlier run left in the output folder is used again.

    Where a run is `resumed`, a saved state replaces the weights, so a new model is not given counted word vectors.
    An `init` saved without its masked-LM head is given a new one, and pruned where a vocabulary is asked for.
    Raises ValueError where the corpus or the vocabulary does not fit, ArtefactError where `init` cannot be opened.
    """
    if not 0 <= request.config.start_share <= 1:
        raise ValueError(f"`start_share` is {request.config.start_share}; give a share from 0 to 1")
    if not request.init:
        if request.config.frozen_layers:
            raise ValueError("`frozen_layers` keeps layers of a model that is continued from; give an `init`")
        if request.config.start_share:
            raise ValueError("`start_share` is of a model that is continued from; give an `init`")
        tokenizer = _saved(
            request, partial(train_tokenizer, request.corpora, request.config.vocabulary or NEW_VOCABULARY)
        )
        train, valid = _tokenised(request, tokenizer)
        model = new_model(request.config, tokenizer, train, counted=request.config.head_start and not resumed)
        return PretrainingSetup(model, tokenizer, train, valid)
    if request.config.untied:
        raise ValueError("`untied` is for a new model; an `init` keeps the decoder it has")
    model, tokenizer = load_backbone(location(request.init))
    headless = lacks_mlm_head(model)
    if request.config.vocabulary:
        whole = tokenizer
        tokenizer = _saved(request, partial(pruned_tokenizer, whole, request.corpora, request.config.vocabulary))
        keep_rows(model, whole, tokenizer)
    train, valid = _tokenised(request, tokenizer)
    if headless:
        model = add_mlm_head(model, train)
    set_dropout(model, 0.0)
    freeze_lowest(model, request.config.frozen_layers)
    return PretrainingSetup(model, tokenizer, train, valid)


def _saved(request: PretrainRequest, make: Callable[[], PreTrainedTokenizerBase]) -> PreTrainedTokenizerBase:
    """The tokenizer in the output folder, made where there is none."""
    from transformers import AutoTokenizer

    saved = request.output / "tokenizer"
    if saved.is_dir():
        return AutoTokenizer.from_pretrained(saved)
    tokenizer = make()
    write_folder(saved, lambda folder: tokenizer.save_pretrained(folder))
    return tokenizer


def _tokenised(request: PretrainRequest, tokenizer: PreTrainedTokenizerBase) -> tuple[TokenFile, TokenFile]:
    """(training, held-out) text in the output folder, tokenised where it is not yet."""
    if len(tokenizer) > np.iinfo(np.uint16).max:
        cure = "another `init`" if request.init else "a `vocabulary` below 65,536"
        raise ValueError(f"a vocabulary of {len(tokenizer)} does not fit 16-bit token files; give {cure}")
    folder = request.output / "corpus"
    if not folder.is_dir():
        tokenise(request.corpora, tokenizer, folder)
    check_checksums(folder, "delete its folder to have it made again")
    return TokenFile.open(folder, "train"), TokenFile.open(folder, "valid")
