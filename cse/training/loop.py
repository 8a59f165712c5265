"""The training loop: steps, selection on dev pairs, log and exact resume.

Run directly, it uses the CPU or one GPU. Under `accelerate launch` each process holds a part of the batch and the
candidates of all are gathered with gradient, so the loss is that of the whole batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain, takewhile
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from accelerate.utils import broadcast_object_list, gather_object

from cse.encoder.backbone import compiled_run
from cse.encoder.processes import together
from cse.encoder.torch_encoder import TorchEncoder
from cse.files.writing import file_digest, partial_folder
from cse.models.checkpoint import LOG, read_start, save
from cse.models.config import DevScores, Storage, TrainingRecord
from cse.training.held_out import HeldOutScore, held_out_score
from cse.training.losses import MomentumQueue, mlm_weight
from cse.training.output import BEST_FOLDER, check_best, open_log, publish, reserved_output
from cse.training.records import LogEntry, LogWriter, TrainingResult, TrainingState
from cse.training.resume import check_resume, load_state, save_state, start_accelerator
from cse.training.run import Run, dev_score
from cse.training.step import StepData, contrast, masked_language_loss, set_up, step_data
from cse.training.tokens import Batch, tokenised_meanwhile, view_columns

if TYPE_CHECKING:
    from accelerate import Accelerator


def copied(parameters: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of parameters by name."""
    return {name: tensor.detach().clone() for name, tensor in parameters.items()}


@contextmanager
def averaged(parameters: Mapping[str, torch.Tensor], start: Mapping[str, torch.Tensor], share: float) -> Iterator[None]:
    """Set the parameters to `share` x `start` + (1 - `share`) x themselves in the block, and restore them after it."""
    if not share:
        yield
        return
    trained = copied(parameters)
    try:
        with torch.no_grad():
            for name, tensor in parameters.items():
                tensor.lerp_(start[name], share)
        yield
    finally:
        with torch.no_grad():
            for name, tensor in parameters.items():
                tensor.copy_(trained[name])


MAX_PLANNED_TEXTS = 3  # shown with their tokens


def plan(encoder: TorchEncoder, run: Run) -> dict[str, Any]:
    """The plan of training `encoder` in `run`, in numbers, for JSON.

    `lines` are the first texts in each view, with the tokens that the backbone gets; `settings` are those resolved.
    """
    config = replace(run.config, batch_size=min(MAX_PLANNED_TEXTS, len(run.examples)))
    batch = run.examples[list(range(config.batch_size))]
    views, _, rows = step_data(encoder, batch, config, 0)
    texts = chain.from_iterable(batch[column] for column in view_columns(encoder, batch))
    words = encoder.tokenizer.convert_ids_to_tokens
    lines = [
        {"text": text, "tokens": " ".join(words(ids.tolist()))}
        for text, ids in zip(texts, np.split(rows.ids, rows.offsets[1:-1]), strict=True)
    ]
    return {
        "method": encoder.method.name, "views": views, "lines": lines, "examples": len(run.examples),
        "batch_size": run.config.batch_size, "learning_rate": run.config.learning_rate, "steps": run.steps,
        "parameters_total": sum(tensor.numel() for tensor in encoder.parameters()),
        "parameters_learned": sum(tensor.numel() for tensor in encoder.learned(training=True).values()),
        "parameters_stored": sum(tensor.numel() for tensor in encoder.learned().values()),
        "settings": {
            "backbone": encoder.backbone, "supervised": encoder.method.supervised, **asdict(run.config),
            **encoder.method.settings,
        },
    }  # fmt: skip


# On an H100 a pass of base size takes 20 to 40 s to compile and saves 15 to 25 ms a step; a run has passes of about two
# sizes, so that 60 s are won back by 20 ms a step.
MIN_COMPILED_STEPS = 3_000


