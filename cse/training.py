"""The one training loop: views, vectors, loss, step; STS-B dev selection, logs and exact resume.

Launched plainly it uses the CPU or one GPU; under `accelerate launch` every process holds a part of each batch and
the candidates of all are gathered with gradient, so the loss is that of the whole batch.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cse.backbone import mlm_head, set_dropout
from cse.checkpoint import LOG, save
from cse.encoder import Encoder
from cse.evaluation.metrics import spearman
from cse.files import digest, write_folder
from cse.losses import info_nce, mlm_weight
from cse.masking import mask_tokens
from cse.methods import TrainConfig, to_json
from cse.training_output import BEST, check_output, open_log, partial_folder
from cse.training_state import check_resume, load_state, save_state, start_accelerator

if TYPE_CHECKING:
    from accelerate import Accelerator
    from datasets import Dataset

    from cse.data import Pair
    from cse.templates import TokenTemplate


@dataclass(frozen=True)
class Run:
    """What a run is made of besides the encoder: settings, texts (columns "0", "1", "2"), dev pairs, source."""

    config: TrainConfig
    examples: Dataset
    dev: Sequence[Pair] | None
    source: str

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in one pass; a smaller set of texts makes one batch."""
        return max(1, len(self.examples) // self.config.batch_size)

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        whole = self.config.epochs * self.steps_per_epoch
        return min(whole, self.config.max_steps or whole)

    def recipe(self, encoder: Encoder) -> dict[str, Any]:
        """Everything that decides the result, as JSON values."""
        value = {
            **asdict(self.config), "method": to_json(encoder.method), "backbone": encoder.backbone_fingerprint,
            "data": Path(self.source).name, "examples": len(self.examples), "dev_pairs": len(self.dev or ()),
            "texts": digest(json.dumps([self.examples[:1000], self.dev])),
        }  # fmt: skip
        return json.loads(json.dumps(value))

    def batch(self, step: int) -> dict[str, list[str]]:
        """The texts of a step by column: a function of the seed and the step alone."""
        epoch, within = divmod(step, self.steps_per_epoch)
        order = _order(self.config.seed, epoch, len(self.examples))
        size = self.config.batch_size
        return self.examples[order[within * size : (within + 1) * size].tolist()]


@lru_cache(maxsize=1)
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    """The order (count,) in which an epoch goes through the examples."""
    return np.random.default_rng((seed, epoch)).permutation(count)


def view_texts(encoder: Encoder, batch: dict[str, list[str]]) -> list[list[str]]:
    """The texts of each view: the columns of supervised data, the same sentences for every view otherwise.

    Raises ValueError when supervised data has fewer than two columns.
    """
    if not encoder.method.supervised:
        return [batch["0"]] * len(encoder.views)
    columns = [batch[name] for name in sorted(batch)][: len(encoder.views)]
    if len(columns) < 2:
        raise ValueError("supervised training needs two or three columns: premise, entailed, contradicted")
    return columns


def draw_templates(encoder: Encoder, view: int, count: int, rng: np.random.Generator) -> list[TokenTemplate]:
    """One template per sentence, drawn evenly from the view's set (ConPVP 3.1); a single one is simply repeated."""
    choices = encoder.views[view]
    return [choices[i] for i in rng.integers(len(choices), size=count)] if len(choices) > 1 else [choices[0]] * count


def step_inputs(
    encoder: Encoder, batch: dict[str, list[str]], config: TrainConfig, step: int
) -> tuple[list[list[list[int]]], list[list[TokenTemplate]]]:
    """Token ids and templates of every view of a batch."""
    rng = np.random.default_rng((config.seed, step, 1))
    texts = view_texts(encoder, batch)
    templates = [draw_templates(encoder, view, len(column), rng) for view, column in enumerate(texts)]
    contents = [
        encoder.tokenise(column, chosen, config.max_length) for column, chosen in zip(texts, templates, strict=True)
    ]
    return contents, templates


def contrast(vectors: torch.Tensor, views: int, config: TrainConfig, accelerator: Accelerator) -> torch.Tensor:
    """The loss of (views * n, d) vectors, view after view, over the batch of all processes.

    Every process computes the whole loss, its own vectors alone carrying gradient, as in SimCSE; the sum of the
    processes' gradients is that of the batch.
    """
    parts = vectors.chunk(views)
    if accelerator.num_processes > 1:
        parts = tuple(_gather(part, accelerator) for part in parts)
    return info_nce(*parts, temperature=config.temperature)


def _gather(part: torch.Tensor, accelerator: Accelerator) -> torch.Tensor:
    everyone = list(accelerator.gather(part.detach()).chunk(accelerator.num_processes))
    everyone[accelerator.process_index] = part
    return torch.cat(everyone)


def masked_language_loss(
    encoder: Encoder, contents: Sequence[Sequence[int]], templates: Sequence[TokenTemplate]
) -> torch.Tensor:
    """Cross-entropy of 15 % masked sentence tokens (80/10/10) behind the same prefix (DCPCSE); the head is frozen."""
    rows, wanted, labels = [], [], []
    for number, (ids, template) in enumerate(zip(contents, templates, strict=True)):
        tokens = torch.tensor(ids, dtype=torch.long)
        changed, chosen = mask_tokens(tokens, encoder.tokenizer)
        rows.append(template.row(changed.tolist()))
        places = chosen.nonzero()[:, 0]
        wanted += [(number, len(template.before) + int(place)) for place in places]
        labels += tokens[places].tolist()
    if not wanted:
        return torch.zeros((), device=encoder.device)
    hidden = encoder.hidden(rows)
    row, column = torch.tensor(wanted, device=encoder.device).T
    return torch.nn.functional.cross_entropy(
        mlm_head(encoder.model)(hidden[row, column]).float(), torch.tensor(labels, device=encoder.device)
    )


def train(
    encoder: Encoder,
    run: Run,
    output: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    half: bool = False,
    precision: str = "auto",
    report: Callable[[dict[str, Any]], None] = lambda entry: None,
) -> dict[str, Any]:
    """Train `encoder` and write a checkpoint folder to `output`; a summary with the dev scores comes back.

    With dev pairs the best evaluation is kept, without them the last state. `report` gets one dictionary per step,
    and one with a "note" where a resumed run begins again. Until it is done the work lies in `output.partial`; a
    killed run goes on from its last evaluation with `resume` and ends where it would have ended. `overwrite` replaces
    a checkpoint and drops an unfinished run; see `check_output` for what is refused.
    """
    accelerator = start_accelerator(precision)
    work, first = partial_folder(output), accelerator.is_main_process
    if first:
        check_output(output, resume=resume, overwrite=overwrite)
    if run.config.batch_size % accelerator.num_processes:
        raise ValueError(
            f"batch size {run.config.batch_size} cannot be shared by {accelerator.num_processes} processes"
        )
    if run.config.dropout is not None:
        _set_dropout(encoder, run.config.dropout)
    encoder.to(accelerator.device).select_learned(run.config.freeze_embeddings)
    learned = encoder.learned(training=True)
    optimizer = torch.optim.AdamW(learned.values(), lr=run.config.learning_rate, weight_decay=0.0, fused=True)
    model, _ = accelerator.prepare(encoder, optimizer)
    recipe = {**run.recipe(encoder), "precision": accelerator.mixed_precision}
    if resume and check_resume(work, begun=True, report=report if first else lambda entry: None):
        meta = load_state(work, learned, optimizer, recipe)
    else:
        meta = {
            "step": 0,
            "recipe": recipe,
            "seconds": 0.0,
            "dev": {"start": _dev_score(encoder, run)} if run.dev else {},
        }
    with open_log(work, recipe, meta["step"], first) as log:
        for step in range(meta["step"], run.steps):
            started = time.perf_counter()
            entry = {"step": step + 1, "loss": _step(accelerator, model, optimizer, run, step)}
            due = (step + 1) % run.config.eval_every == 0 or step + 1 == run.steps
            improved = due and _evaluate(encoder, run, meta, step + 1)
            if due:
                entry["dev"] = meta["dev"].get("last")
            seconds = time.perf_counter() - started
            meta["seconds"] += seconds
            entry["sentences_per_second"] = round(run.config.batch_size / seconds, 1)
            log.write(json.dumps(entry) + "\n")  # before the state: what a resumed run repeats is cut off again
            log.flush()
            if first and improved:
                save(encoder, work / BEST, _info(run, meta), half=half)
            if first and due:
                save_state(work, learned, optimizer, meta)
            report({**entry, "best": meta["dev"].get("best")})
    if first:
        _publish(work, Path(output), overwrite)
    return {"output": str(output), **meta["dev"], "steps": run.steps, "seconds": round(meta["seconds"], 1)}


def learning_rate(run: Run, step: int) -> float:
    """Linear decay to zero without warm-up, as in the released scripts."""
    return run.config.learning_rate * (1 - step / run.steps)


def _set_dropout(encoder: Encoder, rate: float) -> None:
    set_dropout(encoder.model, rate)
    encoder.dropout.p = rate  # the prefix's, which is no part of the backbone


def _step(accelerator: Accelerator, model: Any, optimizer: torch.optim.Optimizer, run: Run, step: int) -> float:
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(run, step)
    encoder: Encoder = accelerator.unwrap_model(model)
    rank, share = accelerator.process_index, run.config.batch_size // accelerator.num_processes
    torch.manual_seed(int(np.random.default_rng((run.config.seed, step, rank)).integers(2**62)))
    model.train()
    batch = {name: texts[rank * share : (rank + 1) * share] for name, texts in run.batch(step).items()}
    contents, templates = step_inputs(encoder, batch, run.config, step * accelerator.num_processes + rank)
    flat_contents, flat_templates = list(chain(*contents)), list(chain(*templates))
    vectors = model(flat_contents, flat_templates)
    loss = contrast(vectors, len(contents), run.config, accelerator)
    scaled = loss * accelerator.num_processes  # the processes' gradients are averaged, and should be summed
    if encoder.method.mlm_weight:
        with accelerator.autocast():
            masked = masked_language_loss(encoder, flat_contents, flat_templates)
        masked = masked * mlm_weight(encoder.method.mlm_weight, step)
        loss, scaled = loss + masked, scaled + masked
    accelerator.backward(scaled)
    accelerator.clip_grad_norm_(model.parameters(), run.config.clip)
    optimizer.step()
    optimizer.zero_grad()
    value = float(loss.detach())
    if not np.isfinite(value):
        raise ValueError(f"the loss became {value} at step {step + 1}; lower `learning_rate`")
    return value


def _dev_score(encoder: Encoder, run: Run) -> float:
    encoder.eval()
    return round(spearman(lambda texts: encoder.encode(texts, batch_size=256), run.dev or ()), 3)


def _evaluate(encoder: Encoder, run: Run, meta: dict[str, Any], step: int) -> bool:
    """Whether the state after `step` is the one to keep; step and dev scores in `meta` are brought up to date."""
    meta["step"] = step
    if not run.dev:
        return bool(meta["step"] == run.steps)
    dev = meta["dev"]
    dev["last"] = _dev_score(encoder, run)
    if not dev["last"] > dev.get("best", -np.inf):
        return False
    dev |= {"best": dev["last"], "best_step": meta["step"]}
    return True


def _info(run: Run, meta: dict[str, Any]) -> dict[str, Any]:
    settings = {key: value for key, value in meta["recipe"].items() if key not in ("method", "backbone")}
    selection = "best on dev" if run.dev else "last step; nothing was selected"
    return {"settings": settings, "selection": selection, "dev": meta["dev"]}


def _publish(work: Path, output: Path, overwrite: bool) -> None:
    """Swap the best checkpoint and the log in for `output`, unless something came there during the run."""
    check_output(output, resume=True, overwrite=overwrite)

    def fill(target: Path) -> None:
        for file in [*(work / BEST).iterdir(), work / LOG]:
            shutil.copy2(file, target / file.name)

    write_folder(output, fill)
    shutil.rmtree(work)
