"""Tokenised corpora: a vocabulary learned from text files, and the files tokenised once into memory-mapped arrays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from cse.corpus import formats
from cse.corpus.corpus import Corpus
from cse.corpus.formats import Options
from cse.corpus.lines import text_lines
from cse.corpus.source import Source
from cse.encoder.backbone import mlm_head
from cse.encoder.rows import TokenTemplate, plain_ids, render
from cse.encoder.token_file import TokenFile
from cse.files.checksums import write_checksums
from cse.files.writing import file_digest, replacing
from cse.methods.templates import PLAIN
from cse.training.losses import mask_tokens

if TYPE_CHECKING:
    from tokenizers import BertWordPieceTokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NEW_VOCABULARY = 12_000
MODEL_FOLDER = "model"  # of a run's output


@dataclass(frozen=True)
class PretrainConfig:
    """Settings that decide the result; those of a new model's shape are unused with an `init`.

    `vocabulary` is the number of word pieces of a new model (None: `NEW_VOCABULARY`); an `init` keeps its own. `tokens`
    of the whole run and `batch_tokens` of a step include special tokens. The rows of a batch have one of the `lengths`
    (tokens), drawn uniformly. `accumulate` is the number of micro-batches of a step; it changes a step's memory, not
    the result. `warmup` is a share of the steps. The lowest `frozen_layers` of an `init` are fixed, and so are its
    embeddings, which a tied decoder shares; if all are, only the head learns. `blend_share` is the weight of
    `PretrainRequest.blend` in the average that training starts from, or a weight for the embeddings and one for each
    layer, `start_share` that of the `init` in the result, below the head
    (`cse.training.pretraining_model.average_in`). `untied` gives a new model a decoder of its own (PromptBERT's Table
    12), which starts as a copy of the word embeddings.
    """

    vocabulary: int | None = None
    layers: int = 4
    hidden: int = 256
    heads: int = 4
    positions: int = 256
    tokens: int = 30_000_000
    batch_tokens: int = 4096
    accumulate: int = 1
    lengths: tuple[int, ...] = (16, 32, 64, 128)
    learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    frozen_layers: int = 0
    blend_share: float | tuple[float, ...] = 0.5
    start_share: float = 0.0
    untied: bool = False
    seed: int = 42

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return max(1, self.tokens // self.batch_tokens)


@dataclass(frozen=True)
class PretrainRequest:
    """A pretraining run: `corpora`, text files of a sentence a line, tables or hub ids, to `output / MODEL_FOLDER`.

    A table gives the texts of its `column`, by default the one that its name or content shows; all corpora are read
    with `options`, and of each the first `limit` lines or rows.
    `init` is a backbone to continue from, named as in `cse.load`, or None for a new model; a BERT saved without a
    masked-LM head gets a new one. `blend` is an encoder of the same shape and vocabulary, averaged into `init` first,
    below the head. `resume` continues a killed run from its last evaluation, `overwrite` starts it again.
    Every `eval_every` steps the model is validated on held-out text and the state is saved. `precision`: auto, no or
    bf16 (`cse.training.resume.start_accelerator`).
    """

    corpora: Sequence[Path]
    output: Path
    config: PretrainConfig = field(default_factory=PretrainConfig)
    init: str | None = None
    blend: str | None = None
    resume: bool = False
    overwrite: bool = False
    eval_every: int = 500
    precision: str = "auto"
    column: str | None = None
    options: Options = field(default_factory=Options)
    limit: int | None = None

    @cached_property
    def sources(self) -> list[Source | Corpus]:
        """Each corpus: lines of text, or a table, which is read once though its texts are read several times.

        Raises ValueError for a file or column that cannot be read.
        """

        def opened(name: str) -> Source | Corpus:
            source = None if formats.is_hub_id(name) else formats.read(name, self.options)
            if source is not None and source.format == formats.TEXT:
                return source
            return Corpus.read(name, self.column, options=self.options, limit=self.limit)

        return [opened(str(path)) for path in self.corpora]

    @property
    def tables(self) -> list[Corpus]:
        """The corpora that are tables."""
        return [source for source in self.sources if isinstance(source, Corpus)]

    def lines(self) -> Iterator[Iterator[str]]:
        """Yield the lines of each text file, empty ones too, or the texts of each table."""
        for path, source in zip(self.corpora, self.sources, strict=True):
            if isinstance(source, Corpus):
                yield chain.from_iterable(block.sentences for block in source.blocks(LINES_PER_BATCH))
            else:
                yield islice(text_lines(path, encoding=source.encoding), self.limit)

    def reading(self) -> dict[str, object]:
        """How corpora are read where it is not by default, as JSON values."""
        options = {name: value for name, value in asdict(self.options).items() if value is not None}
        values = {"column": self.column, "read": options or None, "limit": self.limit}
        return {name: value for name, value in values.items() if value is not None}

    def recipe(self) -> dict[str, object]:
        """Everything that decides the result, as JSON values: `config` and the names of `init`, `blend` and corpora."""
        start = {"init": _portable(self.init), "blend": _portable(self.blend)}
        names = [path.name for path in self.corpora]
        recipe = {**asdict(self.config), **start, "corpora": names, **self.reading()}  # older ones have none
        return json.loads(json.dumps(recipe))

    def source(self) -> dict[str, object]:
        """Everything the tokenised corpus in `output` depends on, as JSON values.

        Files are recorded by name and digest, tables by their column too.
        """
        texts = [
            [
                path.name,
                file_digest(path) if path.is_file() else "",
                *([self.column] if isinstance(source, Corpus) else []),
            ]
            for path, source in zip(self.corpora, self.sources, strict=True)
        ]
        reading = self.reading()
        reading.pop("column", None)
        return {"texts": texts, "vocabulary": self.config.vocabulary, "init": self.init, **reading}


def _portable(name: str | None) -> str | None:
    """A model's name without its absolute path; that of a run's model keeps the run's name."""
    if name is None or not (path := Path(name)).is_absolute():
        return name
    return f"{path.parent.name}/{path.name}" if path.name == MODEL_FOLDER else path.name