def train(
    encoder: TorchEncoder,
    run: Run,
    output: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    storage: Storage = Storage.FLOAT32,
    precision: str = "auto",
    report: LogWriter = lambda entry: None,
) -> TrainingResult:
    """Train `encoder`, write a checkpoint folder to `output` and return the result with the dev scores.

    With dev pairs or held-out texts the model of the best evaluation is kept, without them that of the last step. With
    held-out texts the run ends early, and keeps the best evaluation before, if the model collapses or the loss is not
    finite. `report` gets one entry per step, and a note if a resumed run has no saved state or a run ends early. An
    unfinished run is in `output.partial`; with `resume` a killed run continues from its last evaluation, to the same
    result as without the kill. `overwrite` replaces a checkpoint and deletes an unfinished run; `check_output` says
    what is refused.
    """
    accelerator = start_accelerator(precision)
    first = accelerator.is_main_process
    with ExitStack() as stack:
        with together():
            if first:
                stack.enter_context(reserved_output(output, resume=resume, overwrite=overwrite))
                if storage.differs:
                    read_start(encoder)  # a checkpoint of differences that cannot be stored fails before training
        loop = TrainingLoop.start(encoder, run, partial_folder(output), accelerator)
        if resume:
            loop.restore(report)
        if (begun := loop.state.setdefault("storage", storage.value)) != storage.value:
            raise ValueError(f"{loop.work}: begun with storage {begun}, not {storage.value}; repeat that one")
        if run.selects and "start" not in loop.state["dev"]:
            loop.state["dev"] = {"start": loop.score(0)}
        loop.run_steps(Path(output), storage, report)
        state = loop.state
        steps = state["step"] if "stopped" in state else run.steps
        with together():
            if first:
                publish(loop.work, Path(output), overwrite, state["dev"], run.texts(steps), encoder.backbone)
    return TrainingResult(
        str(output), steps, round(state["seconds"], 1), **state["dev"], selection=run.selection,
        stopped=state.get("stopped"),
    )  # fmt: skip


