"""The interface of an engine, PyTorch or OpenVINO, which computes an encoder's vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Self

    from cse.encoder.rows import TokenRows, TokenTemplate
    from cse.methods.method import Method, Reading

Update = Callable[[int], object]


class Engine:
    """A backbone with what a method learned. `views` are the method's templates, `dim` is the vectors' dimension."""

    backend: str
    name: str
    method: Method
    tokenizer: Any
    device: Any
    dim: int
    views: tuple[tuple[TokenTemplate, ...], ...]

    @property
    def reading(self) -> Reading:
        """How the vectors are read."""
        return self.method.reading

    @property
    def fingerprint(self) -> str:
        """Hex digits that change with every setting and parameter that vectors depend on."""
        raise NotImplementedError

    @property
    def max_content(self) -> int:
        """Maximum tokens of a sentence, without its template."""
        raise NotImplementedError

    def to(self, device: Any) -> Any:
        """Move the model to a device. Raises ValueError if it cannot run there."""
        raise NotImplementedError

    @property
    def first_position(self) -> int:
        """The position id of a row's first token."""
        raise NotImplementedError

    @property
    def row_limit(self) -> int:
        """The maximum row length in tokens, by the model's positions."""
        raise NotImplementedError

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return the float32 arrays that the method learned, by the names of a checkpoint."""
        raise NotImplementedError

    def word_embeddings(self) -> np.ndarray:
        """Return the (V, d) float32 word embeddings."""
        raise NotImplementedError

    def vectors_of(self, rows: TokenRows, passes: Sequence[np.ndarray], report: Update) -> np.ndarray:
        """Return (N, d) float32 vectors of rows, in the order of `passes`, their numbers."""
        raise NotImplementedError

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        """Return (B, d) states at the mask of rows, and of their templates alone."""
        raise NotImplementedError

    def word_logits(self, states: np.ndarray) -> np.ndarray:
        """Return (B, V) vocabulary logits of states (B, d). Raises ArtefactError for a model without that head."""
        raise NotImplementedError

    @property
    def parameter_count(self) -> int:
        """The number of parameters that encoding and predicting tokens depend on."""
        raise NotImplementedError

    @classmethod
    def open(
        cls,
        source: str | Path,
        method: Method,
        *,
        name: str,
        backbone: str,
        revision: str | None = None,
        weights: Mapping[str, np.ndarray] | None = None,
        head: Mapping[str, np.ndarray] | None = None,
    ) -> Self:
        """Open the backbone in a folder or on the hub; `weights` and `head` replace the stored and the new ones."""
        read = cls.read_backbone(source, revision, weights)
        return cls.on_backbone(read, method, name=name, backbone=backbone, head=head)

    @staticmethod
    def read_backbone(
        name: str | Path, revision: str | None = None, weights: Mapping[str, np.ndarray] | None = None
    ) -> Any:
        """Read a backbone for `on_backbone`. OpenVINO raises UnsupportedError for a model that needs PyTorch."""
        raise NotImplementedError

    @classmethod
    def on_backbone(
        cls, read: Any, method: Method, *, name: str, backbone: str, head: Mapping[str, np.ndarray] | None
    ) -> Self:
        """Return an encoder on a backbone that was read, with the arrays of its head."""
        raise NotImplementedError

    def select_learned(self, freeze_embeddings: bool = False) -> None:
        """Choose what the method learned; with `freeze_embeddings` the word embeddings do not belong to it."""
        raise NotImplementedError

    def bfloat16(self) -> Self:
        """Return the encoder, from now on computing in bfloat16; its vectors stay float32."""
        raise NotImplementedError

    def int8(self) -> Self:
        """Return the encoder, from now on computing with 8-bit integers. Raises ValueError if its engine cannot."""
        raise ValueError(f"{self.name}: `precision` int8 needs OpenVINO; open the model with `backend` openvino")

    def forget_biases(self) -> None:
        """Clear the cached template biases, but not those of a shallow copy of this encoder."""
        raise NotImplementedError
