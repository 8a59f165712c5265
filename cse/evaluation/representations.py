"""Baselines without training: averages of the tokens predicted at [MASK], and averages of word vectors.

Each function returns a `Representation`, which has the interface of an `Encoder`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from cse.corpus.lines import text_lines
from cse.encoder.encoder import Encoder
from cse.encoder.rows import plain_ids
from cse.evaluation.tasks import StaticEmbeddings, TokenAccess
from cse.files.writing import digest, file_digest

# Words (with inner hyphens), English contractions split as in the Penn Treebank ("do", "n't"), and runs of one
# punctuation mark; text already tokenised this way is unchanged.
_WORD = re.compile(r"n't\b|'(?:s|m|d|re|ve|ll)\b|\w+?(?=n't\b)|\w+(?:-\w+)*|([^\w\s])\1*", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_HEADER = re.compile(r"\d+ \d+")


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
    reads no mask, no special tokens, denoised by the difference of logits.
    """
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


def glove(path: Path) -> Representation:
    """Encode sentences as the mean vector of their words in a file of word vectors; zero if it has none of them.

    PromptBERT, Table 5 (GloVe); SentEval's bag of words. The file has `word v1 v2 ...` on a line, separated by single
    spaces, plain, .gz or .xz; a first line `N d` (word2vec's text format) is skipped. A word is looked up as written,
    then lower-cased; of repeated words the first row counts. As files have millions of rows, each `encode` streams the
    file once and keeps only the words of its sentences, so encode many sentences at a time. Raises ValueError for a
    missing or empty file and a first row without numbers; while encoding, for a row of another width, and for a needed
    row with a value that is not a number.
    """
    path = Path(path)
    first = next(_word_vectors(path), None)
    if first is None:
        raise ValueError(f"{path}: no word vector in it; give a file with `word v1 v2 ...` on each line")

    def embed(texts: list[str], _batch_size: int) -> np.ndarray:
        rows = [word_tokens(text) for text in texts]
        table: dict[str, np.ndarray] = {}
        vocabulary = {form for row in rows for word in row for form in (word, word.lower())}
        for word, vector in _word_vectors(path, vocabulary):
            table.setdefault(word, vector)
        vectors = np.zeros((len(texts), len(first[1])), np.float32)
        for number, row in enumerate(rows):
            forms = (word if word in table else word.lower() for word in row)
            if word_vectors := [table[form] for form in forms if form in table]:
                vectors[number] = np.mean(word_vectors, axis=0)
        return vectors

    return Representation(path.name, file_digest(path), embed)


def word_tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text, contractions split as in "do n't" and "it 's"."""
    return [match.group() for match in _WORD.finditer(text)]


def _word_vectors(path: Path, vocabulary: Container[str] | None = None) -> Iterator[tuple[str, np.ndarray]]:
    """Yield word and vector (d,) of every row, or only of the words in `vocabulary`, which skips most parsing."""
    width = 0
    for number, line in enumerate(text_lines(path), start=1):
        line = line.rstrip(" ")
        if not line or (number == 1 and _HEADER.fullmatch(line)):
            continue
        spaces = line.count(" ")
        width = width or spaces
        # Some words of glove.840B contain spaces ("at x.com").
        word = line.partition(" ")[0] if spaces == width else line.rsplit(" ", width)[0]
        if not 0 < width <= spaces or (spaces > width and _NUMBER.fullmatch(word.rpartition(" ")[2])):
            raise ValueError(
                f"{path}: line {number} has {spaces} numbers after its word, not {width or 'some'}; repair the file"
            )
        if vocabulary is not None and word not in vocabulary:
            continue
        try:
            vector = np.array(line.rsplit(" ", width)[1:], dtype=np.float32)
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}; every column after the word must be a number") from error
        if not np.isfinite(vector).all():
            raise ValueError(f"{path}: line {number} has a value that is not finite; correct or remove the row")
        yield word, vector


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
