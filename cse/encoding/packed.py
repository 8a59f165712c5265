"""Packing: rows of any lengths as one sequence without padding, each attending only to itself, for GPUs.

PyTorch's nested tensors provide the attention: FlashAttention's variable-length kernel in bfloat16 on a GPU, the
memory-efficient kernel in float32, and plain products on a CPU, which are slow and used by the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from cse.encoding.backbone import compile_blocks
from cse.encoding.last_block import FAMILIES
from cse.encoding.overlap import to_device

if TYPE_CHECKING:
    from transformers import Cache, PreTrainedModel

PACKED = "packed"  # transformers' name for the attention of `pack`
PASSES = ("padded", "packed", "compiled")


def read_in(model: PreTrainedModel, passes: str) -> None:
    """Set a model's passes: `padded` (unchanged), `packed`, or `compiled` (packed, with compiled blocks).

    Raises ValueError for any other value, and as `pack` does.
    """
    if passes not in PASSES:
        raise ValueError(f"`passes` is {passes!r}; choose from {', '.join(PASSES)}")
    if passes != "padded":
        pack(model)
    if passes == "compiled":
        compile_blocks(model)


def pack(model: PreTrainedModel) -> None:
    """Make a model attend within rows when it is given a `Packing`; without one it is unchanged.

    Raises ValueError for a model whose blocks are not BERT's.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    family = model.config.model_type
    if family not in FAMILIES:
        raise ValueError(
            f"a {family} model does not support packed rows; use `padded`, or a model of {', '.join(FAMILIES)}"
        )
    # Not compiled: attention has nothing to fuse, and importing torch.compiler takes a second.
    AttentionInterface.register(PACKED, torch.compiler.disable(_attention))
    AttentionMaskInterface.register(PACKED, sdpa_mask)
    model.set_attn_implementation(PACKED)


def is_packed(model: PreTrainedModel) -> bool:
    """True if a model accepts a `Packing`."""
    return model.config._attn_implementation == PACKED


class Parts(NamedTuple):
    """Boundaries of the rows in a packed sequence: (B + 1,) on the device; lengths of the shortest and longest row.

    The lengths are kept on the host, so that reading them does not synchronise with the device.
    """

    offsets: torch.Tensor
    shortest: int
    longest: int

    @classmethod
    def of(cls, lengths: np.ndarray, device: torch.device) -> Parts:
        """Return the boundaries of B rows of `lengths` (B,)."""
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return cls(to_device(offsets, device), int(lengths.min()), int(lengths.max()))

    def nested(self, states: torch.Tensor) -> torch.Tensor:
        """Return (1, heads, T, d / heads) states of a sequence as a nested tensor (B, heads, *, d / heads)."""
        return torch.nested.nested_tensor_from_jagged(
            states[0].transpose(0, 1).contiguous(), self.offsets, min_seqlen=self.shortest, max_seqlen=self.longest
        ).transpose(1, 2)


class Packing:
    """The layout of B rows of `lengths` tokens in one sequence of T tokens, with `prefix` more keys before each row."""

    def __init__(self, lengths: Sequence[int], prefix: int, device: torch.device) -> None:
        counts = np.asarray(lengths)
        there = np.arange(counts.max()) < counts[:, None]
        self.shape = there.shape  # (B, L)
        self.places = to_device(np.flatnonzero(there), device)  # (T,) in the flattened rows
        self.queries, self.keys = Parts.of(counts, device), Parts.of(counts + prefix, device)
        self.single = Parts.of(np.ones_like(counts), device)
        self.keys_of_row = to_device(_keys_of_row(counts, prefix), device)

    def pack(self, rows: torch.Tensor) -> torch.Tensor:
        """Pack padded rows (B, L) into (1, T) tokens."""
        return rows.flatten()[self.places][None]

    def unpack(self, states: torch.Tensor) -> torch.Tensor:
        """Unpack states of the sequence (1, T, d) into (B, L, d), zero at padding."""
        rows = states.new_zeros(self.shape[0] * self.shape[1], states.shape[-1])
        return rows.index_copy_(0, self.places, states[0]).unflatten(0, self.shape)

    def run(
        self,
        blocks: Any,
        embeddings: torch.Tensor,
        positions: torch.Tensor,
        prefix: Cache | None,
        layer: int | None,
        read_at: torch.Tensor | None,
    ) -> list[torch.Tensor]:
        """Return the last states (B, L, d) for `embeddings` (1, T, d), preceded by those of `layer` if given.

        `prefix` has the keys of one row. With `read_at` (B,) the last ones are (B, 1, d), of this token of each row.
        """
        inputs: dict[str, Any] = {"inputs_embeds": embeddings, "position_ids": positions}
        if prefix is not None:
            inputs["past_key_values"] = PackedPrefix(prefix, self)
        if read_at is not None:
            inputs["read_at"] = self.queries.offsets[:-1] + read_at
        output = blocks(**inputs, output_hidden_states=layer is not None, packing=self)
        last = output.last_hidden_state  # (1, T, d), or (1, B, d) where a token of each row is read
        states = [self.unpack(last) if read_at is None else last.transpose(0, 1)]
        return states if layer is None else [self.unpack(output.hidden_states[layer]), *states]

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, single: bool = False) -> torch.Tensor:
        """Return (1, T, heads, d / heads) attention of queries (1, heads, T, d / heads) to the keys of their own row.

        With `single` there is one query per row, so B of them.
        """
        queries = (self.single if single else self.queries).nested(query)
        attended = scaled_dot_product_attention(queries, self.keys.nested(key), self.keys.nested(value))
        return attended.transpose(1, 2).values()[None]


class PackedPrefix:
    """A prefix of one row (`backbone.prefix_cache`), inserted before each row's own keys in every layer."""

    def __init__(self, prefix: Cache, packing: Packing) -> None:
        self.prefix, self.packing = prefix, packing

    def get_seq_length(self) -> int:
        """Return the number of keys of the prefix."""
        return self.prefix.get_seq_length()

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Insert the prefix before each row's keys and values (1, heads, T, d / heads): T + B x P tokens."""
        own: Any = self.prefix.layers[layer]
        return self._before_each(own.keys, keys), self._before_each(own.values, values)

    def _before_each(self, prefix: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        both = torch.cat([prefix.transpose(1, 2), states.transpose(1, 2)], 1)  # (1, P + T, heads, d / heads)
        return both[:, self.packing.keys_of_row].transpose(1, 2)


def _keys_of_row(lengths: np.ndarray, prefix: int) -> np.ndarray:
    """Return (T + B P,) indices into the P + T keys, row after row: those of the prefix, then the row's own."""
    ends = np.cumsum(lengths) + prefix
    own = (np.arange(end - length, end) for end, length in zip(ends, lengths, strict=True))
    return np.concatenate([part for row in own for part in (np.arange(prefix), row)])


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    packing: Packing | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Compute attention (B, L, heads, d / heads) for transformers: within the rows of a `packing`, else `sdpa`."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if packing is None:
        return sdpa_attention_forward(module, query, key, value, mask, **options)
    return packing.attend(query, key, value), None
