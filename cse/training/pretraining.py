"""Masked-language-model pretraining of a small BERT on text files, on a laptop CPU or a GPU.

Text is tokenised once into a flat memory-mapped array. A row starts at a sentence and runs over the following ones to
its full length, so nothing is padded; lengths are mixed because the models encode short texts.
`cse.training.pretraining_data` makes the batches and has the loss.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cse.encoder.backbone import backbone_tensors, describe, load_backbone, row_limit, set_dropout
from cse.encoder.processes import check_alone
from cse.encoder.rows import render
from cse.errors import ArtefactError
from cse.files.checksums import check_checksums, write_checksums
from cse.files.replace import recover, sweep
from cse.files.writing import check_folder, read_json, replacing, reserved, write_json
from cse.methods.templates import PLAIN
from cse.models.names import location, resolve_backbone
from cse.training.pretraining_data import (
    MODEL_FOLDER,
    BatchSampler,
    PretrainRequest,
    TokenFile,
    learning_rate,
    masked_inputs,
    masked_lm_loss,
    masked_logits,
    tokenise,
    train_tokenizer,
)
from cse.training.pretraining_model import (
    add_mlm_head,
    average_in,
    configure_for_device,
    freeze_lowest,
    lacks_mlm_head,
    new_model,
)
from cse.training.records import STATE_FOLDER
from cse.training.resume import check_resume, load_state, save_state, start_accelerator

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Report = Callable[[dict[str, Any]], object]
REMAKE_CURE = "delete its folder to have it made again"


@dataclass(frozen=True)
class Training:
    """The objects that training steps use: the `model` on its device, the sampler of batches, the held-out text."""

    accelerator: Accelerator
    model: Any
    optimizer: torch.optim.Optimizer
    sampler: BatchSampler
    valid: TokenFile


def prepare(request: PretrainRequest) -> Training:
    """A run before its first step; tokenizer and tokenised corpus of an earlier run in the output folder are reused.

    An `init` saved without a masked-LM head gets a new one. Raises ValueError if the corpus, the vocabulary or the
    settings do not fit, ArtefactError if `init` cannot be opened.
    """
    config, headless = request.config, False
    if request.init:
        model, tokenizer = load_backbone(location(request.init))
        _blend(request, model, tokenizer)
        headless = lacks_mlm_head(model)
    else:
        tokenizer = _tokenizer(request)
    corpus, valid = _tokenised(request, tokenizer)
    if not request.init:
        model = new_model(config, tokenizer, corpus)
    elif headless:
        model = add_mlm_head(model, corpus)
    set_dropout(model, 0.0)
    freeze_lowest(model, config.frozen_layers)
    accelerator = start_accelerator(request.precision)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        learned, lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=config.weight_decay, fused=True
    )
    prepared, optimizer = accelerator.prepare(model.train(), optimizer)
    model = accelerator.unwrap_model(prepared)
    configure_for_device(model, accelerator.device)
    return Training(accelerator, model, optimizer, BatchSampler(config, corpus, tokenizer, row_limit(model)), valid)


def check_request(request: PretrainRequest) -> None:
    """Raise ValueError for settings that do not fit the `init`, and for an unreadable corpus.

    Only the first line of a text file is read. Raises OSError for one that is missing.
    """
    config = request.config
    if not 0 < config.learning_rate < math.inf:
        raise ValueError(f"`learning_rate` is {config.learning_rate}; give a number above 0")
    if config.hidden % config.heads:
        raise ValueError(f"`hidden` is {config.hidden}, which {config.heads} heads cannot share; give a multiple")
    by_layer = config.blend_share if isinstance(config.blend_share, Sequence) else (config.blend_share,)
    if odd := [share for share in by_layer if not 0 <= share <= 1]:
        raise ValueError(f"`blend_share` is {odd[0]}; give a share from 0 to 1")
    of_init = {"frozen_layers": config.frozen_layers, "start_share": config.start_share, "blend": request.blend}
    if request.init:
        if config.untied:
            raise ValueError("`untied` is for a new model; an `init` keeps the decoder it has")
        if config.vocabulary is not None:
            raise ValueError("`vocabulary` is for a new model; an `init` keeps its word pieces")
    elif unfit := [name for name, value in of_init.items() if value]:
        raise ValueError(f"`{unfit[0]}` needs a model to continue from; give an `init`")
    if request.column is not None and not request.tables:
        raise ValueError(
            f"`column` is {request.column!r}, but text files have no columns; leave it out or give a table"
        )
    for lines in request.lines():
        next(lines, None)


def _blend(request: PretrainRequest, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Average the model `blend` into `model`. Raises ArtefactError for other word pieces or another shape."""
    if not request.blend:
        return
    other, its_tokenizer = load_backbone(location(request.blend))
    tensors = backbone_tensors(other)
    theirs, own = ({name: tensor.shape for name, tensor in of.items()} for of in (tensors, backbone_tensors(model)))
    if theirs != own or its_tokenizer.get_vocab() != tokenizer.get_vocab():
        raise ArtefactError(
            f"{request.blend} cannot be averaged into {request.init}: it has another shape or other word pieces; give "
            "one trained from the same model"
        )
    shares, layers = request.config.blend_share, model.config.num_hidden_layers
    if isinstance(shares, Sequence) and len(shares) != layers + 1:
        raise ValueError(f"`blend_share` has {len(shares)} shares; give one, or {layers + 1}: embeddings and layers")
    average_in(model, tensors, shares)


