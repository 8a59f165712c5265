"""Baselines without training: averages of the tokens predicted at [MASK], and averages of word vectors.

Each function returns a `Representation`, which has the interface of an `Encoder`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cse.corpus.lines import text_lines
from cse.encoder.encoder import Encoder
from cse.encoder.rows import TokenRows, plain_ids
from cse.evaluation.geometry import StaticEmbeddings
from cse.evaluation.tasks import TokenAccess
from cse.files.writing import digest, file_digest

if TYPE_CHECKING:
    import numpy as np

    from cse.encoder.encoder import Encoder

# Words (with inner hyphens), English contractions split as in the Penn Treebank ("do", "n't"), and runs of one
# punctuation mark; text already tokenised this way is unchanged.
_WORD = re.compile(r"n't\b|'(?:s|m|d|re|ve|ll)\b|\w+?(?=n't\b)|\w+(?:-\w+)*|([^\w\s])\1*", re.IGNORECASE)
_HEADER = re.compile(r"\d+ \d+")


class TextEncoder(Protocol):
    """Interface of `Encoder` and `Representation`: a name, a fingerprint and `encode`."""

    @property
    def name(self) -> str:
        """The name shown in tables."""

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change if anything does that the vectors depend on."""

    def encode(self, inputs: str | Sequence[str], *, batch_size: int = 64) -> Any:
        """(N, d) float32 vectors of N sentences."""


@dataclass(frozen=True)
class Representation:
    """A `TextEncoder` from a function: `embed(texts, batch_size)` returns (N, d) float32.

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


def top_k_tokens(encoder: Encoder, k: int = 200, denoise: bool = False) -> Representation:
    """Encode sentences as the mean static embedding of their k likeliest tokens at [MASK], weighted by probability.

    PromptBERT, Eq. 3, k of Table 9. The tokens are those of `Encoder.top_tokens`: its default prompt if the encoder
    reads no mask, no special tokens, denoised by the difference of logits. Raises ValueError unless
    1 <= k <= vocabulary.
    """
    most = len(encoder.tokenizer) - len(set(encoder.tokenizer.all_special_ids))
    if not 1 <= k <= most:
        raise ValueError(f"`k` is {k}; choose between 1 and {most}")
    label = f"top{k}{'-denoised' if denoise else ''}"
    embed = partial(_token_vectors, encoder, k, denoise)
    return Representation(f"{encoder.name}+{label}", digest(encoder.fingerprint, label), embed)


def _token_vectors(encoder: Encoder, k: int, denoise: bool, texts: list[str], batch_size: int) -> np.ndarray:
    rows = encoder.rows_of(texts, [encoder.prompt] * len(texts))
    order = np.argsort(-rows.lengths, kind="stable")
    vectors = np.empty((len(texts), encoder.dim), np.float32)
    for start in range(0, len(texts), batch_size):
        chosen = order[start : start + batch_size]
        vectors[chosen] = _predicted(encoder, rows[chosen], k, denoise)
    return vectors


def _predicted(encoder: Encoder, rows: TokenRows, k: int, denoise: bool) -> np.ndarray:
    """(B, d) float32 vectors by Eq. 3 for rows."""
    spoken, alone = encoder.mask_states(rows)
    logits = encoder.word_logits(spoken)
    if denoise:
        logits = logits - encoder.word_logits(alone)
    logits[:, encoder.tokenizer.all_special_ids] = -np.inf
    best = np.argpartition(-logits, k - 1, axis=1)[:, :k]
    # Renormalising the chosen probabilities is a softmax over the chosen logits.
    chosen = np.take_along_axis(logits, best, 1)
    weights = np.exp(chosen - chosen.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    return np.einsum("bk,bkd->bd", weights, encoder.word_embeddings()[best])


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
    first = next(_rows(path), None)
    if first is None:
        raise ValueError(f"{path}: no word vector in it; give a file with `word v1 v2 ...` on each line")
    return Representation(path.name, file_digest(path), partial(_averages, path, len(first[1])))


def word_tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text, contractions split as in "do n't" and "it 's"."""
    return [match.group() for match in _WORD.finditer(text)]


def _averages(path: Path, width: int, texts: list[str], _batch_size: int) -> np.ndarray:
    rows = [word_tokens(text) for text in texts]
    vocabulary = {form for row in rows for word in row for form in (word, word.lower())}
    table: dict[str, np.ndarray] = {}
    for word, vector in _rows(path, vocabulary):
        table.setdefault(word, vector)
    vectors = np.zeros((len(texts), width), np.float32)
    for number, row in enumerate(rows):
        forms = (word if word in table else word.lower() for word in row)
        if word_vectors := [table[form] for form in forms if form in table]:
            vectors[number] = np.mean(word_vectors, axis=0)
    return vectors


def _rows(path: Path, vocabulary: Container[str] | None = None) -> Iterator[tuple[str, np.ndarray]]:
    """Yield word and vector (d,) of every row, or only of the words in `vocabulary`, which skips most parsing."""
    width = 0
    for number, line in enumerate(text_lines(path), start=1):
        line = line.rstrip(" ")
        if not line or (number == 1 and _HEADER.fullmatch(line)):
            continue
        width = width or line.count(" ")
        word = _word(line, width)
        if word is None:
            raise ValueError(
                f"{path}: line {number} has {line.count(' ')} numbers after its word, not {width or 'one or more'}; "
                "the file is damaged or its columns are not separated by single spaces"
            )
        if vocabulary is None or word in vocabulary:
            yield word, _numbers(path, number, line.rsplit(" ", width)[1:])


def _word(line: str, width: int) -> str | None:
    """A row's word; None unless the row has `width` numbers. Some words of glove.840B contain spaces ("at x.com")."""
    spaces = line.count(" ")
    if not 0 < width <= spaces:
        return None
    if spaces == width:
        return line.partition(" ")[0]
    word = line.rsplit(" ", width)[0]
    return None if _is_number(word.rpartition(" ")[2]) else word


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(path: Path, line: int, cells: list[str]) -> np.ndarray:
    try:
        vector = np.array(cells, dtype=np.float32)
    except ValueError as error:
        raise ValueError(f"{path}: line {line}: {error}; every column after the word must be a number") from error
    if not np.isfinite(vector).all():
        raise ValueError(f"{path}: line {line} has a value that is not finite; correct or remove the row")
    return vector


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
        return plain_ids(tokenizer, texts)

    return StaticEmbeddings(
        encoder.word_embeddings()[: len(tokenizer)],  # the rest is padding
        tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))),
        tokenise,  # not the encoder's own, which puts a space before the sentence in a RoBERTa prompt
        (tokenizer.cls_token_id, tokenizer.sep_token_id),
    )