@dataclass
class TrainingLoop:
    """A run in progress: its `encoder`, also wrapped by accelerate (`model`), the folder `work`, queue and state.

    `initial` has the learned parameters of the start, if they are averaged in; `examples` returns those of numbers.
    """

    encoder: TorchEncoder
    run: Run
    work: Path
    accelerator: Accelerator
    model: Any
    optimizer: torch.optim.Optimizer
    momentum: MomentumQueue | None
    state: TrainingState
    initial: dict[str, torch.Tensor]
    examples: Callable[[np.ndarray], Batch]

    @classmethod
    def start(cls, encoder: TorchEncoder, run: Run, work: Path, accelerator: Accelerator) -> TrainingLoop:
        """The loop before its first step. Raises ValueError if the processes cannot share a batch evenly."""
        config = run.config
        if config.batch_size % accelerator.num_processes:
            raise ValueError(
                f"batch size {config.batch_size} is not divisible by {accelerator.num_processes} processes"
            )
        set_up(encoder.to(accelerator.device), config)
        parameters = encoder.learned(training=True).values()
        optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=0.0, fused=True)
        model, _ = accelerator.prepare(encoder, optimizer)
        momentum = MomentumQueue.start(encoder) if encoder.method.queue else None
        recipe = {**run.recipe(encoder), "precision": accelerator.mixed_precision}
        state: TrainingState = {"step": 0, "recipe": recipe, "seconds": 0.0, "dev": {}}
        initial = copied(encoder.learned()) if config.start_share else {}
        return cls(
            encoder, run, work, accelerator, model, optimizer, momentum, state, initial, run.examples.__getitem__
        )

    def restore(self, report: LogWriter) -> None:
        """Continue from the saved state, or report that there is none.

        Raises ArtefactError as `load_state` does, ValueError if the processes read different states.
        """

        def note(line: str) -> None:
            if self.accelerator.is_main_process:
                report({"step": 0, "note": line})

        with together():
            if check_resume(self.work, True, note):
                saved = load_state(self.work, self.tensors(), self.optimizer, self.state["recipe"])
                self.state = cast("TrainingState", saved)
                if "best" in self.state["dev"]:
                    check_best(self.work)
        if len(steps := set(gather_object([self.state["step"]]))) > 1:
            raise ValueError(
                f"{self.work}: the processes read the states of steps {', '.join(map(str, sorted(steps)))}; give an "
                "`output` that all machines share"
            )

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a resumed run needs besides the optimiser's moments, by name."""
        return {**self.encoder.learned(training=True), **(self.momentum.tensors() if self.momentum else {})}

    def run_steps(self, home: Path, storage: Storage, report: LogWriter) -> None:
        """Take and log the remaining steps; evaluate and save the state every `eval_every` steps and after the last.

        `home` is the folder that the best checkpoint will be copied to.
        """
        run, state, first = self.run, self.state, self.accelerator.is_main_process
        steps, started = range(state["step"], state["step"] if "stopped" in state else run.steps), time.perf_counter()
        with ExitStack() as stack:
            with together():
                log = stack.enter_context(open_log(self.work, state, first))
                texts = state["recipe"]["texts"]
                self.examples = stack.enter_context(tokenised_meanwhile(self.encoder, run, self.work, texts, first))
                stack.enter_context(self.compiled(report if first else lambda entry: None))
            losses: list[torch.Tensor] = []  # of the steps whose loss was not read yet
            most = 1 if self.accelerator.device.type == "cpu" else 10  # a GPU would idle while the host reads each loss
            for step, data in zip(steps, map(self.data, steps), strict=True):
                losses.append(self.step(step, data))
                due = (step + 1) % run.config.eval_every == 0 or step + 1 == run.steps
                if not due and len(losses) < most:
                    continue
                values = torch.stack(losses).tolist()
                finite = list(takewhile(isfinite, values))
                due, first_read = due and len(finite) == len(values), step + 1 - len(values)
                improved = due and self.evaluate(step + 1)
                seconds = time.perf_counter() - started
                state["seconds"] += seconds
                speed = round(run.config.batch_size * len(values) / seconds, 1)
                entries: list[LogEntry] = [
                    {"step": number, "loss": value, "sentences_per_second": speed}
                    for number, value in enumerate(finite, first_read + 1)
                ]
                if due:
                    entries[-1]["dev"] = state["dev"].get("last")
                with together():
                    # before the state: a resumed run removes the lines of steps it repeats
                    log.writelines(json.dumps(entry) + "\n" for entry in entries)
                    log.flush()
                    if first and improved:
                        # The last score is not known yet, and is in the log.
                        record: TrainingRecord = {
                            "settings": {k: v for k, v in state["recipe"].items() if k not in ("method", "backbone")},
                            "selection": run.selection,
                            "dev": cast("DevScores", {k: v for k, v in state["dev"].items() if k != "last"}),
                        }
                        with self.averaged():
                            save(self.encoder, self.work / BEST_FOLDER, record, storage=storage, home=home)
                    if first and due:
                        state["log"] = file_digest(self.work / LOG)
                        save_state(self.work, self.tensors(), self.optimizer, dict(state))
                    for entry in entries:
                        rate = run.learning_rate(entry["step"] - 1)
                        report({**entry, "learning_rate": rate, "best": state["dev"].get("best")})
                if len(finite) < len(values):
                    self.stop(first_read + len(finite), values[len(finite)])
                if "stopped" in state:
                    break
                losses, started = [], time.perf_counter()
        self.examples = run.examples.__getitem__  # not of the token file, which is about to be deleted
        if first and "stopped" in state:
            report({"step": state["step"], "note": f"ended early, the best evaluation is kept: {state['stopped']}"})

    @contextmanager
    def compiled(self, report: LogWriter) -> Iterator[None]:
        """Compile the passes of the steps in the block, if the setting says so or the run is long enough on a GPU."""
        choice, passes = self.run.config.compile, self.encoder.compiled
        auto = choice == "auto" and self.encoder.placed and self.accelerator.device.type == "cuda"
        if choice == "yes" or (auto and self.run.steps >= MIN_COMPILED_STEPS):
            torch.compiler.reset()  # PyTorch compiles at most 8 sizes, and would count those of an earlier run
            passes[True] = compiled_run(dynamic=False, required=choice == "yes")
            report({"step": self.state["step"], "note": "training passes are compiled; the first steps wait for it"})
        try:
            yield
        finally:
            passes.pop(True, None)

    def averaged(self) -> AbstractContextManager[None]:
        """The parameters with the initial ones averaged in, as they are evaluated and saved."""
        return averaged(self.encoder.learned(), self.initial, self.run.config.start_share)

    def data(self, step: int) -> StepData:
        """The inputs of a step for this process: its part of the batch."""
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        own = slice(*(number * self.run.config.batch_size // processes for number in (rank, rank + 1)))
        batch = self.examples(self.run.numbers(step)[own])
        number = step * processes + rank  # each process draws its own templates and augmentation
        return step_data(self.encoder, batch, self.run.config, number)

    def stop(self, step: int, loss: float) -> None:
        """End the run because the loss of a step (from 0) is not finite. Raises ValueError if no evaluation is kept."""
        reason = f"the loss became {loss} at step {step + 1}; lower `learning_rate`"
        if not (self.run.held_out and "best" in self.state["dev"]):
            raise ValueError(f"{reason}, and pass `overwrite`")
        self.state["step"], self.state["stopped"] = step, reason

    def step(self, step: int, data: StepData) -> torch.Tensor:
        """Take one optimiser step and return its loss (), the mean of all processes, on the device."""
        config, accelerator = self.run.config, self.accelerator
        for group in self.optimizer.param_groups:
            group["lr"] = self.run.learning_rate(step)
        torch.manual_seed(int(np.random.default_rng((config.seed, step, accelerator.process_index)).integers(2**62)))
        if not self.encoder.training:
            self.model.train()  # visits all modules
        encoder, method = self.encoder, self.encoder.method
        vectors = self.model(data.rows)
        queue = self.momentum.negatives() if self.momentum else None
        loss = contrast(vectors, data.views, config, accelerator, kind=method.contrast, queue=queue)
        loss = loss * method.loss_weight
        if self.momentum:
            self.momentum.advance(data.plain[range(len(data.plain) // data.views)], accelerator.gather)
        scaled = loss * accelerator.num_processes  # accelerate averages gradients, which should be summed
        if method.mlm_weight:
            with accelerator.autocast():
                masked = masked_language_loss(encoder, data.plain)
            masked = masked * mlm_weight(method.mlm_weight, step)
            loss, scaled = loss + masked, scaled + masked
        accelerator.backward(scaled)
        accelerator.clip_grad_norm_(self.model.parameters(), config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return cast("torch.Tensor", accelerator.reduce(loss.detach(), "mean"))

    def evaluate(self, step: int) -> bool:
        """Update the step and the dev scores in the state; return True if the model after `step` is the one to keep."""
        self.state["step"] = step
        if not self.run.selects:
            return step == self.run.steps
        dev = self.state["dev"]
        with self.averaged():
            dev["last"] = self.score(step)
        if "stopped" in self.state and "best" not in dev:
            raise ValueError(self.state["stopped"])
        if "stopped" in self.state or not dev["last"] > dev.get("best", -np.inf):
            return False
        dev["best"], dev["best_step"] = dev["last"], step
        return True

    def score(self, step: int) -> float:
        """The dev score after `step` steps, or that of held-out texts; the state records a collapse of these."""
        with together():
            if not self.run.held_out:
                return dev_score(self.encoder, self.run, step)
            score = held_out_score(lambda texts: self.encoder.encode(texts, batch_size=256), self.run.held_out)
        (score,) = broadcast_object_list([score])  # all processes stop at the same step
        if step == 0:
            self.state["held_out"] = asdict(score)
        elif score.has_collapsed(HeldOutScore(**self.state["held_out"])):
            self.state["stopped"] = f"collapsed at step {step} ({score}); lower `learning_rate`"
        return score.concentration