def _tokenizer(request: PretrainRequest) -> PreTrainedTokenizerBase:
    """The tokenizer of a new model in the output folder; a missing one is learned from the corpora."""
    from transformers import AutoTokenizer

    saved = request.output / "tokenizer"
    recover(saved)
    if saved.is_dir():
        check_checksums(saved, REMAKE_CURE)
        return AutoTokenizer.from_pretrained(saved)
    tokenizer = train_tokenizer(request)
    with replacing(saved) as folder:
        tokenizer.save_pretrained(folder)
        write_checksums(folder)
    return tokenizer


def _tokenised(request: PretrainRequest, tokenizer: PreTrainedTokenizerBase) -> tuple[TokenFile, TokenFile]:
    """(training, held-out) text in the output folder, tokenised if it is not there yet."""
    if len(tokenizer) > np.iinfo(np.uint16).max:
        other = "another `init`" if request.init else "a `vocabulary` below 65,536"
        raise ValueError(f"a vocabulary of {len(tokenizer)} does not fit 16-bit token files; give {other}")
    folder = request.output / "corpus"
    recover(folder)
    if not folder.is_dir():
        tokenise(request, tokenizer, folder)
    check_checksums(folder, REMAKE_CURE)
    return TokenFile.open(folder, "train"), TokenFile.open(folder, "valid")


PRETRAINING_RECORD, SOURCE_RECORD = "pretraining.json", "source.json"
OUTPUT_PARTS = (MODEL_FOLDER, STATE_FOLDER, SOURCE_RECORD, "tokenizer", "corpus")
LEFTOVER_PREFIXES = tuple(f".{name}." for name in OUTPUT_PARTS)
SAVED_DROPOUT = 0.1  # BERT's; contrastive training needs the noise
LOADER_KEYS = ("is_local", "local_files_only")  # set by transformers in a tokenizer read from a folder


def reserve_output(request: PretrainRequest, report: Report) -> bool:
    """Prepare `request.output` for this text and vocabulary; True if the run continues from a saved state.

    Raises ValueError if the folder holds something else, a finished run to resume, or a run that is neither resumed nor
    overwritten, and ArtefactError if there is no run to resume.
    """
    output, source = request.output, request.source()
    check_folder(output)
    for name in OUTPUT_PARTS:
        sweep(output / name)
    begun = output.is_dir() and any(_output_entries(output))
    if begun:
        _check_reusable(request, source)
    saved = request.resume and check_resume(output, begun, lambda line: report({"step": 0, "note": line}))
    if request.overwrite and not saved:
        shutil.rmtree(output / STATE_FOLDER, ignore_errors=True)  # or a later `resume` would continue the old run
    output.mkdir(parents=True, exist_ok=True)
    write_json(output / SOURCE_RECORD, source)
    return saved


