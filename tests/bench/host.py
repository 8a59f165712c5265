"""The host's part of encoding and of training steps: tokens and rows, without the passes through the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

import cse
from cse.encoder.rows import TokenRows
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.method import When
from cse.methods.presets import backbone_key, preset
from cse.training.step import step_data
from cse.training.tokens import TokenisedTexts
from tests.bench.timing import Clock, beside_first

TOKENIZER, ENCODE, TOKENS = "tokenizer", "encode", "tokens of"


class PassesLeftOut(TorchEncoder):
    """An encoder whose passes through the model get their inputs and return zeros."""

    def _run(self, rows: TokenRows, layers: tuple[int, ...] = (-1,), **read_at: torch.Tensor) -> Any:
        (ids, *_, pooled), _ = self._collate(rows)
        states = torch.zeros(len(rows), 1 if read_at else ids.shape[1], self.dim)
        return states, pooled, states[:, 0]


def measure_host(
    texts: list[str], model: str, methods: Sequence[str], batch_size: int, rounds: int, clock: Clock
) -> dict[str, dict[str, Any]]:
    """The microseconds for a sentence of each work, and how many `times` those of the tokenizer's batch call they are.

    Works are `encode` of texts by static embeddings, which has no layers, the token ids that a method's run makes of
    them once, and its steps.
    """
    static, backbone = cse.load(model, "static"), cse.load(model, "cls", backend="torch")
    assert isinstance(backbone, TorchEncoder)
    backend = static.tokenizer.backend_tokenizer
    works: dict[str, Callable[[], object]] = {
        TOKENIZER: partial(backend.encode_batch, texts, add_special_tokens=False),
        ENCODE: partial(static.encode, texts),
    }
    for name in methods:
        method, config = preset(name, backbone_key(backbone.model.config.model_type, backbone.dim), False)
        encoder = PassesLeftOut(backbone.model, backbone.tokenizer, method, name=name)
        works[f"{TOKENS} {name}"] = partial(TokenisedTexts.of, encoder, {"0": texts}, config)
        tokens = TokenisedTexts.of(encoder, {"0": texts}, config)
        works[name] = partial(_steps, encoder, tokens, batch_size, config)
    figures = beside_first(works, len(texts), rounds, clock)
    return {
        name: {"microseconds": 1000 * work["milliseconds"], "times": work["times"]} for name, work in figures.items()
    }


def _steps(encoder: TorchEncoder, texts: TokenisedTexts, batch_size: int, config: Any) -> None:
    encoder.train()
    for step, start in enumerate(range(0, texts.count, batch_size)):
        batch = replace(texts, numbers=texts.numbers[start : start + batch_size])
        rows = step_data(encoder, batch, config, step).rows
        encoder.pool(rows)
        if encoder.reading.denoise is not When.NEVER:
            encoder.bias(rows)
