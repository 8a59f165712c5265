"""Masked-language-model pretraining of a small BERT on text files, on a laptop CPU or a GPU.

Text is tokenised once into a flat memory-mapped array. A row starts at a sentence and runs over the following ones to
its full length, so nothing is padded; lengths are mixed because the models encode short texts.
`cse.pretraining.batches` makes the batches and has the loss.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from cse.backbones.backbone import backbone_tensors, describe, row_limit
from cse.encoding.processes import check_alone
from cse.encoding.rows import render
from cse.methods.templates import PLAIN
from cse.models.names import resolve_backbone
from cse.pretraining.batches import BatchSampler, masked_inputs, masked_lm_loss, masked_logits
from cse.pretraining.config import PretrainConfig, PretrainRequest, learning_rate
from cse.pretraining.model import average_in, configure_for_device
from cse.pretraining.output import read_record, removed_if_refused, reserve_output, save_model
from cse.pretraining.setup import PretrainingSetup, check_request, prepare
from cse.storage.reservation import check_folder, reserved
from cse.training.state import load_state, save_state, start_accelerator

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cse.pretraining.config import CurveEntry, HeldOutScores, LogWriter, PretrainingRecord, PretrainingState
    from cse.pretraining.corpus import TokenFile

EVAL_ROWS = 512
EVAL_LENGTH = 64  # tokens of a row
EVAL_BATCH = 64  # rows


@dataclass(frozen=True)
class Training:
    """The objects that training steps use."""

    config: PretrainConfig
    accelerator: Accelerator
    model: Any
    optimizer: torch.optim.Optimizer
    sampler: BatchSampler

    @property
    def learned(self) -> dict[str, torch.Tensor]:
        """The parameters by name."""
        return dict(self.model.named_parameters())


def pretrain(
    request: PretrainRequest, report: LogWriter = lambda entry: None, begin: Callable[[], object] = lambda: None
) -> PretrainingRecord:
    """Pretrain, write a model folder to `output / "model"` and return its record, which is saved in it.

    `begin` is called when the request and the output folder are checked, before the text is tokenised; `report` gets
    one entry per evaluation, and a note if a resumed run has no saved state. Raises ValueError, or its subclass
    ArtefactError, if the corpora, the output folder or the settings do not fit, or the loss or the weights diverge;
    OSError if a corpus is missing.
    """
    from transformers.utils import logging

    check_alone("pretraining")
    logging.disable_progress_bar()
    init, blend = (None if name is None else resolve_backbone(name).name for name in (request.init, request.blend))
    request = replace(request, output=Path(request.output), init=init, blend=blend)
    check_folder(request.output)
    with reserved(request.output):
        return _pretrain(request, report, begin)


def _pretrain(request: PretrainRequest, report: LogWriter, begin: Callable[[], object]) -> PretrainingRecord:
    check_request(request)
    resumed = reserve_output(request, report)
    begin()
    before, share = read_record(request.init), request.config.start_share
    with removed_if_refused(request.output):
        setup = prepare(request)
    start = {name: tensor.detach().clone() for name, tensor in backbone_tensors(setup.model).items()} if share else {}
    training = start_training(request, setup)
    state = _run(request, training, setup.valid, _state(request, training, resumed), report)
    record: PretrainingRecord = {
        **state,
        "before": before,
        "device": str(training.accelerator.device),
        "model": describe(training.model),
        "torch": torch.__version__,
    }
    if share:
        average_in(training.model, start, share)
        with training.accelerator.autocast():
            record["averaged"] = evaluate(training.model, setup.tokenizer, setup.valid)
        _check_loss(record["averaged"]["held_out_loss"], record["step"])
    save_model(request, training.model, setup.tokenizer, record)
    return record


def start_training(request: PretrainRequest, setup: PretrainingSetup) -> Training:
    """The model on its device with its optimiser and batch sampler."""
    config = request.config
    accelerator = start_accelerator(request.precision)
    learned = [parameter for parameter in setup.model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        learned, lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=config.weight_decay, fused=True
    )
    prepared, optimizer = accelerator.prepare(setup.model.train(), optimizer)
    model = accelerator.unwrap_model(prepared)
    configure_for_device(model, accelerator.device)
    sampler = BatchSampler(config, setup.train, setup.tokenizer, row_limit(model))
    return Training(config, accelerator, model, optimizer, sampler)


def _state(request: PretrainRequest, training: Training, resumed: bool) -> PretrainingState:
    """The state to continue from: the saved one, loaded into the model and the optimiser, or that of step 0."""
    recipe = request.recipe()
    if resumed:
        return cast("PretrainingState", load_state(request.output, training.learned, training.optimizer, recipe))
    return {"step": 0, "curve": [], "recipe": recipe, "seconds": 0.0}


def _run(
    request: PretrainRequest, training: Training, valid: TokenFile, state: PretrainingState, report: LogWriter
) -> PretrainingState:
    """Take the remaining steps; every `eval_every` steps and at the end evaluate, save the state and report."""
    config = request.config
    started = time.perf_counter() - state["seconds"]
    for step in range(state["step"], config.steps):
        loss = take_step(training, step)
        done = step + 1
        if done % request.eval_every and done != config.steps:
            continue
        with training.accelerator.autocast():
            scores = evaluate(training.model, training.sampler.tokenizer, valid)
        seconds = time.perf_counter() - started
        tokens = done * config.batch_tokens
        entry: CurveEntry = {
            "step": done, "tokens": tokens, "loss": round(loss.item(), 4), **scores,
            "tokens_per_second": round(tokens / seconds),
        }  # fmt: skip
        for value in (entry["loss"], entry["held_out_loss"]):
            _check_loss(value, done)
        state = {**state, "step": done, "seconds": seconds, "curve": [*state["curve"], entry]}
        save_state(request.output, training.learned, training.optimizer, state)
        report(entry)
    return state


def _check_loss(loss: float, step: int) -> None:
    if not math.isfinite(loss):
        raise ValueError(f"the loss became {loss} at step {step}; lower `learning_rate`")


def take_step(training: Training, step: int) -> torch.Tensor:
    """Update the model on the batch of a step; return its masked-LM loss (nats, a scalar)."""
    config, accelerator = training.config, training.accelerator
    for group in training.optimizer.param_groups:
        group["lr"] = learning_rate(config, step)
    batch = training.sampler.batch(step).to(accelerator.device)
    predicted = batch.masked.sum().clamp(min=1)
    total = torch.zeros((), device=accelerator.device)
    for part in batch.split(-(-len(batch.inputs) // config.accumulate)):
        with accelerator.autocast():
            # a share of the mean over the whole batch, so that accumulated gradients are those of the batch
            loss = masked_lm_loss(masked_logits(training.model, part), part.targets) * part.masked.sum() / predicted
        total += loss.detach()
        accelerator.backward(loss)
    accelerator.clip_grad_norm_(training.model.parameters(), 1.0)
    training.optimizer.step()
    training.optimizer.zero_grad()
    return total


def evaluate(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, valid: TokenFile) -> HeldOutScores:
    """Held-out loss and accuracy over a fixed draw of rows and masks; leaves the model in training mode."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    length = min(EVAL_LENGTH, len(valid.ids) + 2, row_limit(model))
    text = torch.from_numpy(valid.rows(EVAL_ROWS, length - 2, rng))
    losses, accuracies = [], []
    model.eval()
    with torch.no_grad():
        for rows in masked_inputs(text, render(PLAIN, tokenizer), tokenizer, generator).split(EVAL_BATCH):
            batch = rows.to(model.device)
            logits = masked_logits(model, batch)
            losses.append(float(masked_lm_loss(logits, batch.targets)))
            right = logits.argmax(-1) == batch.targets  # never at padding, which is -100
            accuracies.append(float(right.sum() / batch.masked.sum()))
    model.train()
    return {
        "held_out_loss": round(float(np.mean(losses)), 4),
        "held_out_accuracy": round(float(np.mean(accuracies)), 4),
    }
