"""Baselines without training: averages of the tokens predicted at [MASK].

Each function returns a `Representation`, which has the interface of an `Encoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cse.encoder.encoder import Encoder
from cse.encoder.rows import plain_ids
from cse.evaluation.tasks import StaticEmbeddings, TokenAccess
from cse.files.writing import digest


@dataclass(frozen=True)
class Representation:
    """What is called as an `Encoder` is, from a function: `embed(texts, batch_size)` returns (N, d) float32.

    With `prompted`, the encoder whose vectors they are made of, `embed` has an argument `prompt`, too.
    """

    name: str
    fingerprint: str
    embed: Callable[..., np.ndarray]
    prompted: Encoder | None = None

    def encode(self, inputs: str | Sequence[str], *, batch_size: int = 64, **prompt: str) -> np.ndarray:
        """(N, d) float32 vectors of N sentences, (d,) of a single string; rows are not normalised."""
        vectors = self.embed([inputs] if isinstance(inputs, str) else list(inputs), batch_size, **prompt)
        return vectors[0] if isinstance(inputs, str) else vectors


TextEncoder = Encoder | Representation


def top_k_tokens(encoder: Encoder, denoise: bool, k: int = 200) -> Representation:
    """Encode sentences as the mean static embedding of their k likeliest tokens at [MASK], weighted by probability.

    PromptBERT, Eq. 3, k of Table 9. The tokens are those of `Encoder.top_tokens`: its default prompt if the encoder
    reads no mask, no special tokens, denoised by the difference of logits. Raises ValueError unless
    1 <= k <= vocabulary.
    """
    most = len(encoder.tokenizer) - len(set(encoder.tokenizer.all_special_ids))
    if not 1 <= k <= most:
        raise ValueError(f"`k` is {k}; choose between 1 and {most}")
    label = f"top{k}{'-denoised' if denoise else ''}"

    def embed(texts: list[str], batch_size: int) -> np.ndarray:
        rows = encoder.rows_of(texts, [encoder.prompt] * len(texts))
        vectors = np.empty((len(texts), encoder.dim), np.float32)
        for batch in np.split(np.argsort(-rows.lengths, kind="stable"), range(batch_size, len(texts), batch_size)):
            spoken, alone = encoder.mask_states(rows[batch])
            logits = encoder.word_logits(spoken)
            if denoise:
                logits = logits - encoder.word_logits(alone)
            logits[:, encoder.tokenizer.all_special_ids] = -np.inf
            best = np.argpartition(-logits, k - 1, axis=1)[:, :k]
            # Renormalising the probabilities of the best is a softmax over their logits.
            weights = np.take_along_axis(logits, best, 1)
            weights = np.exp(weights - weights.max(1, keepdims=True))
            weights /= weights.sum(1, keepdims=True)
            vectors[batch] = np.einsum("bk,bkd->bd", weights, encoder.word_embeddings()[best])
        return vectors

    return Representation(f"{encoder.name}+{label}", digest(encoder.fingerprint, label), embed)


def token_access(encoder: TextEncoder, batch_size: int) -> TokenAccess | None:
    """Access to the tokens of `encoder`, encoding `batch_size` sentences at a time; None for one without tokens."""
    if not isinstance(encoder, Encoder):
        return None
    tokenizer, template = encoder.tokenizer, encoder.views[0][0]
    static = StaticEmbeddings(
        encoder.word_embeddings()[: len(tokenizer)],  # the rest is padding
        tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))),
        partial(plain_ids, tokenizer),  # not the encoder's own, which puts a space before a sentence of RoBERTa
        (tokenizer.cls_token_id, tokenizer.sep_token_id),
    )
    return TokenAccess(
        lambda texts: encoder.tokenise(texts, [template] * len(texts)),
        partial(encoder.encode_ids, batch_size=batch_size),
        static,
    )
