"""A backbone with a method's learned slots and prefix: from rows of token ids to states, vectors and biases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import embedding, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from cse.encoder.backbone import (
    first_position,
    mlm_head,
    norm_eps,
    on_device,
    picklable,
    reads_positions,
    row_limit,
    run_behind,
)
from cse.encoder.devices import FORWARD_COST, row_groups
from cse.encoder.rows import HARD, TokenRows, TokenTemplate, bias_rows, rendered
from cse.encoder.stored_backbone import FAMILIES as BLOCK_FAMILIES
from cse.errors import ArtefactError
from cse.methods.method import JOINED, LAST_LAYER, LAYERS, Head, Method, Pooling

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import Self

FUSED = "sdpa"  # other attentions are for analysis of the blocks (`cse.analysis.prefix_analysis`)


def can_read_at(model: PreTrainedModel) -> bool:
    """Make `model.base_model` accept `read_at` (B,), the token of each row to compute; False if it cannot.

    With `read_at` its last hidden states are (B, 1, d). Without it the model is unchanged.
    """
    if not reads_positions(model):
        return False
    encoder: Any = model.base_model.encoder
    encoder.layer[-1].forward = partial(_forward, encoder.layer[-1])  # a bound method could not be unpickled
    return True


def _forward(
    block: Any, hidden: torch.Tensor, mask: torch.Tensor | None = None, *args: Any,
    read_at: torch.Tensor | None = None, **options: Any,
) -> torch.Tensor:  # fmt: skip
    """Run a block's own forward or, with `read_at`, only these tokens; the others are needed for keys and values."""
    if read_at is None:
        return type(block).forward(block, hidden, mask, *args, **options)
    from transformers import Cache

    own = block.attention.self
    read = hidden[torch.arange(len(hidden), device=hidden.device), read_at][:, None]  # (B, 1, d)
    queries, keys, values = (
        states.unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)  # (B, heads, 1 or L, d / heads)
        for states in (own.query(read), own.key(hidden), own.value(hidden))
    )
    for option in (*args, *options.values()):
        if isinstance(option, Cache):  # transformers 5.24 renamed it
            keys, values = option.update(keys, values, own.layer_idx)
    if mask is not None:  # (B, 1, L, P + L), boolean or additive, equal for all L queries
        mask = mask[:, :, :1] if mask.dtype is torch.bool else mask[:, :, :1].to(queries.dtype)
    dropout = own.dropout.p if block.training else 0.0
    context = scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout)
    return block.feed_forward_chunk(block.attention.output(context.transpose(1, 2).flatten(2), read))


@contextmanager
def zero_cut(embeddings: nn.Module, rows: TokenRows) -> Iterator[None]:
    """Zero the output (B, L, d) of an embedding layer in the dimensions that each of `rows` has `cut` (ConSERT)."""
    if rows.cut is None:
        yield
        return
    kept = torch.from_numpy(~rows.cut)[:, None]

    def zero(module: nn.Module, inputs: tuple[Any, ...], states: torch.Tensor) -> torch.Tensor:
        return states * kept.to(states)

    hook = embeddings.register_forward_hook(zero)
    try:
        yield
    finally:
        hook.remove()


INIT_STD = 0.02  # as the backbones' own initialisation


class TransformHead(nn.Module):
    """The masked LM's transform (dense, GELU, LayerNorm) as a head."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (B, d) to (B, d)."""
        return self.norm(nn.functional.gelu(self.dense(hidden)))


def new_head(model: PreTrainedModel, kind: Head, width: int) -> nn.Module:
    """Return a training head: SimCSE's linear layer with tanh, or a transform initialised from the backbone's own.

    Raises ArtefactError for the second if the backbone has none.
    """
    if kind is Head.TANH:
        layer = nn.Linear(width, width)
        nn.init.normal_(layer.weight, std=INIT_STD)
        nn.init.zeros_(layer.bias)
        return nn.Sequential(layer, nn.Tanh())
    mlm_head(model)  # raises if there is none
    width, base = int(model.config.hidden_size), set(model.base_model.modules())
    own = [module for module in model.modules() if module not in base]
    dense = next((own for own in own if isinstance(own, nn.Linear) and own.weight.shape == (width, width)), None)
    norm = next((own for own in own if isinstance(own, nn.LayerNorm) and own.normalized_shape == (width,)), None)
    if dense is None or norm is None:
        raise ArtefactError(
            f"the masked-language-model head of this {model.config.model_type} model is of another width than its "
            "states, so no head can begin as it; train another method"
        )
    made = TransformHead(width, norm_eps(model.config))
    for target, source in ((made.dense, dense), (made.norm, norm)):
        nn.init.zeros_(target.bias)  # ModernBERT has none
        target.load_state_dict(source.state_dict(), strict=False)
    return made