def learning_rate(config: PretrainConfig, step: int) -> float:
    """Linear warm-up, then linear decay to zero at the last step."""
    warm = max(1, round(config.warmup * config.steps))
    return config.learning_rate * min((step + 1) / warm, (config.steps - step) / max(1, config.steps - warm))


SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT_EVERY = 100  # documents
MIN_HELD_OUT_PIECES = 64  # word pieces
LINES_PER_BATCH = 20_000
MAX_WORD_CHARACTERS = 100  # WordPiece's own limit
MAX_ALPHABET_CHARACTERS = 400  # characters
CONTINUATION = "##"  # prefix of pieces inside a word


def train_tokenizer(request: PretrainRequest) -> PreTrainedTokenizerBase:
    """An uncased WordPiece tokenizer learned from the corpora; the same files give the same one.

    Raises ValueError if the text does not support so many word pieces.
    """
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertTokenizer

    vocabulary = request.config.vocabulary or NEW_VOCABULARY
    trainer = BertWordPieceTokenizer(lowercase=True)
    first, inside = _characters(request, trainer)
    trainer.train_from_iterator(
        _sentences(request),
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=[*SPECIAL_TOKENS, *(CONTINUATION + letter for letter in inside)],
        initial_alphabet=first,
        limit_alphabet=len(first),
        show_progress=False,
    )
    learned = trainer.get_vocab()
    if len(learned) <= len(SPECIAL_TOKENS):
        raise ValueError(f"{', '.join(map(str, request.corpora))}: no sentence in it; give other `corpora`")
    if len(learned) < vocabulary:
        raise ValueError(
            f"the corpus supports only {len(learned)} word pieces; give a `vocabulary` of {len(learned)} or more text"
        )
    return BertTokenizer(vocab=learned, do_lower_case=True)


def _characters(request: PretrainRequest, tokenizer: BertWordPieceTokenizer) -> tuple[list[str], list[str]]:
    """The commonest characters of the corpora, and those of them that occur inside words.

    Given these, the trainer is deterministic: it would number other characters in the order of a hash table, which
    differs between runs, and break ties between merges by these numbers.
    """
    counts: Counter[str] = Counter()
    inside: set[str] = set()
    normalise, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    for line in _sentences(request):
        for word, _ in split(normalise(line)):
            counts.update(word)
            inside.update(word[1:])
    common = sorted(counts, key=lambda letter: (-counts[letter], letter))[:MAX_ALPHABET_CHARACTERS]
    return common, [letter for letter in common if letter in inside]


def _sentences(request: PretrainRequest) -> Iterator[str]:
    """The lines that are not empty, without words too long for WordPiece."""
    for line in chain.from_iterable(request.lines()):
        words = line.split()
        short = [word for word in words if len(word) <= MAX_WORD_CHARACTERS]  # a megabyte would take the trainer hours
        if words:
            yield line if len(short) == len(words) else " ".join(short)


