"""The encoder on OpenVINO: CPU inference without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.encoder.encoder import Encoder
from cse.encoder.openvino_graph import INT8, Graphs
from cse.encoder.protocol import Update
from cse.encoder.rows import TokenRows, TokenTemplate, bias_rows, embedding_means, rendered
from cse.encoder.stored_backbone import WORD_EMBEDDINGS, StoredBackbone, float32, head_width, read_backbone
from cse.errors import ArtefactError
from cse.methods.method import EMBEDDINGS, Head, Method, Pooling, When

if TYPE_CHECKING:
    from typing_extensions import Self


class OpenVinoEncoder(Encoder):
    """A stored backbone and a method; `graphs` computes.

    `prefix` is (P, layers * 2 * d), `slots` (S, d), `head` the arrays of the head; each is None if encoding has none.
    """

    backend = "openvino"
    device = "cpu"

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
        reading = method.reading
        self.views = rendered(method, self.tokenizer)
        self.width = int(stored.config["hidden_size"])
        self.dim = reading.width(self.width)
        if reading.prefix >= self.row_limit:
            raise ValueError(f"{method.name}: its prefix ({reading.prefix:,}) leaves no position for the sentence")
        numbers = int(stored.config["num_hidden_layers"]) * 2 * self.width
        self.prefix = np.zeros((reading.prefix, numbers), np.float32) if reading.prefix else None
        slots = self.views[0][0].slot_ids
        self.slots = float32(stored.blocks[WORD_EMBEDDINGS][list(slots)]) if slots else None
        self._set_reading(name, backbone, stored.fingerprint)
        self.head = None
        if reading.head_when is When.ALWAYS:
            square, row = (np.zeros(shape, np.float32) for shape in ((self.dim, self.dim), self.dim))
            empty = {"0.weight": square, "0.bias": row}
            if reading.head is Head.TRANSFORM:
                empty = {"dense.weight": square, "dense.bias": row, "norm.weight": row.copy(), "norm.bias": row.copy()}
            self.head = dict(head or empty)
            self.dim = head_width(self.head)
        if reading.pooling is Pooling.STATIC_OUTPUT:
            self._check_words()
        self.freeze_embeddings = False
        self.graphs = self._new_graphs()
        self._biases: dict[tuple[TokenTemplate, int], np.ndarray] = {}

    def _new_graphs(self, precision: str = "f32") -> Graphs:
        return Graphs(self.stored, self.prefix, self.slots, self.head or {}, precision)

    @classmethod
    def open(
        cls, source: str | Path, method: Method, *, revision: str | None = None,
        weights: Mapping[str, np.ndarray] | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Open the backbone in a folder or on the hub, with the arrays of its head."""
        return cls(read_backbone(source, revision, weights), method, **options)

    def to(self, device: Any) -> Self:
        """Return the encoder. Raises ValueError for any device but the CPU."""
        if str(device) != "cpu":
            raise ValueError(
                f"`device` is {str(device)!r}, but OpenVINO runs on the CPU; open the model with `backend` torch"
            )
        return self

    def bfloat16(self) -> Self:
        """Return the encoder, from now on computing in bfloat16 where the processor can; its vectors stay float32."""
        self.graphs, self._biases = self._new_graphs("bf16"), {}
        return self

    def int8(self) -> Self:
        """Return the encoder, from now on with weights and states of its blocks as int8; its vectors stay float32."""
        self.graphs, self._biases = self._new_graphs(INT8), {}
        return self

    def select_learned(self, freeze_embeddings: bool = False) -> None:
        """Leave the word embeddings out of `learned_arrays` with `freeze_embeddings`."""
        self.freeze_embeddings = freeze_embeddings

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return what the method learned and encoding depends on, by the names of a checkpoint.

        The arrays are those of the encoder: to write into them sets its weights, until its first graph is compiled.
        """
        arrays: dict[str, np.ndarray] = {}
        if not (self.reading.frozen or self.method.untrained):
            kept = {WORD_EMBEDDINGS} if self.freeze_embeddings else set()
            if not kept:
                self.stored.blocks[WORD_EMBEDDINGS] = self.word_embeddings()  # float32 from now on
            arrays = {f"backbone.{name}": weights for name, weights in self.stored.blocks.items() if name not in kept}
        arrays |= {name: rows for name in ("prefix", "slots") if (rows := getattr(self, name)) is not None}
        return arrays | {f"head.{name}": array for name, array in self._applied_head().items()}

    @property
    def parameter_count(self) -> int:
        """The number of parameters that encoding and predicting tokens depend on."""
        own = [self.prefix, self.slots, *(self.head or {}).values()]
        arrays = [*self.stored.blocks.values(), *self.stored.head.values(), *own]
        return sum(array.size for array in arrays if array is not None)

    def word_embeddings(self) -> np.ndarray:
        """Return the (V, d) float32 word embeddings."""
        return float32(self.stored.blocks[WORD_EMBEDDINGS])

    def _applied_head(self) -> Mapping[str, np.ndarray]:
        return self.head if self.head is not None and self.reading.head_when is When.ALWAYS else {}

    def forget_biases(self) -> None:
        """Clear the cached template biases, but not those of a shallow copy of this encoder."""
        self._biases = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle or a deep copy, without what is compiled."""
        return {**self.__dict__, "graphs": self.graphs.precision, "_biases": {}, "on_torch": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.graphs = self._new_graphs(state["graphs"])

    def __copy__(self) -> Self:
        """Return another encoder that shares weights and graphs, with its own method and settings."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__, _biases={}, reference=None, on_torch=None)
        return copied

    # -- rows to vectors ----------------------------------------------------------------------------------------

    def vectors_of(self, rows: TokenRows, passes: Sequence[np.ndarray], report: Update) -> np.ndarray:
        """Return (N, d) float32 vectors of rows, in the order of `passes`, their numbers."""
        if self.reading.pooling in EMBEDDINGS:
            vectors = embedding_means(rows[np.concatenate(passes)], self.stored.blocks[WORD_EMBEDDINGS])
            report(len(vectors))
        else:
            computed = []
            for states in self.graphs.states((rows[numbers] for numbers in passes), self.reading.pooling):
                computed.append(states)
                report(len(states))
            vectors = np.concatenate(computed)
        bias = self._bias(rows[np.concatenate(passes)]) if self.reading.denoise is When.ALWAYS else None
        head = partial(self.graphs.headed, layers=self.reading.head_layers) if self._applied_head() else None
        return self._vectors_from(vectors, bias, head)

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        """Return (B, d) states at the mask of rows, and of their templates alone."""
        return next(self.graphs.states([rows], Pooling.TOKEN)), self._bias(rows)

    def word_logits(self, states: np.ndarray) -> np.ndarray:
        """Return (B, V) vocabulary logits of states (B, d). Raises ArtefactError for a model without that head."""
        self._check_words()
        return self.graphs.word_logits(states)

    def _check_words(self) -> None:
        if not self.stored.head:
            raise ArtefactError(
                f"this {self.stored.config['model_type']} model has no masked-language-model head, which words at "
                "[MASK] come from; give the model it was made from"
            )

    def _bias(self, rows: TokenRows) -> np.ndarray:
        """Return (B, d) states at the mask of each row's template alone, for a sentence of its length (PromptBERT 4.2).

        Distinct (template, length) are computed once.
        """
        (biases, numbers), known = rows.biases(), self._biases
        if new := [bias for bias in biases if bias not in known]:
            alone = bias_rows(new, self.reading.specials_in_bias)
            known.update(zip(new, next(self.graphs.states([alone], Pooling.TOKEN)), strict=True))
        return np.stack([known[bias] for bias in biases])[numbers]