class Unit(nn.Module):
    """The vectors scaled to length 1."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (B, d) to (B, d)."""
        return nn.functional.normalize(hidden, dim=1)


def head_module(kind: Head, arrays: Mapping[str, np.ndarray], config: Any, layers: Sequence[str] = ()) -> nn.Module:
    """Return the module of a head, from `stored_head`, on a backbone of this `config`; `layers` as in `Reading`."""
    head: nn.Module = TransformHead(config.hidden_size, norm_eps(config))
    if kind is not Head.TRANSFORM:
        layers = {Head.TANH: ("linear", "tanh"), Head.LINEAR: ("linear",)}.get(kind, layers)
        made: dict[str, Callable[[str], nn.Module]] = {
            "linear": lambda name: nn.Linear(*arrays[f"{name}.weight"].shape[::-1]),
            "norm": lambda name: nn.LayerNorm(*arrays[f"{name}.weight"].shape),
            "tanh": lambda _: nn.Tanh(), "unit": lambda _: Unit(),
        }  # fmt: skip
        head = nn.Sequential(*(made[layer](str(number)) for number, layer in enumerate(layers)))
    head.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    return head


class Tokens(NamedTuple):
    """Rows as int64 tensors, each (B, L); the mask is 1 at a token and 0 at padding, `pooled` 1 where a mean reads."""

    ids: torch.Tensor
    slots: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    pooled: torch.Tensor