def _output_entries(output: Path) -> list[Path]:
    """The entries of the folder, without those left by a killed write, which the next one removes."""
    return [path for path in output.iterdir() if not path.name.startswith(LEFTOVER_PREFIXES)]


def _check_reusable(request: PretrainRequest, source: dict[str, object]) -> None:
    """Raise ValueError unless the output folder has the same `source` and its run may be resumed or replaced."""
    output, record = request.output, request.output / SOURCE_RECORD
    earlier = read_json(record) if record.is_file() else {}
    if earlier.keys() != source.keys():
        raise ValueError(f"{output} already holds something else; give another `output`")
    if all(path == record for path in _output_entries(output)):
        return  # a run that was refused, such as for a wrong text
    if earlier != source:
        raise ValueError(f"{output} was begun with other text, `vocabulary` or `init`; give another `output`")
    if request.resume and _finished(request):
        raise ValueError(f"{output} is already finished; there is nothing to resume")
    made = (output / MODEL_FOLDER).exists() or (output / STATE_FOLDER).exists()
    if made and not (request.resume or request.overwrite):
        raise ValueError(f"{output} already holds a run; pass `resume` to go on or `overwrite` to start again")


def _finished(request: PretrainRequest) -> bool:
    """True if the model of this recipe's last step was written."""
    record, state = request.output / MODEL_FOLDER / PRETRAINING_RECORD, request.output / STATE_FOLDER / "meta.json"
    if not (record.is_file() and state.is_file()):
        return False
    saved = read_json(state)
    same = saved.get("recipe") == request.recipe() == read_json(record).get("recipe")
    return same and saved.get("step") == request.config.steps


def save_model(request: PretrainRequest, model: Any, tokenizer: PreTrainedTokenizerBase, record: object) -> None:
    """Write the model in float16, its tokenizer and the record to `output / "model"`, replacing an earlier one.

    Raises ValueError, and keeps the earlier one, for a weight that is not finite.
    """
    half = model.half()
    if odd := next((name for name, tensor in half.named_parameters() if not tensor.isfinite().all()), None):
        raise ValueError(f"{odd} holds a number that is not finite in float16; lower `learning_rate` and start again")
    set_dropout(model, SAVED_DROPOUT)
    tokenizer.model_max_length = model.config.max_position_embeddings
    for key in LOADER_KEYS:  # a resumed run reads its tokenizer from a folder, and would save another file
        tokenizer.init_kwargs.pop(key, None)
    with replacing(request.output / MODEL_FOLDER) as folder:
        half.save_pretrained(folder)
        model.config.dtype = torch.float32  # in which other tools then compute, as this project does
        model.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / PRETRAINING_RECORD).write_text(json.dumps(record, indent=1))
        write_checksums(folder)


EVAL_ROWS = 512
EVAL_LENGTH = 64  # tokens of a row
EVAL_BATCH = 64  # rows


