"""The encoder on PyTorch: for training, for GPUs, and for looking inside a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import embedding
from torch.utils.checkpoint import checkpoint

from cse.encoder.backbone import (
    as_arrays,
    backbone_tensors,
    compiled_run,
    fingerprint,
    first_position,
    load_backbone,
    mlm_head,
    on_device,
    picklable,
    reads_positions,
    row_limit,
    run_behind,
    run_block,
    stated_positions,
)
from cse.encoder.devices import FORWARD_COST, device_of, row_groups
from cse.encoder.encoder import Encoder, Update
from cse.encoder.heads import INIT_STD, head_module, mean_of_layers, new_head, pooled_states, token_mean
from cse.encoder.rows import HARD, TokenRows, TokenTemplate, bias_rows
from cse.encoder.stored_backbone import FAMILIES as BLOCK_FAMILIES
from cse.encoder.stored_backbone import head_width
from cse.encoder.stored_tokenizer import WORD_TABLE
from cse.methods.method import LAST_LAYER, LAYERS, Method, Pooling, When

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import Self

    Biases = dict[tuple[TokenTemplate, int], torch.Tensor]  # by template and length of the sentence

FUSED = "sdpa"  # other attentions are for analysis of the blocks (`cse.analysis.prefix_analysis`)
# Compiling a model of base size takes an H100 20 to 40 s, and so do about 250,000 sentences that are not compiled: then
# a list whose length nobody knows takes at most twice the time of the better choice. Short lists do not count or
# compile, so that nobody waits for it at a page.
COMPILED_AFTER, LONG_LIST, COMPILED_ON = 250_000, 4_096, ("cuda",)


def new_prefix(rows: int, numbers: int) -> torch.Tensor:
    """Return the values (rows, numbers) of a prefix before its training."""
    return torch.empty(rows, numbers).normal_(std=INIT_STD)


class TorchEncoder(nn.Module, Encoder):
    """A masked language model that reads rows: word embeddings with soft slots, after a key/value prefix.

    Train mode applies the method's training steps, eval mode those of encoding. `prefix` is (P, layers * 2 * d) and
    `slots` (S, d), None if the method has none. `head` replaces a newly initialised head. In training a forward pass
    has at most `chunk` rows, and the backward pass recomputes it, so that only one chunk's states are in memory. With
    `reads_at` the last block is computed only at the tokens that are read.
    """

    backend = "torch"
    __repr__ = Encoder.__repr__  # not the modules, as of any nn.Module

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        method: Method,
        *,
        name: str,
        backbone: str = "",
        head: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.model: Any = model  # untyped: its modules differ between families
        self.tokenizer, self.method, self.width = tokenizer, method, int(model.config.hidden_size)
        self.placed = self.reads_at = reads_positions(model)
        self.first_position, self.row_limit = first_position(model), row_limit(model)
        self.any_length = not stated_positions(model)
        self._set_reading(name, backbone, fingerprint(model, tokenizer))
        _check_method(self)
        if self.reads_at:
            block = self.model.base_model.encoder.layer[-1]
            block.forward = partial(run_block, block)  # a bound method could not be unpickled
        self.prefix = None
        if method.reading.prefix:
            numbers = int(model.config.num_hidden_layers) * 2 * self.width
            self.prefix = nn.Parameter(new_prefix(method.reading.prefix, numbers))
        slots, words = list(self.views[0][0].slot_ids), model.get_input_embeddings().weight.detach()
        self.slots = nn.Parameter(words[slots].clone()) if slots else None  # [P] is as [PAD]
        self.dropout = nn.Dropout(getattr(model.config, "hidden_dropout_prob", 0.0))
        self.chunk: int | None = None
        self.converted: Any = None  # a `converted_graph` that computes the last states in place of the model
        self.compiled: dict[bool, Callable[..., Any]] = {}  # in place of `run_behind`, in training or not
        self.encoded = 0  # sentences of long lists on a GPU
        self.head = head
        if head is None and method.reading.head_when is not When.NEVER:
            self.head = new_head(model, method.reading.head, self.dim)
        self.select_learned()
        self.eval()

    @classmethod
    def open(
        cls, source: str | Path, method: Method, *, revision: str | None = None,
        weights: Mapping[str, np.ndarray] | None = None, head: Mapping[str, np.ndarray] | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        model, tokenizer = load_backbone(source, revision, weights)
        module = None if head is None else head_module(method.reading.head_layers, head, model.config)
        encoder = cls(model, tokenizer, method, head=module, **options)
        if head and method.reading.head_when is When.ALWAYS:
            encoder.dim = head_width(head)
        return encoder

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.model.get_input_embeddings().weight.device

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or cast the model, as PyTorch's modules do. Raises ValueError for a device that is not available."""
        if args and isinstance(args[0], str | int | torch.device):
            args = (device_of(args[0]), *args[1:])
        if self.converted and args != (torch.device("cpu"),):
            self.converted, self.backend = None, "torch"
        return nn.Module.to(self, *args, **kwargs)

    def computing_in(self, precision: str) -> Self:
        if precision != "bf16" and self.converted:
            raise ValueError(f"{self.name}: `precision` int8 is for models of BERT's or RoBERTa's kind; leave it out")
        if precision != "bf16":
            raise ValueError(f"{self.name}: `precision` int8 needs OpenVINO; open the model with `backend` openvino")
        return self.to(torch.bfloat16)

    # -- learned parameters -------------------------------------------------------------------------------------

    def select_learned(self, freeze_embeddings: bool = False) -> None:
        """Enable gradients for the parameters that the method learns, and for no others."""
        self.freeze_embeddings = freeze_embeddings
        learned = {id(tensor) for tensor in self.learned(training=True).values()}
        for tensor in self.parameters():
            tensor.requires_grad_(id(tensor) in learned)

    def learned(self, training: bool = False) -> dict[str, nn.Parameter]:
        """Return the method's parameters by name: those of a checkpoint; if `training`, also a training-only head."""
        parameters: dict[str, nn.Parameter] = {}
        if not (self.reading.frozen or self.method.untrained):
            words = self.model.get_input_embeddings().weight
            for name, tensor in backbone_tensors(self.model).items():
                if not (self.freeze_embeddings and tensor is words):
                    parameters[name] = tensor
        parameters |= {name: tensor for name in ("prefix", "slots") if (tensor := getattr(self, name)) is not None}
        if not self.method.untrained and (training or self.reading.head_when is When.ALWAYS):
            parameters |= self._head_parameters()
        return parameters

    def learned_arrays(self) -> dict[str, np.ndarray]:
        return as_arrays(self.learned() | (self._head_parameters() if self.reading.head_when is When.ALWAYS else {}))

    @property
    def parameter_count(self) -> int:
        head = {} if self.reading.head_when is When.ALWAYS else self._head_parameters()
        return sum(tensor.numel() for tensor in self.parameters()) - sum(tensor.numel() for tensor in head.values())

    def word_embeddings(self) -> np.ndarray:
        return as_arrays({"words": self.model.get_input_embeddings().weight})["words"]

    def _head_parameters(self) -> dict[str, nn.Parameter]:
        return {} if self.head is None else dict(self.head.named_parameters(prefix="head"))

    # -- rows to states -----------------------------------------------------------------------------------------

    def pool(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, d) float32 pooled states of rows in one pass, before bias and head."""
        pooling = (self.training and self.method.training_pooling) or self.reading.pooling
        if pooling is Pooling.TOKEN:
            return self.read(rows)
        if pooling is Pooling.LAST:
            return self.read(replace(rows, read_at=np.maximum(rows.sizes - 1, 0)))
        if pooling is Pooling.STATIC:
            (ids, slots, *_, pooled), _ = self._collate(rows)
            return token_mean(self._embed(ids, slots), pooled)
        if pooling is Pooling.STATIC_OUTPUT:
            mlm_head(self.model)  # raises if there is none
            (ids, *_, pooled), _ = self._collate(rows)
            return token_mean(self.model.get_output_embeddings().weight[ids], pooled)
        return pooled_states(pooling, *self._run(rows, layers=LAYERS.get(pooling, LAST_LAYER)))

    def read(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, d) float32: each row's last hidden state at its `read_at`."""
        if self.reads_at and self.model.config._attn_implementation == FUSED:
            return self._run(rows, read_at=on_device(rows.read_at, self.device))[0][:, 0].float()
        return self._run(rows)[2]

    def hidden(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, L, d) last hidden states of rows padded to the longest."""
        return self._run(rows)[0]

    def bias(self, rows: TokenRows, known: Biases | None = None) -> torch.Tensor:
        """Return (B, d) states at the mask of each row's template alone, for a sentence of its length (PromptBERT 4.2).

        Distinct (template, length) are computed once. Those in `known` are not computed again, and others are added.
        """
        (biases, numbers), known = rows.biases(), {} if known is None else known
        if new := [bias for bias in biases if bias not in known]:
            if self._fixed:
                new += new[:1] * (fixed_size(len(new)) - len(new))
            alone = bias_rows(new, self.reading.specials_in_bias)
            table = self.grouped(alone.sizes.tolist(), lambda part: self.read(alone[part]))
            known.update(zip(new, table, strict=True))
        if len(new) < len(biases):
            table = torch.stack([known[bias] for bias in biases])
        return embedding(on_device(numbers, self.device), table)  # an index's gradient is summed in any order

    def grouped(self, lengths: Sequence[int], read: Callable[[Sequence[int]], torch.Tensor]) -> torch.Tensor:
        """Return (B, ...) results of `read` on the numbers of rows of these `lengths` (B), in training in groups.

        On a CPU, where padding costs as much as tokens, rows of similar length are grouped. With `chunk`, groups have
        at most so many rows, which the backward pass recomputes, with the same dropout (GradCache, Gao et al. 2021).
        """
        if not self.training:
            return read(range(len(lengths)))
        cost = FORWARD_COST if self.device.type == "cpu" else sum(lengths)
        # Compiled passes have few sizes: all rows, or nearly equal chunks of them.
        groups = row_groups(lengths, self.chunk, inf if self._fixed else cost)
        values = [checkpoint(read, part, use_reentrant=False) if self.chunk else read(part) for part in groups]
        order = on_device(np.argsort(np.concatenate(groups)), self.device)
        return torch.cat(values).index_select(0, order)  # several times as fast as indexing

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Disable dropout and gradients in the block, then restore the mode."""
        mode = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(mode)

    def _embed(self, ids: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        embeddings = self.model.get_input_embeddings()(ids)  # (B, L, d)
        if self.slots is None:
            return embeddings
        return torch.where(slots[..., None] == HARD, embeddings, self.slots[slots.clamp(min=0)])

    def _run(
        self, rows: TokenRows, layers: tuple[int, ...] = LAST_LAYER, **read_at: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the mean (B, L, d) of the hidden states of `layers`, as `cse.methods.method.LAYERS` counts, what a
        mean reads of it, (B, L), and its states at the rows' `read_at`, (B, d).

        With `read_at` (B,) those of the last layer are (B, 1, d), of these tokens (`run_block`).
        """
        (ids, slots, positions, mask, pooled), column = self._collate(rows)
        if self.converted and layers == LAST_LAYER and not (self.training or torch.is_grad_enabled()):
            last = self.converted(self._embed(ids, slots), mask)
            return last, pooled, last[torch.arange(len(rows)), column].float()
        base, inputs = self.model.base_model, {**({"position_ids": positions} if self.placed else {}), **read_at}
        # Each row has its own noise.
        prefix = None if self.prefix is None else self.dropout(self.prefix.expand(len(rows), -1, -1))
        # PyTorch would compile passes of one row by themselves, while the one sentence waits.
        run = self.compiled.get(self.training, run_behind) if self.training or len(rows) > 1 else run_behind
        padded = self.training or not self.placed or bool(np.ptp(rows.sizes))
        seen = mask if padded else None  # transformers would wait for a GPU to see that nothing is masked
        with self._zero_cut(rows):
            output = run(
                base, prefix, seen,
                inputs_embeds=self._embed(ids, slots), output_hidden_states=layers != LAST_LAYER, **inputs,
            )  # fmt: skip
        hidden = mean_of_layers(output, layers)
        first = hidden[:, 0] if read_at else hidden[torch.arange(len(rows), device=self.device), column]
        return hidden, pooled, first.float()

    def _zero_cut(self, rows: TokenRows) -> Any:
        """Zero the output (B, L, d) of the embedding layer in the dimensions that each row has `cut` (ConSERT)."""
        if rows.cut is None:
            return nullcontext()
        kept, base = torch.from_numpy(~rows.cut)[:, None], self.model.base_model
        layer = getattr(base, "embeddings", None) or base.get_input_embeddings()
        return layer.register_forward_hook(lambda module, inputs, states: states * kept.to(states))

    @property
    def _fixed(self) -> bool:
        """True if passes are padded to a `fixed_size`, as each size is compiled."""
        return self.training and True in self.compiled

    def _collate(self, rows: TokenRows) -> tuple[torch.Tensor, torch.Tensor]:
        """Return `tables` (5, B, L) of the rows, padded at least to the longest, and the column that is read (B,)."""
        padding, first = self.tokenizer.pad_token_id or 0, self.first_position + self.reading.prefix
        tables, column = rows.tables(padding, first, by_position=not self.placed)
        if self._fixed:
            wider = min(fixed_size(tables.shape[2]), self.row_limit) - tables.shape[2]
            beside = np.array([padding, HARD, 0, 0, 0])[:, None, None]
            tables = np.concatenate([tables, np.broadcast_to(beside, (5, len(rows), max(0, wider)))], 2)
        return on_device(tables, self.device), on_device(column, self.device)

    # -- rows to vectors and words ------------------------------------------------------------------------------

    def forward(self, rows: TokenRows, known: Biases | None = None) -> torch.Tensor:
        """Return (B, d) float32 vectors of rows; `known` as for `bias`."""
        phases = (When.ALWAYS, When.TRAINING) if self.training else (When.ALWAYS,)
        hidden = self.grouped(rows.sizes.tolist(), lambda part: self.pool(rows[part]))
        bias = self.bias(rows, known) if self.reading.denoise in phases else None
        headed = self.head is not None and self.reading.head_when in phases
        return self._vectors_from(hidden, bias, self._headed if headed else None)

    def _headed(self, hidden: torch.Tensor) -> torch.Tensor:
        head: Any = self.head
        return head(hidden.to(next(head.parameters()).dtype)).float()

    def vectors_of(self, rows: TokenRows, passes: Sequence[np.ndarray], report: Update) -> np.ndarray:
        outputs, known = [], dict[tuple[TokenTemplate, int], torch.Tensor]()
        if self.device.type in COMPILED_ON and len(rows) >= LONG_LIST and False not in self.compiled:
            self.encoded += len(rows)
            if self.encoded > COMPILED_AFTER:
                self.compiled[False] = compiled_run(dynamic=True, required=False)
        with self.inference():
            for numbers in passes:
                # The class's forward: during training, accelerate wraps the instance's in mixed precision.
                outputs.append(TorchEncoder.forward(self, rows[numbers], known).float())
                report(len(numbers))
        return torch.cat(outputs).cpu().numpy()  # at the end: a copy after each pass would make a GPU wait for the next

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        with self.inference():
            spoken, alone = self.read(rows), self.bias(rows)
        return spoken.float().cpu().numpy(), alone.float().cpu().numpy()

    def word_logits(self, states: np.ndarray) -> np.ndarray:
        head = mlm_head(self.model)
        with self.inference():
            return head(torch.from_numpy(states).to(self.device, self.model.dtype)).float().cpu().numpy()

    # -- pickles ------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle or deep copy, without what is compiled."""
        # Without the hooks that transformers installs: they are local functions, which no pickle can hold.
        modules = {**self._modules, "model": picklable(self.model)}
        engine = {"converted": None, "backend": "torch"} if self.converted else {}
        return {**super().__getstate__(), "_modules": modules, "compiled": {}, **engine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle, and register the model's class with transformers in this process."""
        super().__setstate__(state)
        with torch.device("meta"):
            type(self.model)(self.model.config)  # the constructor records which states a class can return


def _check_method(encoder: TorchEncoder) -> None:
    """Raise ValueError for a method that cannot learn or read on a model."""
    model, method, kind = encoder.model, encoder.method, encoder.model.config.model_type
    if encoder.placed:
        return
    if method.reading.prefix:
        raise ValueError(
            f"{method.name} learns keys and values in the blocks of {', '.join(BLOCK_FAMILIES)}, and this model is "
            f"{kind}; simcse, esimcse and consert train on it, and promptbert if it has a masked-language-model head"
        )
    if encoder.views[0][0].slot_ids and not (words := _word_table(model)).endswith(WORD_TABLE):
        raise ValueError(
            f"{method.name} learns words, which need a table of words called {' or '.join(WORD_TABLE)}, and that of "
            f"this {kind} model is {words}; train promptbert or simcse on it"
        )
    prompts = any(template.prompts for view in method.views for template in view)
    if prompts and (model.base_model is model or model.get_output_embeddings() is None):
        raise ValueError(
            f"{method.name} reads a vector at [MASK], and this {kind} model has no masked-language-model head; give "
            "the model it was made from, or train simcse, esimcse or consert on this one"
        )


def _word_table(model: PreTrainedModel) -> str:
    """Return the name of a model's table of words; "" if it has none."""
    table: Any = model.get_input_embeddings()
    return next((name for name, tensor in model.named_parameters() if tensor is table.weight), "")


def fixed_size(size: int) -> int:
    """Return the least of 8, 16, 24, 32, 48, 64, 96, 128, ... that is not below `size`.

    A pass is compiled for each size, in many seconds: two for each power of two pad long rows by half at most.
    """
    step = max(8, 2 ** max(0, (size - 1).bit_length() - 2))
    return -(-size // step) * step
