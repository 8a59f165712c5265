"""Attention by layer and head, prefix models (DCPCSE) with and without their prefix, and prototypes (ConPVP)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from cse.encoder.rows import render
from cse.errors import ArtefactError
from cse.methods.catalogue import METHODS
from cse.methods.method import Pooling
from cse.vectors import cosines

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import nn

    from cse.encoder.encoder import Encoder
    from cse.encoder.rows import TokenRows
    from cse.encoder.torch_encoder import TorchEncoder
    from cse.methods.method import View


class PrefixAttention(NamedTuple):
    """Share of attention on the prefix by layer, averaged over heads: of what is `read`, and the `mean` over tokens.

    What is read is a token, or all tokens where the vector is their mean.
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
    mean = tuple(float(shares.mean()) for shares in seen)
    one = encoder.reading.pooling is Pooling.TOKEN
    read = tuple(float(shares[row.read_at[0]]) for shares in seen) if one else mean
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
        from cse.encoder.torch_encoder import TorchEncoder

        method = encoder.method.replaced(prefix=0)
        bare = TorchEncoder(encoder.model, encoder.tokenizer, method, name=encoder.name, head=encoder.head)
        bare.max_row_length = encoder.max_content + encoder.views[0][0].length  # truncates at the same length
        return bare.encode(sentences)

    def hide(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        states, mask = inputs[0], named["attention_mask"]
        hidden = states.new_zeros(1, 1, 1, length + states.shape[1]) if mask is None else mask.clone()
        hidden[..., :length] = torch.finfo(hidden.dtype).min
        return inputs, {**named, "attention_mask": hidden}

    with eager_layers(encoder) as attention, ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(attention[layer - 1].register_forward_pre_hook(hide, with_kwargs=True))
        return encoder.encode(list(sentences))


def prefix_length(encoder: TorchEncoder) -> int:
    """The length of a model's prefix. Raises ValueError if it has none."""
    if not encoder.reading.prefix:
        raise ValueError(f"{encoder.name} has no prefix")
    return encoder.reading.prefix


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


LEARNED_TOKEN = "[P]"  # a learned token of a template


class HeadAttention(NamedTuple):
    """Attention of the token that a vector is read from: `shares` (layers, heads, T) float32 on T `tokens`.

    The shares of a head add up to 1. `read` names the token, None if the vector is the mean of all tokens; then the
    shares are their means. The first `prefix` of the tokens are the learned ones of every layer.
    """

    read: str | None
    tokens: tuple[str, ...]
    prefix: int
    shares: np.ndarray


def head_attention(encoder: TorchEncoder, sentence: str) -> HeadAttention:
    """Measure a sentence's attention in the encoder's template, by layer and head."""
    import torch

    template, length = encoder.views[0][0], encoder.reading.prefix
    row = encoder.rows_of([sentence], [template])
    words = encoder.tokenizer.convert_ids_to_tokens(row.ids.tolist())
    texts = [word if slot < 0 else LEARNED_TOKEN for word, slot in zip(words, row.tokens[1], strict=True)]
    weights = torch.stack(attention_weights(encoder, row))  # (layers, heads, L, P + L)
    one, read_at = encoder.reading.pooling is Pooling.TOKEN, int(row.read_at[0])
    shares = weights[:, :, read_at] if one else weights.mean(2)
    tokens = (*(f"prefix {number}" for number in range(1, length + 1)), *texts)
    return HeadAttention(texts[read_at] if one else None, tokens, length, shares.float().cpu().numpy())


def attention_weights(encoder: TorchEncoder, row: TokenRows) -> list[torch.Tensor]:
    """Return each layer's attention (heads, L, P + L) on a prefix of length P, which may be 0, and the L tokens."""
    seen: list[torch.Tensor] = []

    def watch(module: nn.Module, inputs: Any, output: tuple[torch.Tensor, torch.Tensor]) -> None:
        seen.append(output[1][0])

    with eager_layers(encoder) as layers, ExitStack() as hooks, encoder.inference():
        for layer in layers:
            hooks.enter_context(layer.register_forward_hook(watch))
        encoder.hidden(row)
    return seen


@contextmanager
def eager_layers(encoder: TorchEncoder) -> Iterator[list[nn.Module]]:
    """Yield the layers' attention modules with eager attention, as fused attention returns no weights.

    Raises ArtefactError for a family whose layers have no such modules.
    """
    model = encoder.model
    modules = [module for module in model.base_model.modules() if getattr(module, "layer_idx", None) is not None]
    if len(modules) != layer_count(encoder):
        raise ArtefactError(f"{encoder.name}: the attention of a {model.config.model_type} model cannot be read")
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield modules
    finally:
        model.set_attn_implementation(before)


def layer_count(encoder: TorchEncoder) -> int:
    """The number of layers of a model's backbone."""
    return int(encoder.model.config.num_hidden_layers)