def pretrain(request: PretrainRequest, report: Report = lambda entry: None) -> dict[str, Any]:
    """Pretrain, write a model folder to `output / "model"` and return its record, which is saved in it.

    The record has `step`, `seconds`, the `recipe`, the `curve`, `before` (the record of the model that the run
    continued from, or None), `device`, `model`, `torch`, and `averaged`, the scores of the saved model, if weights of
    its start were averaged in. An entry of the curve is an evaluation after `step` steps over `tokens` tokens: the
    `loss` of that step and the `held_out_loss` (nats), `held_out_accuracy` in [0, 1], `tokens_per_second` so far.
    `report` gets these entries and, with `step` 0, notes: how tables were read, the length of the run, and if a resumed
    run has no saved state. Raises ValueError, or its subclass ArtefactError, if the corpora, the output folder or the
    settings do not fit, or the loss or the weights diverge; OSError if a corpus is missing.
    """
    from transformers.utils import logging

    check_alone("pretraining")
    logging.disable_progress_bar()
    init, blend = (None if name is None else resolve_backbone(name).name for name in (request.init, request.blend))
    request = replace(request, output=Path(request.output), init=init, blend=blend)
    config, share = request.config, request.config.start_share
    check_folder(request.output)
    with reserved(request.output):
        check_request(request)
        resumed = reserve_output(request, report)
        length = f"{config.steps} steps of {config.batch_tokens} tokens; results go to {request.output}"
        for note in (*(table.understood() for table in request.tables), length):
            report({"step": 0, "note": note})
        earlier = Path(location(init or "")) / PRETRAINING_RECORD
        before = read_json(earlier) if init and earlier.is_file() else None
        fresh = all(path.name == SOURCE_RECORD for path in _output_entries(request.output))
        try:
            training = prepare(request)
        except ValueError:
            if fresh:  # remove what a refused run wrote
                shutil.rmtree(request.output, ignore_errors=True)
            raise
        model, tokenizer = training.model, training.sampler.tokenizer
        start = {name: tensor.detach().clone() for name, tensor in backbone_tensors(model).items()} if share else {}
        precision = str(training.accelerator.mixed_precision)
        state: dict[str, Any] = {"step": 0, "curve": [], "recipe": request.recipe(), "seconds": 0.0}
        if resumed:
            state = load_state(request.output, dict(model.named_parameters()), training.optimizer, request.recipe())
        if state.setdefault("precision", precision) != precision:  # older states have none
            raise ArtefactError(
                f"{request.output}: begun in precision {state['precision']}, not {precision}; give that `precision`"
            )
        state = _run(request, training, state, report)
        device = str(training.accelerator.device)
        record = {**state, "before": before, "device": device, "model": describe(model), "torch": torch.__version__}
        if share:
            average_in(model, start, share)
            with training.accelerator.autocast():
                record["averaged"] = evaluate(model, tokenizer, training.valid)
            _check_loss(record["averaged"]["held_out_loss"], record["step"])
        save_model(request, model, tokenizer, record)
        return record


def _run(request: PretrainRequest, training: Training, state: dict[str, Any], report: Report) -> dict[str, Any]:
    """Take the remaining steps; every `eval_every` steps and at the end evaluate, save the state and report."""
    config = request.config
    started = time.perf_counter() - state["seconds"]
    for step in range(state["step"], config.steps):
        loss = take_step(training, step)
        done = step + 1
        if done % request.eval_every and done != config.steps:
            continue
        with training.accelerator.autocast():
            scores = evaluate(training.model, training.sampler.tokenizer, training.valid)
        seconds = time.perf_counter() - started
        tokens = done * config.batch_tokens
        entry = {
            "step": done, "tokens": tokens, "loss": round(loss.item(), 4), **scores,
            "tokens_per_second": round(tokens / seconds),
        }  # fmt: skip
        for value in (entry["loss"], entry["held_out_loss"]):
            _check_loss(value, done)
        state = {**state, "step": done, "seconds": seconds, "curve": [*state["curve"], entry]}
        save_state(request.output, dict(training.model.named_parameters()), training.optimizer, state)
        report(entry)
    return state


def _check_loss(loss: float, step: int) -> None:
    if not math.isfinite(loss):
        raise ValueError(f"the loss became {loss} at step {step}; lower `learning_rate`")


def take_step(training: Training, step: int) -> torch.Tensor:
    """Update the model on the batch of a step; return its masked-LM loss (nats, a scalar)."""
    config, accelerator = training.sampler.config, training.accelerator
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


def evaluate(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, valid: TokenFile) -> dict[str, float]:
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
