"""Export encoders as ONNX graphs: token ids and mask in, vector out, with template, prefix and head inside."""

from __future__ import annotations

import copy
import importlib.util
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from cse.backbones.backbone import first_position, run_behind
from cse.engines.torch_encoder import TorchEncoder
from cse.models.pipeline_writer import write_tokenizer
from cse.models.plain import PlainModel, ReadAt, plain_model
from cse.publishing.export_files import write_record
from cse.versions import check_versions

NAME, FILE = "onnx", "model.onnx"
NEEDED = "onnx"
OPSET = 18
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
SAMPLE = ("a short one", "a sentence that is a little longer than the first")  # two lengths, so that one is padded


class Graph(torch.nn.Module):
    """The module to trace: (B, L) ids and mask to (B, d) vectors."""

    def __init__(self, plain: PlainModel) -> None:
        super().__init__()
        encoder = plain.encoder
        self.read_at, self.mask_id = plain.read_at, plain.mask_id
        self.base: Any = copy.deepcopy(encoder.model.base_model)
        self.base.set_input_embeddings(torch.nn.Embedding.from_pretrained(plain.tensors[plain.words]))
        self.head, self.prefix = copy.deepcopy(plain.head), copy.deepcopy(encoder.prefix)
        self.normalised = encoder.reading.normalised
        self.first = first_position(encoder.model) + encoder.reading.prefix

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """(B, d) float32 vectors."""
        positions = torch.arange(input_ids.shape[1])[None] + self.first
        run = partial(self.base, attention_mask=attention_mask)
        if self.prefix is not None:
            run = partial(run_behind, self.base, self.prefix.expand(input_ids.shape[0], -1, -1), attention_mask)
        states = run(input_ids=input_ids, position_ids=positions).last_hidden_state
        pooled = states[:, 0] if self.read_at is ReadAt.FIRST else self._weighted(states, input_ids, attention_mask)
        vectors = pooled if self.head is None else self.head(pooled)
        return torch.nn.functional.normalize(vectors) if self.normalised else vectors

    def _weighted(self, states: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights = (ids == self.mask_id) if self.read_at is ReadAt.MASK else mask
        weights = weights[..., None].to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)


def fill(encoder: TorchEncoder, target: Path) -> None:
    """Write an encoder to an empty folder. Raises ValueError for an unsupported encoder, or without onnx."""
    if importlib.util.find_spec(NEEDED) is None:
        raise ValueError(f"`to` onnx needs the package {NEEDED}; pip install {NEEDED}")
    check_versions(NEEDED)
    if not encoder.reading.prompt_pooled:
        raise ValueError(
            f"{encoder.name} leaves prompts out of its pooling, which a graph cannot; export to another form"
        )
    plain = plain_model(encoder)
    write_tokenizer(target, encoder, plain.tokenizer)
    template = encoder.views[0][0]
    rows = [torch.tensor(template.row(ids).ids) for ids in encoder.tokenise(SAMPLE, [template] * len(SAMPLE))]
    ids = pad_sequence(rows, batch_first=True, padding_value=encoder.tokenizer.pad_token_id)
    mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    graph = Graph(plain).eval().cpu()
    axes = {name: {0: "sentences", 1: "tokens"} for name in INPUTS} | {OUTPUT: {0: "sentences"}}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about tracing; the tests compare the result
        torch.onnx.export(
            graph, (ids, mask), str(target / FILE), input_names=list(INPUTS), output_names=[OUTPUT],
            dynamic_axes=axes, opset_version=OPSET, dynamo=False,  # tracing: 15 times faster, without onnxscript
        )  # fmt: skip
    write_record(target, NAME, encoder, spaced=plain.spaced, slots=plain.slots)
