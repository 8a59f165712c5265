"""Prefix models (DCPCSE): attention to the prefix by layer, and vectors without the prefix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cse.analysis.attention import attention_weights, eager_layers, layer_count
from cse.encoder.rows import render
from cse.methods.catalogue import METHODS
from cse.vectors import cosines

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from cse.encoder.encoder import Encoder
    from cse.encoder.torch_encoder import TorchEncoder
    from cse.methods.method import View


class PrefixAttention(NamedTuple):
    """Share of attention on the prefix by layer, averaged over heads: of the `read` token, and the `mean` over tokens.

    `even` is the share under uniform attention over prefix and tokens.
    """

    read: tuple[float, ...]
    mean: tuple[float, ...]
    even: float


def prefix_attention(encoder: TorchEncoder, sentence: str) -> PrefixAttention:
    """Measure a sentence's attention to the prefix. Raises ValueError for a model without a prefix."""
    length = prefix_length(encoder)
    row = encoder.rows_of([sentence], [encoder.views[0][0]])
    seen = [shares[..., :length].sum(-1).mean(0) for shares in attention_weights(encoder, row)]  # (L,) by layer
    read, mean = (tuple(map(float, shares)) for shares in ([s[row.read_at[0]] for s in seen], [s.mean() for s in seen]))
    return PrefixAttention(read, mean, length / (length + len(row.ids)))


def without_prefix(encoder: TorchEncoder, sentences: Sequence[str], layers: Collection[int]) -> np.ndarray:
    """(N, d) float32 vectors of N sentences with the prefix masked in some `layers`, counted from 1.

    In a masked layer no token attends to the prefix. With all layers masked the prefix is removed, so that positions
    start at the sentence: the plain backbone with the model's pooling. Raises ValueError for a model without a prefix,
    and for a layer that it does not have.
    """
    import torch

    length, count = prefix_length(encoder), layer_count(encoder)
    if wrong := sorted(set(layers) - set(range(1, count + 1))):
        raise ValueError(f"{encoder.name} has no layer {wrong[0]}; choose from 1 to {count}")
    if len(set(layers)) == count:
        return _bare(encoder).encode(sentences)

    def hide(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        states, mask = inputs[0], named["attention_mask"]
        hidden = states.new_zeros(1, 1, 1, length + states.shape[1]) if mask is None else mask.clone()
        hidden[..., :length] = torch.finfo(hidden.dtype).min
        return inputs, {**named, "attention_mask": hidden}

    with eager_layers(encoder) as attention:
        hooks = [attention[layer - 1].register_forward_pre_hook(hide, with_kwargs=True) for layer in layers]
        try:
            return encoder.encode(list(sentences))
        finally:
            for hook in hooks:
                hook.remove()


def prefix_length(encoder: TorchEncoder) -> int:
    """The length of a model's prefix. Raises ValueError if it has none."""
    if not encoder.reading.prefix:
        raise ValueError(f"{encoder.name} has no prefix")
    return encoder.reading.prefix


def _bare(encoder: TorchEncoder) -> TorchEncoder:
    """The encoder without its prefix, truncating sentences at the same length."""
    from cse.encoder.torch_encoder import TorchEncoder

    method = encoder.method.replaced(prefix=0)
    bare = TorchEncoder(encoder.model, encoder.tokenizer, method, name=encoder.name, head=encoder.head)
    bare.max_row_length = encoder.max_content + encoder.views[0][0].length
    return bare


class Prototype(NamedTuple):
    """A training `template`, of the positive or negative view, and its cosine with the sentence's own vector."""

    template: str
    positive: bool
    cosine: float


def has_prototypes(encoder: Encoder) -> bool:
    """True if the model was trained with templates drawn from sets."""
    return bool(_sets(encoder))


def prototypes(encoder: Encoder, sentence: str) -> list[Prototype]:
    """A sentence's prototypes, nearest first (ConPVP, section 3.1).

    The vectors are those of the loss, without the training head, which checkpoints do not keep: hidden states at
    [MASK] minus the template's bias. Raises ValueError for a model without prototypes.
    """
    sets = _sets(encoder)
    if not sets:
        raise ValueError(f"{encoder.name} was trained without prototypes")
    drawn = [(template, view == 0) for view, templates in enumerate(sets) for template in templates]
    templates = [encoder.views[0][0], *(render(template, encoder.tokenizer) for template, _ in drawn)]
    spoken, alone = encoder.mask_states(encoder.rows_of([sentence] * len(templates), templates))
    vectors = spoken - alone
    near = cosines(vectors[:1].repeat(len(drawn), 0), vectors[1:])
    compared = (
        Prototype(template.text, positive, float(cosine))
        for (template, positive), cosine in zip(drawn, near, strict=True)
    )
    return sorted(compared, key=lambda prototype: -prototype.cosine)


def _sets(encoder: Encoder) -> tuple[View, ...]:
    """The positive templates and the negative ones, if any.

    A published checkpoint has only its first view; the other views are taken from its method.
    """
    method = encoder.method
    views = method.views if len(method.views) > 1 else getattr(METHODS.get(method.name), "views", ())
    return views[1:] if any(len(view) > 1 for view in views[1:]) else ()
