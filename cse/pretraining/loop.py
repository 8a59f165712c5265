"""Masked-language-model pretraining of a small BERT on text files, on a laptop CPU or a GPU.

Text is tokenised once into a flat memory-mapped array. A row starts at the beginning of a sentence and runs on over
the following ones to its full length, so nothing is padded; lengths are mixed because short inputs are the use.
`cse.pretraining.batches` says what a row is and what it teaches.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from cse.model_names import lasting_name
from cse.pretraining.batches import Lesson
from cse.pretraining.config import PretrainConfig, learning_rate
from cse.pretraining.flops import matrix_rate
from cse.pretraining.held_out import evaluate
from cse.pretraining.model import suit_device
from cse.pretraining.objectives import IGNORED, bag_loss, masked_loss, read
from cse.pretraining.output import SOURCE, claim, finish, read_record
from cse.pretraining.setup import prepare
from cse.training_state import check_resume, load_state, save_state, start_accelerator


def pretrain(
    corpora: list[Path],
    output: Path,
    config: PretrainConfig,
    *,
    init: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    eval_every: int = 500,
    precision: str = "auto",
    report: Callable[[dict[str, Any]], None] = lambda entry: None,
) -> dict[str, Any]:
    """Pretrain and write a model folder to `output/model`; the recipe with its curve comes back and is saved beside it.

    `init` is a backbone to go on from, named as in `cse.load`. `report` gets one dictionary per evaluation, and one
    with a "note" where a resumed run begins again. A killed run goes on from its last evaluation with `resume`.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    output, init = Path(output), init and lasting_name(init)
    saved = resume and check_resume(output, begun=(output / SOURCE).is_file(), report=report)
    texts = [[path.name, path.stat().st_size] if path.is_file() else [path.name, 0] for path in corpora]
    claim(output, {"texts": texts, "vocabulary": config.vocabulary, "init": init}, resume, overwrite)
    resume = saved and not overwrite
    before = read_record(init)
    start = replace(config, head_start=config.head_start and not resume)  # a state holds the embeddings
    model, tokenizer, train, valid = prepare(corpora, output, start, init)
    accelerator = start_accelerator(precision)
    if accelerator.num_processes > 1:
        raise ValueError("pretraining runs in one process; start it without accelerate launch")
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=config.weight_decay,
        fused=True,
    )  # fmt: skip
    model, optimizer = accelerator.prepare(model.train(), optimizer)
    plain = accelerator.unwrap_model(model)
    suit_device(plain, accelerator.device)
    recipe = json.loads(json.dumps({**asdict(config), "init": init, "corpora": [path.name for path in corpora]}))
    learned = dict(plain.named_parameters())
    begun = {"step": 0, "curve": [], "recipe": recipe, "seconds": 0.0}
    meta = load_state(output, learned, optimizer, recipe) if resume else begun
    half = accelerator.mixed_precision == "bf16"
    meta["matrix_rate"] = matrix_rate(accelerator.device, torch.bfloat16 if half else torch.float32)
    lesson = Lesson.of(config, train, tokenizer, plain)
    cost = lesson.flops(plain)
    started = time.perf_counter() - meta["seconds"]
    for step in range(meta["step"], config.steps):
        loss = _step(accelerator, model, optimizer, lesson, step)
        done = step + 1
        if done % eval_every == 0 or done == config.steps:
            with accelerator.autocast():
                scores = evaluate(plain, tokenizer, valid, accelerator.device)
            seconds = time.perf_counter() - started
            speed = done * config.batch_tokens / seconds
            entry = {
                "step": done, "tokens": done * config.batch_tokens, "loss": round(loss.item(), 4), **scores,
                "tokens_per_second": round(speed), "mfu": round(speed * cost / meta["matrix_rate"], 3),
            }  # fmt: skip
            if not math.isfinite(entry["loss"]):
                raise ValueError(f"the loss became {entry['loss']} at step {done}; lower `learning_rate`")
            meta = {**meta, "step": done, "seconds": seconds, "curve": [*meta["curve"], entry]}
            save_state(output, learned, optimizer, meta)
            report(entry)
    return finish(output, plain, tokenizer, {**meta, "before": before}, str(accelerator.device))


def _step(accelerator: Any, model: Any, optimizer: Any, lesson: Lesson, step: int) -> torch.Tensor:
    config, device = lesson.config, accelerator.device
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(config, step)
    batch = lesson.rows(step).to(device)
    total = (batch.labels != IGNORED).sum().clamp(min=1)
    whole = torch.zeros((), device=device)
    for rows in batch.split(-(-len(batch.inputs) // config.accumulate)):
        wanted = rows.labels[rows.labels != IGNORED]
        with accelerator.autocast():
            logits, spoken = read(model, rows, bag=config.bag_weight > 0)
            # means over the step's masked tokens and rows, not over its parts'
            share = masked_loss(logits, wanted) * len(wanted) / total
            whole += share.detach()
            if config.bag_weight:
                bag = bag_loss(spoken, rows.bag, lesson.weights)
                share = share + config.bag_weight * bag * len(rows.bag) / len(batch.bag)
        accelerator.backward(share)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return whole
