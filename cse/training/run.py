"""Training runs: a user's request, and the settings, texts and dev pairs that it resolves to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cse.corpus.corpus import IN_MEMORY, SAMPLE_ROWS, Corpus, check_texts, is_stream
from cse.corpus.formats import Options
from cse.corpus.supervised import Examples, Note, Pair, is_items, pairs_in_memory, scored_pairs, training_examples
from cse.encoder.backbone import has_dropout, load_backbone
from cse.encoder.torch_encoder import TorchEncoder
from cse.evaluation.metrics import check_grades, correlation, pair_cosines
from cse.files.remote import shown
from cse.files.writing import digest_of
from cse.methods.method import JOINED, TRAINED_POOLINGS, Method, Pooling, When
from cse.methods.presets import backbone_key, preset
from cse.methods.settings import METHOD_SETTINGS, SETTINGS, TrainConfig, to_json
from cse.models.names import BACKBONE, location, resolve_backbone
from cse.training.held_out import HELD_OUT_SELECTION, MAX_HELD_OUT, hold_out

EXAMPLES_PER_READ = 10_000  # examples at a time
DROPOUT = 0.1  # BERT's, for backbones without
MAX_RECORDED = 100_000  # examples whose texts are recorded: 13 bytes for each text
AUTO_DEV = "auto"  # dev: texts are held out


@dataclass(frozen=True)
class TrainRequest:
    """A request to train: a method by name, a backbone, texts, and changes to the published preset.

    `data` is a file or hub id, read with `options`, or what `training_examples` takes; `column` and the first `limit`
    examples are read. `dev` is a file or table of scored pairs, the pairs, or `AUTO_DEV` to hold out texts. `settings`
    are those of `cse.methods.settings`; None keeps the preset's.
    """

    method: str
    data: Any
    backbone: str = BACKBONE
    supervised: bool = False
    dev: Any = None
    column: str | None = None
    limit: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Options | None = None

    @property
    def source(self) -> str:
        """The name of the data in errors and records."""
        if isinstance(self.data, Corpus):
            return self.data.name
        return shown(str(self.data)) if isinstance(self.data, str | Path) else IN_MEMORY

    @property
    def holds_out(self) -> bool:
        """True if texts are held out, in place of dev pairs."""
        return isinstance(self.dev, str) and self.dev == AUTO_DEV

    def drawn(self, backbone: str) -> TrainRequest:
        """The request for as much of a stream as its steps take on a backbone (a `backbone_key`), and `dev` auto."""
        _, config = self.preset(backbone)
        if self.limit is not None or config.max_steps is None:
            return self
        held_out = MAX_HELD_OUT if self.holds_out else 0
        return replace(self, limit=config.max_steps * config.batch_size + held_out)

    def dev_pairs(self, note: Note) -> list[Pair] | None:
        """The scored pairs, if there are any; `note` gets what was understood of a file.

        Raises ValueError for bad ones and for grades that are all equal.
        """
        if self.dev is None or self.holds_out:
            return None
        name = str(self.dev) if isinstance(self.dev, str | Path) else "`dev`"
        pairs = pairs_in_memory(self.dev, name) if is_items(self.dev) else scored_pairs(self.dev, note)
        check_grades(pairs, name)
        return pairs

    def preset(self, backbone: str) -> tuple[Method, TrainConfig]:
        """Method and settings on a backbone (a `backbone_key`). Raises ValueError for unknown or invalid settings."""
        method, config = preset(self.method, backbone, self.supervised)
        changes = {name: value for name, value in self.settings.items() if value is not None}
        if unknown := changes.keys() - SETTINGS.keys():
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}; choose from {', '.join(SETTINGS)}")
        for name, value in changes.items():
            SETTINGS[name].check(value)
        of_method = {name: changes.pop(name) for name in METHOD_SETTINGS if name in changes}
        if changes.get("hinge") and not (method.reading.prefix and method.supervised):
            raise ValueError("`hinge` is for supervised dcpcse (PromCSE); leave it out")
        return method.changed(**of_method), replace(config, **changes)


@dataclass(frozen=True)
class Run:
    """A run without its encoder: settings, texts, dev pairs, source of the texts.

    `held_out` are texts that are not trained on, to select on without labels in place of dev pairs; `read` is then the
    digest of all texts.
    """

    config: TrainConfig
    examples: Examples
    dev: Sequence[Pair] | None
    source: str
    held_out: tuple[str, ...] = ()
    read: str = ""

    @property
    def selects(self) -> bool:
        """True if the best evaluation is kept."""
        return bool(self.dev or self.held_out)

    @property
    def selection(self) -> str:
        """The rule that selects the model to keep, for records."""
        if self.held_out:
            return HELD_OUT_SELECTION
        return "best on dev" if self.dev else "last step; nothing was selected"

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in an epoch, at least one."""
        return max(1, len(self.examples) // self.config.batch_size)

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        whole = self.config.epochs * self.steps_per_epoch
        return min(whole, self.config.max_steps or whole)

    def learning_rate(self, step: int) -> float:
        """Linear decay to zero without warm-up, as the released code does."""
        return self.config.learning_rate * (1 - step / self.steps)

    def recipe(self, encoder: TorchEncoder) -> dict[str, Any]:
        """Everything that decides the result, as JSON values."""
        value = {
            **asdict(self.config), "method": to_json(encoder.method), "backbone": encoder.backbone_fingerprint,
            "data": Path(self.source).name, "examples": len(self.examples), "dev_pairs": len(self.dev or ()),
            "texts": self.read or texts_digest(self.examples, self.dev),
            **({"held_out": len(self.held_out)} if self.held_out else {}),
        }  # fmt: skip
        return json.loads(json.dumps(value))

    def numbers(self, step: int) -> np.ndarray:
        """(B,) the examples of a step: a function of the seed and the step alone."""
        epoch, within = divmod(step, self.steps_per_epoch)
        order = _order(self.config.seed, epoch, len(self.examples))
        size = self.config.batch_size
        return order[within * size : (within + 1) * size]

    def texts(self, steps: int) -> Iterator[str]:
        """Yield the texts that the first steps read; none of a run of more than `MAX_RECORDED` examples."""
        numbers = np.unique([self.numbers(step) for step in range(steps)]).astype(int)
        for start in range(0, len(numbers) if len(numbers) <= MAX_RECORDED else 0, EXAMPLES_PER_READ):
            for texts in self.examples[numbers[start : start + EXAMPLES_PER_READ]].values():
                yield from texts

    def batch(self, step: int) -> dict[str, list[str]]:
        """The texts of a step by column."""
        return self.examples[self.numbers(step)]


def texts_digest(examples: Examples, dev: Sequence[Pair] | None = None) -> str:
    """Return the digest of examples and dev pairs."""
    starts = range(0, len(examples), EXAMPLES_PER_READ)
    blocks = (examples[at : at + EXAMPLES_PER_READ] for at in starts)
    return digest_of(json.dumps(block) for block in chain(blocks, [dev]))


def dev_score(encoder: TorchEncoder, run: Run, step: int) -> float:
    """Spearman x 100 on the run's dev pairs after `step` steps, rounded to three decimals.

    Raises ValueError if the correlation is undefined.
    """
    encoder.eval()
    pairs = run.dev or ()
    # The vectors that `encode` returns; the released PromptBERT selects with denoising and tests without it.
    cosines = pair_cosines(lambda texts: encoder.encode(texts, batch_size=256), pairs)
    try:
        return round(correlation(cosines, [grade for grade, _, _ in pairs], "`dev`"), 3)
    except ValueError as error:
        at, cure = (
            (f"at step {step}", "lower `learning_rate`") if step else ("before the first step", "give other pairs")
        )
        raise ValueError(f"{error}, {at}; {cure}") from error


@lru_cache(maxsize=1)
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    """(count,) the order of the examples in an epoch."""
    return np.random.default_rng((seed, epoch)).permutation(count)


def _row_of(model: Any) -> str:
    return backbone_key(model.config.model_type, model.config.hidden_size)


def prepare(request: TrainRequest, note: Note = lambda line: None) -> tuple[TorchEncoder, Run]:
    """The encoder and the run of a request; `note` gets lines that say how files were read, and of a small batch.

    Raises ValueError for bad data, settings or methods, ArtefactError for a backbone that cannot be opened.
    """
    reference = resolve_backbone(request.backbone)
    name, opened = reference.name, None
    if is_stream(request.data):  # other data are read before the backbone, so that an error in them comes at once
        opened = load_backbone(location(name))
        request = request.drawn(_row_of(opened[0]))
    examples = training_examples(
        request.data, request.column, supervised=request.supervised, options=request.options, limit=request.limit
    )
    if isinstance(request.data, str | Path) or request.supervised:
        note(examples.understood)
    if len(examples) < 2:
        raise ValueError(f"{request.source}: contrastive training needs at least 2 examples, got {len(examples)}")
    if not request.supervised:  # an anchor of several pairs is repeated
        spread = examples.select(slice(None, None, 1 + len(examples) // SAMPLE_ROWS))
        check_texts(request.source, list(spread.anchors()), 2, "contrastive training")
    dev = request.dev_pairs(note)
    model, tokenizer = opened or load_backbone(location(name))
    method, config = request.preset(_row_of(model))
    if reference.recorded and request.settings.get("pooling") is None and method.settings["pooling"]:
        pooling = reference.recorded.pooling
        if pooling in (joined.value for joined in JOINED):
            raise ValueError(f"{name} joins two readings, of which training takes one; give `pooling` mean or cls")
        if pooling in TRAINED_POOLINGS:
            method = method.changed(pooling=pooling, head=request.settings.get("head"))
        else:
            method = method.replaced(pooling=Pooling(pooling), training_pooling=None, head_when=When.NEVER)
    read = texts_digest(examples) if request.holds_out else ""  # whatever the seed
    examples, held_out = hold_out(examples, config.seed) if read else (examples, ())
    if len(examples) < config.batch_size:
        config = replace(config, batch_size=max(2, len(examples)))
        note(f"only {len(examples)} examples: batch size {config.batch_size}")
    if config.dropout is None and not has_dropout(model):
        config = replace(config, dropout=DROPOUT)
        note(f"{name} has no dropout, by which the views of a sentence differ: set to {DROPOUT}")
    torch.manual_seed(config.seed)  # the new head, prefix and slots
    encoder = TorchEncoder(model, tokenizer, method, name=request.method, backbone=name)
    encoder.select_learned(config.freeze_embeddings)
    return encoder, Run(config, examples, dev, request.source, held_out, read)