class PromptedBackbone(nn.Module):
    """A masked language model that reads rows: word embeddings with soft slots, after a key/value prefix.

    `views` holds the method's templates in the tokenizer's ids; the first one is the anchor's. `prefix` is
    (P, layers * 2 * d), `slots` (S, d); each is None if the method has none. In training a forward pass has at most
    `chunk` rows, and the backward pass recomputes it, so that only one chunk's states are in memory. With `reads_at`
    the last block is computed only at the tokens that are read (`cse.encoder.prompted_backbone`).
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, method: Method) -> None:
        super().__init__()
        self.model: Any = model  # untyped: its modules differ between families
        self.tokenizer, self.method = tokenizer, method
        self.views = rendered(method, tokenizer)
        reading, hidden = method.reading, int(model.config.hidden_size)
        self.width, self.dim = hidden, reading.width(hidden)
        self.placed = reads_positions(model)
        _check_method(model, method, self.placed)
        if reading.prefix >= row_limit(model):  # before they are allocated
            raise ValueError(f"{method.name}: its prefix ({reading.prefix:,}) leaves no position for the sentence")
        self.prefix = None
        if reading.prefix:
            numbers = int(model.config.num_hidden_layers) * 2 * hidden
            self.prefix = nn.Parameter(torch.empty(reading.prefix, numbers).normal_(std=INIT_STD))
        anchor = self.views[0][0]
        words = model.get_input_embeddings().weight.detach()
        self.slots = nn.Parameter(words[list(anchor.slot_ids)].clone()) if anchor.slot_ids else None  # [P] is as [PAD]
        self.dropout = nn.Dropout(getattr(model.config, "hidden_dropout_prob", 0.0))
        self.chunk: int | None = None
        self.reads_at = can_read_at(model)
        self.converted: Any = None  # a `ConvertedGraph` that computes the last states in place of the model
        self.compiled: dict[bool, Callable[..., Any]] = {}  # in place of `run_behind`, in training or not
        self._biases: dict[tuple[TokenTemplate, int], torch.Tensor] = {}
        self._biases_of = -1

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.model.get_input_embeddings().weight.device

    def pool(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, d) float32 pooled states of rows in one pass, before bias and head."""
        pooling = (self.training and self.method.training_pooling) or self.method.reading.pooling
        if pooling is Pooling.TOKEN:
            return self.read(rows)
        if pooling is Pooling.LAST:
            return self.read(replace(rows, read_at=np.maximum(rows.sizes - 1, 0)))
        if pooling is Pooling.STATIC:
            return _mean(self._embed(tokens := self._collate(rows)[0]), tokens.pooled)
        if pooling is Pooling.STATIC_OUTPUT:
            mlm_head(self.model)  # raises if there is none
            tokens, _ = self._collate(rows)
            return _mean(self.model.get_output_embeddings().weight[tokens.ids], tokens.pooled)
        return pooled_states(pooling, *self._run(rows, layers=LAYERS.get(pooling, LAST_LAYER)))

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

    def read(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, d) float32: each row's last hidden state at its `read_at`."""
        if self.reads_at and self.model.config._attn_implementation == FUSED:
            return self._run(rows, read_at=on_device(rows.read_at, self.device))[0][:, 0].float()
        return self._run(rows)[2]

    def hidden(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, L, d) last hidden states of rows padded to the longest."""
        return self._run(rows)[0]

    def _embed(self, tokens: Tokens) -> torch.Tensor:
        embeddings = self.model.get_input_embeddings()(tokens.ids)  # (B, L, d)
        if self.slots is None:
            return embeddings
        return torch.where(tokens.slots[..., None] == HARD, embeddings, self.slots[tokens.slots.clamp(min=0)])

    def _run(
        self, rows: TokenRows, layers: tuple[int, ...] = LAST_LAYER, **read_at: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the mean (B, L, d) of the hidden states of `layers`, as `cse.methods.method.LAYERS` counts, what a
        mean reads of it, (B, L), and its states at the rows' `read_at`, (B, d).

        With `read_at` (B,) those of the last layer are (B, 1, d), of these tokens (`cse.encoder.prompted_backbone`).
        """
        if self._may_learn():
            self.forget_biases()
        tokens, column = self._collate(rows)
        if self.converted and layers == LAST_LAYER and not self._may_learn():
            last = self.converted(self._embed(tokens), tokens.mask)
            return last, tokens.pooled, last[torch.arange(len(rows)), column].float()
        base, inputs = self.model.base_model, {**({"position_ids": tokens.positions} if self.placed else {}), **read_at}
        # Each row has its own noise.
        prefix = None if self.prefix is None else self.dropout(self.prefix.expand(len(rows), -1, -1))
        # PyTorch would compile passes of one row by themselves, while the one sentence waits.
        run = self.compiled.get(self.training, run_behind) if self.training or len(rows) > 1 else run_behind
        padded = self.training or not self.placed or bool(np.ptp(rows.sizes))
        mask = tokens.mask if padded else None  # transformers would wait for a GPU to see that nothing is masked
        with zero_cut(getattr(base, "embeddings", None) or base.get_input_embeddings(), rows):
            output = run(
                base, prefix, mask,
                inputs_embeds=self._embed(tokens), output_hidden_states=layers != LAST_LAYER, **inputs,
            )  # fmt: skip
        hidden = mean_of_layers(output, layers)
        first = hidden[:, 0] if read_at else hidden[torch.arange(len(rows), device=self.device), column]
        return hidden, tokens.pooled, first.float()

    @property
    def _fixed(self) -> bool:
        """True if passes are padded to a `fixed_size`, as each size is compiled."""
        return self.training and True in self.compiled

    def _collate(self, rows: TokenRows) -> tuple[Tokens, torch.Tensor]:
        """Return the rows as tensors, padded at least to the longest, and the column of each that is read (B,)."""
        padding, column = self.tokenizer.pad_token_id or 0, rows.read_at
        if self.placed:
            tables = rows.tables(padding, first_position(self.model) + self.method.reading.prefix)
        else:
            tables, column = rows.columns(padding)
        if self._fixed:
            wider = min(fixed_size(tables.shape[2]), row_limit(self.model)) - tables.shape[2]
            beside = np.array([padding, HARD, 0, 0, 0])[:, None, None]
            tables = np.concatenate([tables, np.broadcast_to(beside, (5, len(rows), max(0, wider)))], 2)
        return Tokens(*on_device(tables, self.device).unbind()), on_device(column, self.device)

    def bias(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, d) states at the mask of each row's template alone, for a sentence of its length (PromptBERT 4.2).

        Distinct (template, length) are computed once per call in training, and once for all calls in inference. That
        cache is cleared by any pass in training mode or with gradients, when the module is moved or cast, and when a
        parameter was written to. PyTorch counts writes in `_version`, but not those of fused optimisers.
        """
        (biases, numbers), known = rows.biases(), dict[tuple[TokenTemplate, int], torch.Tensor]()
        if not self._may_learn():
            version = sum(parameter._version for parameter in self.parameters() if not parameter.is_inference())
            if version != self._biases_of:
                self._biases, self._biases_of = {}, version
            known = self._biases
        if new := [bias for bias in biases if bias not in known]:
            if self._fixed:
                new += new[:1] * (fixed_size(len(new)) - len(new))
            alone = bias_rows(new, self.method.reading.specials_in_bias)
            table = self.grouped(alone.sizes.tolist(), lambda part: self.read(alone[part]))
            known.update(zip(new, table, strict=True))
        if len(new) < len(biases):
            table = torch.stack([known[bias] for bias in biases]).to(self.device)
        return embedding(on_device(numbers, self.device), table)  # an index's gradient is summed in any order

    def forget_biases(self) -> None:
        """Clear the cached biases of inference, but not those of a shallow copy of this module."""
        self._biases = {}

    def _may_learn(self) -> bool:
        return self.training or torch.is_grad_enabled()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle or deep copy, without the biases, which depend on the count of writes."""
        # Without the hooks that transformers installs: they are local functions, which no pickle can hold.
        state = super().__getstate__() | {"_modules": {**self._modules, "model": picklable(self.model)}}
        return {**state, "converted": None, "compiled": {}, "_biases": {}, "_biases_of": -1}

    def __copy__(self) -> Self:
        """Return another encoder that shares the modules, with its own method and settings."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__, _biases={}, _biases_of=-1)
        return copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle, and register the model's class with transformers in this process."""
        super().__setstate__(state)
        with torch.device("meta"):
            type(self.model)(self.model.config)  # the constructor records which states a class can return

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        self.forget_biases()  # they are on the old device, in the old precision
        self.converted = None
        return super()._apply(*args, **kwargs)


