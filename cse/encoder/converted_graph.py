"""The graph of any architecture on OpenVINO, converted from the PyTorch model that transformers opens."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING

import openvino as ov
import torch
from torch import nn

from cse.encoder.openvino_graph import compiled
from cse.encoder.stored_backbone import UnsupportedError
from cse.errors import first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EXAMPLE = (2, 5)  # rows and tokens of the inputs that are traced; the graph takes any number


class _States(nn.Module):
    """A model as a function of word embeddings (B, L, d) and a mask (B, L)."""

    def __init__(self, base: nn.Module) -> None:
        super().__init__()
        self.base = base
        self.options = {"use_cache": False} if "use_cache" in signature(base.forward).parameters else {}

    def forward(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the last hidden states (B, L, d)."""
        output: torch.Tensor = self.base(
            inputs_embeds=embeddings, attention_mask=mask, **self.options
        ).last_hidden_state
        return output


def converted_graph(model: PreTrainedModel) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return a function from word embeddings (B, L, d) and a mask (B, L) to the last hidden states (B, L, d).

    `model` is float32, on the CPU. Raises UnsupportedError if OpenVINO cannot convert it.
    """
    mask = torch.ones(EXAMPLE, dtype=torch.long)
    mask[0, -2:] = 0
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tracing says which branches it fixes
            example = (torch.randn(*EXAMPLE, model.get_input_embeddings().weight.shape[1]), mask)
            graph = compiled(ov.convert_model(_States(model.base_model).eval(), example_input=example))
    except Exception as error:  # each operation has errors of its own
        raise UnsupportedError(f"its graph cannot be converted: {first_line(error)}") from error

    def states(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        request = graph.create_infer_request()  # of its own, as threads may call at once
        return torch.from_numpy(request.infer([embeddings.numpy(), mask.numpy()])[0].copy())

    return states
