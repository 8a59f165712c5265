"""Compiled OpenVINO graphs of a model, and their inputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.backbones.stored_backbone import WORDS, StoredBackbone, float32
from cse.encoding.rows import HARD, Row, padded, pooled_mask, token_mask
from cse.methods.method import Head, Pooling

if TYPE_CHECKING:
    from openvino import CompiledModel

INT8 = "int8"
SHAPES = 64  # of batches, whose kernels are kept; more cost memory and hardly any time
GROUP = 32  # numbers of a state that OpenVINO quantises together


@dataclass
class Graphs:
    """The graphs of a backbone with learned arrays, compiled when they are first needed and shared by all threads.

    `prefix`, `slots` and `head` are those of `OpenVinoEncoder`. `precision` is f32, bf16
    or int8: the blocks' weights as int8 by output, and their inputs quantised by OpenVINO as it computes.
    """

    stored: StoredBackbone
    prefix: np.ndarray | None
    slots: np.ndarray | None
    head: Mapping[str, np.ndarray]
    precision: str = "f32"
    _compiled: dict[object, CompiledModel] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock)

    def states(self, passes: Iterable[Sequence[Row]], pooling: Pooling) -> Iterator[np.ndarray]:
        """Yield the (B, d) pooled states of the rows of each pass."""
        from cse.engines.openvino_layers import rounded, vectors_graph

        stored = rounded(self.stored) if self.precision == INT8 else self.stored
        model = self._graph(pooling, lambda: vectors_graph(stored, pooling, self.prefix))
        request = model.create_infer_request()
        for rows in passes:
            yield request.infer(self._inputs(rows))[0].copy()

    def headed(self, states: np.ndarray, kind: Head) -> np.ndarray:
        """Return (B, m) states (B, d) after the head."""
        from cse.engines.openvino_layers import head_graph

        model = self._graph(kind, lambda: head_graph(kind, self.head, self.stored.eps))
        return model.create_infer_request().infer([states])[0].copy()

    def word_logits(self, states: np.ndarray) -> np.ndarray:
        """Return (B, V) vocabulary logits of states (B, d)."""
        from cse.engines.openvino_layers import words_graph

        model = self._graph("words", lambda: words_graph(self.stored))
        return model.create_infer_request().infer([states])[0].copy()

    def _inputs(self, rows: Sequence[Row]) -> list[np.ndarray]:
        """Return word embeddings (B, L, d), positions, mask and what a mean reads (B, L), padded, and the token that is
        read (B,).
        """
        mask = token_mask(rows)
        ids = padded((row.ids for row in rows), mask, self.stored.tokenizer.pad_token_id)
        words = float32(self.stored.blocks[WORDS][ids])
        if self.slots is not None:
            slots = padded((row.slots for row in rows), mask, HARD)
            words[slots != HARD] = self.slots[slots[slots != HARD]]
        first = self.stored.first_position + (0 if self.prefix is None else len(self.prefix))
        positions = padded((row.positions for row in rows), mask, 0) + first
        read = np.array([row.pool_at for row in rows], np.int32)
        pooled = pooled_mask(rows, mask).astype(np.float32)
        return [words, positions.astype(np.int32), mask.astype(np.float32), pooled, read]

    def _graph(self, key: object, make: Callable[[], Any]) -> CompiledModel:
        """Return a compiled graph, made by the first thread that needs it."""
        with self._lock:
            if key not in self._compiled:
                self._compiled[key] = _compiled(make(), self.precision)
            return self._compiled[key]


@cache
def _core() -> Any:
    from openvino import Core

    return Core()


def _compiled(model: Any, precision: str) -> CompiledModel:
    """Compile a graph for the CPU, with as many threads as OMP_NUM_THREADS says, which PyTorch reads too."""
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32" if precision == INT8 else precision,
        "CPU_RUNTIME_CACHE_CAPACITY": str(SHAPES),
        "ENABLE_CPU_PINNING": False,  # two processes with a thread each would share the first core
    }
    if precision == INT8:
        settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = str(GROUP)
    if threads := os.environ.get("OMP_NUM_THREADS", ""):
        settings["INFERENCE_NUM_THREADS"] = threads.partition(",")[0]
    return _core().compile_model(model, "CPU", settings)
