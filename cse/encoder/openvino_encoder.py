"""The encoder on OpenVINO: CPU inference without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from openvino import CompiledModel, Model

from cse.encoder.encoder import Encoder, Update
from cse.encoder.openvino_graph import INT8, compiled, head_graph, rounded, vectors_graph, words_graph
from cse.encoder.rows import HARD, TokenRows, bias_rows, embedding_means
from cse.encoder.stored_backbone import WORD_EMBEDDINGS, StoredBackbone, float32, head_width, no_words, read_backbone
from cse.methods.method import EMBEDDINGS, Head, Method, Pooling, When

if TYPE_CHECKING:
    from typing_extensions import Self


class OpenVinoEncoder(Encoder):
    """A stored backbone and a method; all threads and copies share the graphs, compiled when they are first needed.

    `prefix` is (P, layers * 2 * d), `slots` (S, d), each None if encoding has none; `head` holds the head's arrays.
    `precision` is f32, bf16 or int8: the blocks' weights as int8 by output, and their inputs quantised by OpenVINO.
    """

    backend = "openvino"

    def __init__(
        self,
        stored: StoredBackbone,
        method: Method,
        *,
        name: str,
        backbone: str = "",
        head: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.stored, self.tokenizer, self.method = stored, stored.tokenizer, method
        self.first_position, self.row_limit = stored.first_position, stored.row_limit
        self.width, reading = int(stored.config["hidden_size"]), method.reading
        self._set_reading(name, backbone, stored.fingerprint)
        numbers = int(stored.config["num_hidden_layers"]) * 2 * self.width
        self.prefix = np.zeros((reading.prefix, numbers), np.float32) if reading.prefix else None
        slots = self.views[0][0].slot_ids
        self.slots = float32(stored.blocks[WORD_EMBEDDINGS][list(slots)]) if slots else None
        self.head: dict[str, np.ndarray] = {}
        if reading.head_when is When.ALWAYS:
            square, row = (np.zeros(shape, np.float32) for shape in ((self.dim, self.dim), self.dim))
            empty = {"0.weight": square, "0.bias": row}
            if reading.head is Head.TRANSFORM:
                empty = {"dense.weight": square, "dense.bias": row, "norm.weight": row.copy(), "norm.bias": row.copy()}
            self.head = dict(head or empty)
            self.dim = head_width(self.head)
        if reading.pooling is Pooling.STATIC_OUTPUT:
            self._check_words()
        self.computing_in("f32")

    def computing_in(self, precision: str) -> Self:
        self.precision, self._compiled, self._lock = precision, dict[object, CompiledModel](), Lock()
        return self

    @classmethod
    def open(
        cls, source: str | Path, method: Method, *, revision: str | None = None,
        weights: Mapping[str, np.ndarray] | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        return cls(read_backbone(source, revision, weights), method, **options)

    def learned_arrays(self) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        if not (self.reading.frozen or self.method.untrained):
            kept = {WORD_EMBEDDINGS} if self.freeze_embeddings else set()
            if not kept:
                self.stored.blocks[WORD_EMBEDDINGS] = self.word_embeddings()  # float32 from now on
            arrays = {f"backbone.{name}": weights for name, weights in self.stored.blocks.items() if name not in kept}
        arrays |= {name: rows for name in ("prefix", "slots") if (rows := getattr(self, name)) is not None}
        head = self.head if self.reading.head_when is When.ALWAYS else {}
        return arrays | {f"head.{name}": array for name, array in head.items()}

    @property
    def parameter_count(self) -> int:
        own = [self.prefix, self.slots, *self.head.values()]
        arrays = [*self.stored.blocks.values(), *self.stored.head.values(), *own]
        return sum(array.size for array in arrays if array is not None)

    def word_embeddings(self) -> np.ndarray:
        return float32(self.stored.blocks[WORD_EMBEDDINGS])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "on_torch": None, "_compiled": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.computing_in(self.precision)

    # -- rows to vectors ----------------------------------------------------------------------------------------

    def vectors_of(self, rows: TokenRows, passes: Sequence[np.ndarray], report: Update) -> np.ndarray:
        if self.reading.pooling in EMBEDDINGS:
            vectors = embedding_means(rows[np.concatenate(passes)], self.stored.blocks[WORD_EMBEDDINGS])
            report(len(vectors))
        else:
            computed = []
            for states in self._states((rows[numbers] for numbers in passes), self.reading.pooling):
                computed.append(states)
                report(len(states))
            vectors = np.concatenate(computed)
        bias = self._bias(rows[np.concatenate(passes)]) if self.reading.denoise is When.ALWAYS else None
        headed = self.reading.head_when is When.ALWAYS
        return self._vectors_from(vectors, bias, self._headed if headed else None)

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        return next(self._states([rows], Pooling.TOKEN)), self._bias(rows)

    def word_logits(self, states: np.ndarray) -> np.ndarray:
        self._check_words()
        return self._answer("words", lambda: words_graph(self.stored), states)

    def _check_words(self) -> None:
        if not self.stored.head:
            raise no_words(self.stored.config["model_type"])

    def _bias(self, rows: TokenRows) -> np.ndarray:
        """Return (B, d) states at the mask of each row's template alone, for a sentence of its length (PromptBERT 4.2).

        Distinct (template, length) are computed once.
        """
        biases, numbers = rows.biases()
        return next(self._states([bias_rows(biases, self.reading.specials_in_bias)], Pooling.TOKEN))[numbers]

    def _states(self, passes: Iterable[TokenRows], pooling: Pooling) -> Iterator[np.ndarray]:
        """Yield the (B, d) pooled states of the rows of each pass."""
        request = self._graph(pooling, lambda: self._vectors_graph(pooling)).create_infer_request()
        for rows in passes:
            yield request.infer(self._inputs(rows, pooling), share_inputs=True)[0].copy()

    def _vectors_graph(self, pooling: Pooling) -> Model:
        stored: Any = self.stored
        if self.precision == INT8:  # the matrices of its blocks
            blocks = {
                name: rounded(array) if name.startswith("encoder.") and array.ndim == 2 else array
                for name, array in stored.blocks.items()
            }
            stored = replace(stored, blocks=blocks)
        return vectors_graph(stored, pooling, self.prefix)

    def _inputs(self, rows: TokenRows, pooling: Pooling) -> list[np.ndarray]:
        """Return word embeddings (B, L, d), positions, mask and what a mean reads (B, L), padded, and the token that is
        read (B,).
        """
        first = self.first_position + self.reading.prefix
        (ids, slots, positions, mask, pooled), _ = rows.tables(self.tokenizer.pad_token_id, first)
        distinct, numbers = np.unique(ids, return_inverse=True)  # half precision is slow to convert
        words = float32(self.stored.blocks[WORD_EMBEDDINGS][distinct])[numbers.reshape(ids.shape)]
        if self.slots is not None:
            words[slots != HARD] = self.slots[slots[slots != HARD]]
        if pooling is Pooling.WEIGHTED_MEAN:
            pooled = pooled * np.arange(1, pooled.shape[1] + 1)
        read_at = rows.sizes - 1 if pooling is Pooling.LAST else rows.read_at
        read = mask.astype(np.float32), pooled.astype(np.float32), read_at.astype(np.int32)
        return [words, positions.astype(np.int32), *read]

    def _headed(self, states: np.ndarray) -> np.ndarray:
        layers = self.reading.head_layers
        return self._answer(("head", *layers), lambda: head_graph(layers, self.head, self.stored.eps), states)

    def _answer(self, key: object, make: Callable[[], Model], states: np.ndarray) -> np.ndarray:
        return self._graph(key, make).create_infer_request().infer([states])[0].copy()

    def _graph(self, key: object, make: Callable[[], Model]) -> CompiledModel:
        """Return a compiled graph, made by the first thread that needs it."""
        with self._lock:
            if key not in self._compiled:
                self._compiled[key] = compiled(make(), self.precision)
            return self._compiled[key]
