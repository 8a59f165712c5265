"""The plan of a run before training: token rows of its first texts, parameter counts and steps."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from cse.engines.torch_encoder import TorchEncoder
from cse.training.run import Run
from cse.training.step import step_inputs, step_rows, view_texts

SHOWN_TEXTS = 3


def plan(encoder: TorchEncoder, run: Run) -> dict[str, Any]:
    """The plan of training `encoder` in `run`, in numbers, for JSON.

    `lines` are the first texts in each view, with the tokens that the backbone gets; `settings` are those resolved.
    """
    config = replace(run.config, batch_size=min(SHOWN_TEXTS, len(run.examples)))
    batch = run.examples[list(range(config.batch_size))]
    contents, templates = step_inputs(encoder, batch, config, 0)
    words = encoder.tokenizer.convert_ids_to_tokens
    lines = [
        {"text": text, "tokens": " ".join(words(list(row.ids)))}
        for view in zip(view_texts(encoder, batch), step_rows(encoder, contents, templates, config, 0), strict=True)
        for text, row in zip(*view, strict=True)
    ]
    return {
        "method": encoder.method.name, "views": len(contents), "lines": lines, "examples": len(run.examples),
        "batch_size": run.config.batch_size, "learning_rate": run.config.learning_rate, "steps": run.steps,
        "parameters_total": sum(tensor.numel() for tensor in encoder.parameters()),
        "parameters_learned": sum(tensor.numel() for tensor in encoder.learned(training=True).values()),
        "parameters_stored": sum(tensor.numel() for tensor in encoder.learned().values()),
        "settings": {
            "backbone": encoder.backbone, "supervised": encoder.method.supervised, **asdict(run.config),
            **encoder.method.settings,
        },
    }  # fmt: skip
