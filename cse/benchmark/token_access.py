"""Access of evaluation tasks to an encoder's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse.encoding.encoder import Encoder
from cse.encoding.tokenising import plain_ids
from cse.evaluation.tasks import TokenAccess
from cse.evaluation.token_bias import StaticEmbeddings

if TYPE_CHECKING:
    import numpy as np

    from cse.benchmark.representations import TextEncoder


def token_access(encoder: TextEncoder, batch_size: int) -> TokenAccess | None:
    """Access to the tokens of `encoder`, encoding `batch_size` sentences at a time; None for one without tokens."""
    if not isinstance(encoder, Encoder):
        return None
    model, template = encoder, encoder.views[0][0]

    def tokenise(texts: list[str]) -> list[list[int]]:
        return model.tokenise(texts, [template] * len(texts))

    def encode_ids(contents: list[list[int]]) -> np.ndarray:
        return model.encode_ids(contents, batch_size=batch_size)

    return TokenAccess(tokenise, encode_ids, static_embeddings(encoder))


def static_embeddings(encoder: Encoder) -> StaticEmbeddings:
    """The word embeddings of an encoder with its tokenizer."""
    tokenizer = encoder.tokenizer

    def tokenise(texts: list[str]) -> list[list[int]]:
        return plain_ids(tokenizer, texts)["input_ids"] if texts else []

    return StaticEmbeddings(
        encoder.word_embeddings()[: len(tokenizer)],  # the rest is padding
        tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))),
        tokenise,  # not the encoder's own, which puts a space before the sentence in a RoBERTa prompt
        (tokenizer.cls_token_id, tokenizer.sep_token_id),
    )
