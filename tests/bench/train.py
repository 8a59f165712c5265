"""How fast training steps are, method by method, and sentence-transformers' trainer beside them.

The peer trains the same backbone with MultipleNegativesRankingLoss on the same sentences, each its own positive, in
batches of the same size cut to the same length; it has no more than its own defaults.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from cse.training.loop import TrainingLoop
from cse.training.resume import start_accelerator
from cse.training.run import TrainRequest, prepare
from tests.bench.flops import contrastive_flops, step_rate
from tests.bench.timing import ROUNDS, interleaved, ratio

if TYPE_CHECKING:
    from cse.encoder.torch_encoder import TorchEncoder
    from cse.training.run import Run

PEER = "sentence-transformers"


@dataclass(frozen=True)
class TrainingSpeed:
    """Figures of each work by its name, and how many times faster the first one is: median, least, most.

    A work is a step over `batch_size` sentences; `share` is that of the matrix rate (FLOP/s, float32 or bfloat16).
    """

    batch_size: int
    matrix_rate: float
    works: dict[str, dict[str, Any]]
    times_faster: dict[str, tuple[float, float, float]]


def measure_training(
    requests: Sequence[TrainRequest], precision: str = "no", against: str | None = None, rounds: int = ROUNDS
) -> TrainingSpeed:
    """The speed of a training step of each request, one backbone and batch size for all, in turn.

    With `against` sentence-transformers' trainer takes its turn too. Raises ValueError where it is not installed.
    """
    loops: dict[str, TrainingLoop] = {}
    works: dict[str, Callable[[], object]] = {}
    for request in requests:
        encoder, run = prepare(request)
        loop = TrainingLoop.start(encoder, run, Path(tempfile.gettempdir()), start_accelerator(precision))
        loops[request.method] = loop
        works[request.method] = partial(next, _steps(loop))
    if against is not None:
        steps_of_peer = peer_steps(encoder, run, precision)
        works[against] = lambda: next(steps_of_peer)
    timings = interleaved(works, rounds)
    rate = step_rate(loop.accelerator)
    first = next(iter(timings.values()))
    figures = {name: timing.figures(run.config.batch_size) for name, timing in timings.items()}
    for name, loop in loops.items():
        figures[name]["share"] = step_flops(loop, rounds) / timings[name].median / rate
    ratios = {name: ratio(first, timing) for name, timing in timings.items() if timing is not first}
    return TrainingSpeed(run.config.batch_size, rate, figures, ratios)


def step_flops(loop: TrainingLoop, steps: int) -> float:
    """The median FLOPs of the first `steps` steps of a run, without denoising and the masked-LM term."""
    model, prefix = loop.encoder.model, loop.encoder.reading.prefix
    sizes = [loop.data(step % loop.run.steps).rows.sizes.tolist() for step in range(steps)]
    return median(contrastive_flops(model, lengths, prefix) for lengths in sizes)


def _steps(loop: TrainingLoop) -> Iterator[float]:
    """The losses of a run's steps, begun anew after the last."""
    numbers = cycle(range(loop.run.steps))
    for number in numbers:
        yield float(loop.step(number, loop.data(number)))


def peer_steps(encoder: TorchEncoder, run: Run, precision: str) -> Iterator[float]:
    """Optimiser steps of sentence-transformers' trainer on the backbone and the sentences of a run; their losses."""
    try:
        from datasets import Dataset
        from sentence_transformers import (
            SentenceTransformer,
            SentenceTransformerTrainer,
            SentenceTransformerTrainingArguments,
        )
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    except ImportError as error:
        raise ValueError(f"{PEER} is not installed; install it or leave out `against`") from error
    with tempfile.TemporaryDirectory() as folder:
        encoder.model.base_model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        backbone = Transformer(folder, max_seq_length=run.config.max_length)
        model = SentenceTransformer(modules=[backbone, Pooling(encoder.dim, "mean")], device=str(encoder.device))
        texts = list(run.examples.anchors())
        options: dict[str, Any] = {
            "per_device_train_batch_size": run.config.batch_size, "report_to": [], "save_strategy": "no",
            "bf16": precision == "bf16", "use_cpu": encoder.device.type == "cpu", "disable_tqdm": True,
        }  # fmt: skip
        trainer = SentenceTransformerTrainer(
            model=model, args=SentenceTransformerTrainingArguments(folder, **options),
            train_dataset=Dataset.from_dict({"anchor": texts, "positive": texts}),
            loss=MultipleNegativesRankingLoss(model),
        )  # fmt: skip
        optimizer = trainer.create_optimizer()
        trainer.current_gradient_accumulation_steps = 1  # which `train` sets
        while True:
            for batch in trainer.get_train_dataloader():
                with trainer.accelerator.autocast():
                    loss = trainer.training_step(model, batch)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                model.zero_grad()
                yield float(loss)