def tokenise(request: PretrainRequest, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the ids and sentence starts of the corpora into `folder`; every 100th document of a file is held out.

    Documents are separated by empty lines; a table is one. If too little is held out so, the last hundredth of the
    sentences is.
    """
    with replacing(folder) as target:
        blocks = ((split, plain_ids(tokenizer, lines, special=True)) for split, lines in _split_batches(request))
        counts = TokenFile.write(target, ("train", "valid"), blocks, np.uint16)
        if counts["valid"] < MIN_HELD_OUT_PIECES:
            _hold_out_tail(target)
        write_checksums(target)


def _split_batches(request: PretrainRequest) -> Iterator[tuple[str, list[str]]]:
    """Batches of sentences, each with the split ("train" or "valid") of its documents."""
    waiting: dict[str, list[str]] = {"train": [], "valid": []}
    for lines in request.lines():
        document = 0
        for line in lines:
            if not line.strip():
                document += 1
                continue
            split = "valid" if document % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else "train"
            waiting[split].append(line)
            if len(waiting[split]) == LINES_PER_BATCH:
                yield split, waiting[split]
                waiting[split] = []
    yield from ((split, batch) for split, batch in waiting.items() if batch)


def _hold_out_tail(folder: Path) -> None:
    """Hold out the last hundredth of the training sentences, at least 64 word pieces."""
    starts, ids = np.fromfile(folder / "train.starts", np.int64), np.fromfile(folder / "train.ids", np.uint16)
    kept = len(starts) - max(1, len(starts) // HELD_OUT_EVERY)
    cut = min(int(starts[kept]), len(ids) - MIN_HELD_OUT_PIECES)
    if cut < MIN_HELD_OUT_PIECES:
        raise ValueError(f"the corpus has only {len(ids)} word pieces; give `corpora` of a few thousand")
    ids[:cut].tofile(folder / "train.ids")
    ids[cut:].tofile(folder / "valid.ids")
    starts[starts < cut].tofile(folder / "train.starts")
    np.array([0], np.int64).tofile(folder / "valid.starts")


POSITIONS_MULTIPLE = 64  # predicted positions of a batch are padded to a multiple of this
IGNORED = -100  # label of positions that are not predicted


@dataclass(frozen=True)
class MaskedBatch:
    """An MLM batch of B rows of L tokens.

    `inputs` (B, L) int64 are the ids after masking; `labels` (B, L) int64 the ids to predict, -100 elsewhere.
    """

    inputs: torch.Tensor
    labels: torch.Tensor

    @cached_property
    def masked(self) -> torch.Tensor:
        """(B, L) True where a token is to be predicted."""
        return self.labels != IGNORED

    @cached_property
    def positions(self) -> torch.Tensor:
        """(n,) int64 flat indices of the tokens to predict, padded with 0 to a multiple of 64.

        For every new size oneDNN would cache another kernel, and the logits need another buffer.
        """
        positions = self.masked.flatten().nonzero()[:, 0]
        return torch.nn.functional.pad(positions, (0, -len(positions) % POSITIONS_MULTIPLE))

    @cached_property
    def targets(self) -> torch.Tensor:
        """(n,) the id to predict at each of `positions`, -100 at the padding."""
        count = int(self.masked.sum())
        return torch.nn.functional.pad(self.labels[self.masked], (0, len(self.positions) - count), value=IGNORED)

    def to(self, device: torch.device) -> MaskedBatch:
        """The batch on a device."""
        return MaskedBatch(*(tensor.to(device, non_blocking=True) for tensor in (self.inputs, self.labels)))

    def split(self, size: int) -> list[MaskedBatch]:
        """Micro-batches of at most `size` rows."""
        return [MaskedBatch(*rows) for rows in zip(self.inputs.split(size), self.labels.split(size), strict=True)]


def masked_inputs(
    text: torch.Tensor, around: TokenTemplate, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator
) -> MaskedBatch:
    """Text ids (B, n) between the special tokens `around` it; only the text is masked."""
    changed, chosen = mask_tokens(text, tokenizer, generator)
    sides = around.ids[: around.start], around.ids[around.start :]
    before, after = (text.new_tensor(ids).expand(len(text), -1) for ids in sides)
    padding = (before.shape[1], after.shape[1])
    labels = torch.nn.functional.pad(text.masked_fill(~chosen, IGNORED), padding, value=IGNORED)
    return MaskedBatch(torch.cat([before, changed, after], 1), labels)


@dataclass(frozen=True)
class BatchSampler:
    """Draws the MLM batch of each step from a tokenised corpus, in rows of at most `max_length` tokens."""

    config: PretrainConfig
    corpus: TokenFile
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    @cached_property
    def around(self) -> TokenTemplate:
        """The special tokens around the text of a row."""
        return render(PLAIN, self.tokenizer)

    def batch(self, step: int) -> MaskedBatch:
        """The batch of a step: a function of the seed and the step alone.

        Its rows have one of the configured lengths, or what `max_length` and the corpus allow, and each starts at a
        random sentence; there are as many as `batch_tokens` allows.
        """
        rng = np.random.default_rng((self.config.seed, step))
        specials, length = self.around.length, int(rng.choice(self.config.lengths))
        text = max(1, min(min(length, self.max_length) - specials, len(self.corpus.ids)))
        ids = self.corpus.rows(max(1, self.config.batch_tokens // (text + specials)), text, rng)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        return masked_inputs(torch.from_numpy(ids), self.around, self.tokenizer, generator)


def masked_logits(model: PreTrainedModel, batch: MaskedBatch) -> torch.Tensor:
    """Logits (n, V) at the n `positions` of the batch; no other position goes through the masked-LM head."""
    hidden = model.base_model(input_ids=batch.inputs, attention_mask=torch.ones_like(batch.inputs)).last_hidden_state
    return mlm_head(model)(hidden.flatten(0, 1)[batch.positions])


def masked_lm_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) of logits (n, V) against ids (n,), without those of -100.

    It is 0 if none is left: short rows may have no mask.
    """
    total = torch.nn.functional.cross_entropy(logits.float(), targets, ignore_index=IGNORED, reduction="sum")
    return total / (targets != IGNORED).sum().clamp(min=1)
