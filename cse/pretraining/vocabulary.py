"""Vocabulary pruning: a WordPiece model keeps the pieces its corpus needs, with their rows of the embedding table.

WordPiece takes the longest piece that fits, so a word whose pieces are all kept is split as before; any other word is
split into shorter pieces, at worst into single characters, which are all kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cse.errors import ArtefactError
from cse.pretraining.corpus import CONTINUES, split_batches

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SETTINGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "model_max_length")


def pruned_tokenizer(
    tokenizer: PreTrainedTokenizerBase, corpora: Sequence[Path], vocabulary: int
) -> PreTrainedTokenizerBase:
    """A BERT tokenizer of the special tokens, all single characters and the commonest pieces of text files.

    The `vocabulary` kept pieces stay in their order. Raises ArtefactError for a tokenizer that is not WordPiece,
    ValueError for a `vocabulary` above that of the tokenizer or without room for a piece of two characters.
    """
    from transformers import BertTokenizer

    if not isinstance(tokenizer, BertTokenizer):
        raise ArtefactError(f"a {type(tokenizer).__name__} cannot be pruned (only BERT's WordPiece); omit `vocabulary`")
    if vocabulary > len(tokenizer):
        raise ValueError(f"`vocabulary` is {vocabulary}, but `init` has {len(tokenizer)} pieces; give fewer or none")
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    needed = [number for piece, number in pieces if len(piece.removeprefix(CONTINUES)) == 1]
    needed += tokenizer.all_special_ids
    if vocabulary <= len(needed):
        raise ValueError(
            f"`vocabulary` is {vocabulary}; give more than the {len(needed)} special tokens and characters"
        )
    counts = _counts(tokenizer, corpora)
    counts[needed] = np.iinfo(np.int64).max
    kept = set(np.argsort(-counts, kind="stable")[:vocabulary].tolist())
    names = [piece for piece, number in pieces if number in kept]
    settings = {name: tokenizer.init_kwargs[name] for name in SETTINGS if name in tokenizer.init_kwargs}
    return BertTokenizer(vocab={piece: number for number, piece in enumerate(names)}, **settings)


def _counts(tokenizer: PreTrainedTokenizerBase, corpora: Sequence[Path]) -> np.ndarray:
    """(V,) int64 counts of each piece in text files."""
    counts = np.zeros(len(tokenizer), np.int64)
    for _, sentences in split_batches(corpora):
        encoded = tokenizer(sentences, add_special_tokens=False, return_attention_mask=False)["input_ids"]
        counts += np.bincount(np.concatenate([np.array(ids, np.int64) for ids in encoded]), minlength=len(counts))
    return counts


def keep_rows(model: PreTrainedModel, before: PreTrainedTokenizerBase, after: PreTrainedTokenizerBase) -> None:
    """Prune a model from the vocabulary `before` to `after`, in place: word embeddings, decoder and output bias."""
    pieces = sorted(after.get_vocab().items(), key=lambda item: item[1])
    known = before.get_vocab()
    kept = torch.tensor([known[piece] for piece, _ in pieces])
    tables: list[Any] = [model.get_input_embeddings().weight]
    decoder: Any = model.get_output_embeddings()
    if decoder is not None:
        tables += [decoder.weight, decoder.bias]
    with torch.no_grad():
        for table in {id(table): table for table in tables}.values():  # tied tables are the same tensor
            table[: len(kept)] = table[kept].clone()
    model.resize_token_embeddings(len(kept), mean_resizing=False)
    if decoder is not None and not model.config.tie_word_embeddings:  # resizing made the two biases one tensor
        head: Any = model.get_output_embeddings()
        head.bias = torch.nn.Parameter(head.bias.detach().clone())
    model.config.pad_token_id = after.pad_token_id
