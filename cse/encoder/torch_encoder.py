"""The encoder on PyTorch: for training, for GPUs, and for looking inside a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from cse.encoder.backbone import (
    as_arrays,
    backbone_tensors,
    compiled_run,
    fingerprint,
    first_position,
    load_backbone,
    mlm_head,
    row_limit,
)
from cse.encoder.devices import device_of
from cse.encoder.encoder import Encoder
from cse.encoder.prompted_backbone import PromptedBackbone, head_module, new_head
from cse.encoder.protocol import Update
from cse.encoder.rows import TokenRows
from cse.encoder.stored_backbone import head_width
from cse.methods.method import Method, When

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import Self


# Compiling a model of base size takes an H100 20 to 40 s, and so do about 250,000 sentences that are not compiled: then
# a list whose length nobody knows takes at most twice the time of the better choice. Short lists do not count or
# compile, so that nobody waits for it at a page.
COMPILED_AFTER, LONG_LIST, COMPILED_ON = 250_000, 4_096, ("cuda",)


class TorchEncoder(PromptedBackbone, Encoder):
    """A backbone and a method. Train mode applies the method's training steps, eval mode those of encoding.

    `head` replaces a newly initialised head.
    """

    backend = "torch"
    __repr__ = Encoder.__repr__  # not the modules, as of any nn.Module

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        method: Method,
        *,
        name: str,
        backbone: str = "",
        head: nn.Module | None = None,
    ) -> None:
        PromptedBackbone.__init__(self, model, tokenizer, method)
        self.freeze_embeddings = False
        self.encoded = 0  # sentences of long lists on a GPU
        self.first_position, self.row_limit = first_position(model), row_limit(model)
        self._set_reading(name, backbone, fingerprint(model, tokenizer))
        self.head = head
        if head is None and method.reading.head_when is not When.NEVER:
            self.head = new_head(model, method.reading.head, self.dim)
        self.select_learned()
        self.eval()

    @classmethod
    def open(
        cls, source: str | Path, method: Method, *, revision: str | None = None,
        weights: Mapping[str, np.ndarray] | None = None, head: Mapping[str, np.ndarray] | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Open the backbone in a folder or on the hub, with the arrays of its head."""
        model, tokenizer = load_backbone(source, revision, weights)
        module = None if head is None else head_module(method.reading.head, head, model.config, method.reading.layers)
        encoder = cls(model, tokenizer, method, head=module, **options)
        if head and method.reading.head_when is When.ALWAYS:
            encoder.dim = head_width(head)
        return encoder

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or cast the model, as PyTorch's modules do. Raises ValueError for a device that is not available."""
        if args and isinstance(args[0], str | int | torch.device):
            args = (device_of(args[0]), *args[1:])
        return nn.Module.to(self, *args, **kwargs)

    # -- learned parameters -------------------------------------------------------------------------------------

    def select_learned(self, freeze_embeddings: bool = False) -> None:
        """Enable gradients for the parameters that the method learns, and for no others."""
        self.freeze_embeddings = freeze_embeddings
        learned = {id(tensor) for tensor in self.learned(training=True).values()}
        for tensor in self.parameters():
            tensor.requires_grad_(id(tensor) in learned)

    def learned(self, training: bool = False) -> dict[str, nn.Parameter]:
        """Return the method's parameters by name: those of a checkpoint; if `training`, also a training-only head."""
        parameters: dict[str, nn.Parameter] = {}
        if not (self.reading.frozen or self.method.untrained):
            words = self.model.get_input_embeddings().weight
            for name, tensor in backbone_tensors(self.model).items():
                if not (self.freeze_embeddings and tensor is words):
                    parameters[name] = tensor
        parameters |= {name: tensor for name in ("prefix", "slots") if (tensor := getattr(self, name)) is not None}
        if not self.method.untrained and (training or self.reading.head_when is When.ALWAYS):
            parameters |= self._head_parameters()
        return parameters

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return what encoding depends on of `learned`, and its head, as float32 arrays.

        On a CPU float32 parameters share their memory with the arrays.
        """
        return as_arrays(self.learned() | (self._head_parameters() if self.reading.head_when is When.ALWAYS else {}))

    @property
    def parameter_count(self) -> int:
        """The number of parameters that encoding and predicting tokens depend on."""
        head = {} if self.reading.head_when is When.ALWAYS else self._head_parameters()
        return sum(tensor.numel() for tensor in self.parameters()) - sum(tensor.numel() for tensor in head.values())

    def word_embeddings(self) -> np.ndarray:
        """Return the (V, d) float32 word embeddings."""
        return as_arrays({"words": self.model.get_input_embeddings().weight})["words"]

    def _head_parameters(self) -> dict[str, nn.Parameter]:
        return {} if self.head is None else dict(self.head.named_parameters(prefix="head"))

    # -- text to vectors ----------------------------------------------------------------------------------------

    def forward(self, rows: TokenRows) -> torch.Tensor:
        """Return (B, d) float32 vectors of rows."""
        hidden = self.grouped(rows.sizes.tolist(), lambda part: self.pool(rows[part]))
        bias = self.bias(rows) if self._applies(self.reading.denoise) else None
        headed = self.head is not None and self._applies(self.reading.head_when)
        return self._vectors_from(hidden, bias, self._headed if headed else None)

    def _headed(self, hidden: torch.Tensor) -> torch.Tensor:
        head: Any = self.head
        return head(hidden.to(next(head.parameters()).dtype)).float()

    def _applies(self, when: When) -> bool:
        return when is When.ALWAYS or (when is When.TRAINING and self.training)

    def vectors_of(self, rows: TokenRows, passes: Sequence[np.ndarray], report: Update) -> np.ndarray:
        """Return (N, d) float32 vectors of rows, in the order of `passes`, their numbers."""
        outputs = []
        if self.device.type in COMPILED_ON and len(rows) >= LONG_LIST and False not in self.compiled:
            self.encoded += len(rows)
            if self.encoded > COMPILED_AFTER:
                self.compiled[False] = compiled_run(dynamic=True, required=False)
        with self.inference():
            for numbers in passes:
                # The class's forward: during training, accelerate wraps the instance's in mixed precision.
                outputs.append(TorchEncoder.forward(self, rows[numbers]).float())
                report(len(numbers))
        return torch.cat(outputs).cpu().numpy()  # at the end: a copy after each pass would make a GPU wait for the next

    # -- vectors to words ---------------------------------------------------------------------------------------

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        """Return (B, d) states at the mask of rows, and of their templates alone."""
        with self.inference():
            spoken, alone = self.read(rows), self.bias(rows)
        return spoken.float().cpu().numpy(), alone.float().cpu().numpy()

    def word_logits(self, states: np.ndarray) -> np.ndarray:
        """Return (B, V) vocabulary logits of states (B, d). Raises ArtefactError for a model without that head."""
        head = mlm_head(self.model)
        with self.inference():
            return head(torch.from_numpy(states).to(self.device, self.model.dtype)).float().cpu().numpy()