def _check_method(model: PreTrainedModel, method: Method, placed: bool) -> None:
    """Raise ValueError for a method that cannot learn or read on a model."""
    kind, reading = model.config.model_type, method.reading
    if placed:
        return
    if reading.prefix:
        raise ValueError(
            f"{method.name} learns keys and values in the blocks of {', '.join(BLOCK_FAMILIES)}, and this model is "
            f"{kind}; simcse, esimcse and consert train on it, and promptbert if it has a masked-language-model head"
        )
    prompts = any(template.prompts for view in method.views for template in view)
    if prompts and (model.base_model is model or model.get_output_embeddings() is None):
        raise ValueError(
            f"{method.name} reads a vector at [MASK], and this {kind} model has no masked-language-model head; give "
            "the model it was made from, or train simcse, esimcse or consert on this one"
        )


def fixed_size(size: int) -> int:
    """Return the least of 8, 16, 24, 32, 48, 64, 96, 128, ... that is not below `size`.

    A pass is compiled for each size, in many seconds: two for each power of two pad long rows by half at most.
    """
    step = max(8, 2 ** max(0, (size - 1).bit_length() - 2))
    return -(-size // step) * step


def mean_of_layers(output: Any, layers: Sequence[int]) -> torch.Tensor:
    """Return the mean (B, L, d) of the hidden states of `layers`, as `cse.methods.method.LAYERS` counts."""
    states = [output.last_hidden_state if layer == -1 else output.hidden_states[layer] for layer in layers]
    return torch.stack(states).mean(0) if len(states) > 1 else states[0]


def pooled_states(pooling: Pooling, hidden: torch.Tensor, pooled: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Return (B, d) float32 vectors of the states `hidden` (B, L, d), for JOINED (B, 2 d).

    `pooled` (B, L) is 1 where all tokens are read, `first` (B, d) is the state of the one token that else is read.
    """
    if pooling in (Pooling.TOKEN, Pooling.LAST):
        return first
    if pooling in JOINED:
        readings = {Pooling.TOKEN: first, Pooling.MEAN: _mean(hidden, pooled)}
        return torch.cat([readings[part] for part in JOINED[pooling]], dim=1)
    if pooling is Pooling.MAX:
        return hidden.masked_fill(pooled[..., None] == 0, -torch.inf).amax(1).float()
    if pooling is Pooling.WEIGHTED_MEAN:
        pooled = pooled * torch.arange(1, pooled.shape[1] + 1, device=pooled.device)
    mean = _mean(hidden, pooled)
    return mean * pooled.sum(1, keepdim=True).sqrt() if pooling is Pooling.MEAN_SQRT_LEN else mean


def _mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask[..., None].to(hidden.dtype)
    return ((hidden * weights).sum(1) / weights.sum(1).clamp(min=1)).float()
