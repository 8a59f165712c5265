"""Settings of a pretraining run and its learning-rate schedule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PretrainConfig:
    """One pretraining run. Rows of the mixed `lengths` get equal shares of the steps.

    `bag_weight`: share of the bag-of-words term (`cse.pretraining.batches`); 0 is masked language modelling alone. A
    step's rows go through the model in `accumulate` parts, which changes the memory it needs and not the result.
    """

    vocabulary: int = 12_000
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
    head_start: bool = True
    bag_weight: float = 1.0
    seed: int = 42

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return max(1, self.tokens // self.batch_tokens)


def learning_rate(config: PretrainConfig, step: int) -> float:
    """Linear warm-up, then linear decay to zero at the last step."""
    warm = max(1, round(config.warmup * config.steps))
    return config.learning_rate * min((step + 1) / warm, (config.steps - step) / max(1, config.steps - warm))
