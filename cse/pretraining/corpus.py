"""Tokenised corpora: a vocabulary learned from text files, and the files tokenised once into memory-mapped arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.pretraining.config import is_table
from cse.storage.checksums import write_checksums
from cse.storage.writing import write_folder
from cse.text.files import text_lines
from cse.text.sentences import sentences

if TYPE_CHECKING:
    from tokenizers import BertWordPieceTokenizer
    from transformers import PreTrainedTokenizerBase

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT_EVERY = 100  # documents
MIN_HELD_OUT = 64  # word pieces
LINES_AT_ONCE = 20_000
MAX_WORD = 100  # WordPiece's own limit
MAX_ALPHABET = 400  # characters
CONTINUES = "##"  # prefix of pieces inside a word


@dataclass(frozen=True)
class TokenFile:
    """A tokenised corpus: ids (n,) uint16 and starts of its sentences (s,) int64, both memory-mapped."""

    ids: np.ndarray
    starts: np.ndarray

    @classmethod
    def open(cls, folder: Path, split: str) -> TokenFile:
        """Map `folder/split.ids` and `folder/split.starts`."""
        return cls(
            np.memmap(folder / f"{split}.ids", np.uint16, "r"), np.memmap(folder / f"{split}.starts", np.int64, "r")
        )

    def rows(self, count: int, length: int, rng: np.random.Generator) -> np.ndarray:
        """(count, length) int64 ids, each row from a random sentence start, over the following sentences."""
        starts = np.minimum(self.starts[rng.integers(len(self.starts), size=count)], len(self.ids) - length)
        return self.ids[starts[:, None] + np.arange(length)].astype(np.int64)

    def counts(self, vocabulary: int) -> np.ndarray:
        """(V,) float32 counts of each of `vocabulary` tokens."""
        return np.bincount(self.ids, minlength=vocabulary).astype(np.float32)


def corpus_lines(corpus: Path, column: str | None = None) -> Iterator[str]:
    """Yield the lines of a text file, empty ones too, or the texts in the `column` of a table.

    Raises ValueError for a file or column that cannot be read.
    """
    return sentences(corpus, column) if is_table(corpus) else text_lines(corpus)


def train_tokenizer(corpora: Sequence[Path], vocabulary: int, column: str | None = None) -> PreTrainedTokenizerBase:
    """An uncased WordPiece tokenizer learned from text files or tables; the same files give the same one.

    Raises ValueError if the text does not support so many word pieces.
    """
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertTokenizer

    trainer = BertWordPieceTokenizer(lowercase=True)
    first, inside = _characters(corpora, trainer, column)
    trainer.train_from_iterator(
        _sentences(corpora, column),
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=[*SPECIAL_TOKENS, *(CONTINUES + letter for letter in inside)],
        initial_alphabet=first,
        limit_alphabet=len(first),
        show_progress=False,
    )
    learned = trainer.get_vocab()
    if len(learned) <= len(SPECIAL_TOKENS):
        raise ValueError(f"{', '.join(map(str, corpora))}: no sentence in it; give other `corpora`")
    if len(learned) < vocabulary:
        raise ValueError(
            f"the corpus supports only {len(learned)} word pieces; give a `vocabulary` of {len(learned)} or more text"
        )
    return BertTokenizer(vocab=learned, do_lower_case=True)


def _characters(
    corpora: Sequence[Path], tokenizer: BertWordPieceTokenizer, column: str | None
) -> tuple[list[str], list[str]]:
    """The commonest characters of text files, and those of them that occur inside words.

    Given these, the trainer is deterministic: it would number other characters in the order of a hash table, which
    differs between runs, and break ties between merges by these numbers.
    """
    counts: Counter[str] = Counter()
    inside: set[str] = set()
    normalise, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    for line in _sentences(corpora, column):
        for word, _ in split(normalise(line)):
            counts.update(word)
            inside.update(word[1:])
    common = sorted(counts, key=lambda letter: (-counts[letter], letter))[:MAX_ALPHABET]
    return common, [letter for letter in common if letter in inside]


def _sentences(corpora: Sequence[Path], column: str | None) -> Iterator[str]:
    return (_short_words(line) for path in corpora for line in corpus_lines(path, column) if line.strip())


def _short_words(line: str) -> str:
    """The line without words too long for WordPiece; one of a megabyte would take the trainer hours."""
    words = line.split()
    return line if all(len(word) <= MAX_WORD for word in words) else " ".join(w for w in words if len(w) <= MAX_WORD)


def tokenise(
    corpora: Sequence[Path], tokenizer: PreTrainedTokenizerBase, folder: Path, column: str | None = None
) -> None:
    """Write the ids and sentence starts of the corpora into `folder`; every 100th document of a file is held out.

    Documents are separated by empty lines; a table is one. If too little is held out so, the last hundredth of the
    sentences is.
    """

    def fill(target: Path) -> None:
        counts = {"train": 0, "valid": 0}
        handles = {
            name: (target / name).open("wb") for name in ("train.ids", "train.starts", "valid.ids", "valid.starts")
        }
        for split, batch in _split_batches(corpora, column):
            encoded = tokenizer(batch, add_special_tokens=False, return_attention_mask=False)["input_ids"]
            lengths = np.array([len(ids) for ids in encoded], np.int64)
            handles[f"{split}.starts"].write((counts[split] + np.cumsum(lengths) - lengths).tobytes())
            handles[f"{split}.ids"].write(np.concatenate([np.array(ids, np.uint16) for ids in encoded]).tobytes())
            counts[split] += int(lengths.sum())
        for handle in handles.values():
            handle.close()
        if counts["valid"] < MIN_HELD_OUT:
            _hold_out_tail(target)
        write_checksums(target)

    write_folder(folder, fill)


def _split_batches(corpora: Sequence[Path], column: str | None) -> Iterator[tuple[str, list[str]]]:
    """Batches of sentences, each with the split ("train" or "valid") of its documents."""
    waiting: dict[str, list[str]] = {"train": [], "valid": []}
    for path in corpora:
        document = 0
        for line in corpus_lines(path, column):
            if not line.strip():
                document += 1
                continue
            split = "valid" if document % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else "train"
            waiting[split].append(line)
            if len(waiting[split]) == LINES_AT_ONCE:
                yield split, waiting[split]
                waiting[split] = []
    yield from ((split, lines) for split, lines in waiting.items() if lines)


def _hold_out_tail(folder: Path) -> None:
    """Hold out the last hundredth of the training sentences, at least 64 word pieces."""
    starts, ids = np.fromfile(folder / "train.starts", np.int64), np.fromfile(folder / "train.ids", np.uint16)
    kept = len(starts) - max(1, len(starts) // HELD_OUT_EVERY)
    cut = min(int(starts[kept]), len(ids) - MIN_HELD_OUT)
    if cut < MIN_HELD_OUT:
        raise ValueError(f"the corpus has only {len(ids)} word pieces; give `corpora` of a few thousand")
    ids[:cut].tofile(folder / "train.ids")
    ids[cut:].tofile(folder / "valid.ids")
    starts[starts < cut].tofile(folder / "train.starts")
    np.array([0], np.int64).tofile(folder / "valid.starts")
