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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cse.backbone import describe, load_backbone, row_limit, set_dropout
from cse.files import write_folder
from cse.model_names import lasting_name, location
from cse.pretraining.batches import FORMS, IGNORED, Rows, bag_loss, draw_rows, masked_loss, masked_rows, rarity, read
from cse.pretraining.corpus import TokenFile, tokenise, train_tokenizer
from cse.pretraining.flops import matrix_rate, training_flops
from cse.pretraining.word_vectors import word_vectors
from cse.templates import PLAIN, TokenTemplate, render
from cse.training_state import SOURCE, check_resume, claim, load_state, save_state, start_accelerator

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EVAL_ROWS = 512
EVAL_LENGTH = 64
RECORD = "pretraining.json"


@dataclass(frozen=True)
class PretrainConfig:
    """One pretraining run. Rows of the mixed `lengths` get equal shares of the steps.

    `bag_weight`: share of the bag-of-words term (`cse.pretraining.batches`); 0 is masked language modelling alone. A
    step's rows go through the model in `accumulate` parts, which changes the memory it needs and not the result.
    """

    vocabulary: int = 12_000
    layers: int = 4
    hidden: int = 256
    heads: int = 4
    positions: int = 256
    tokens: int = 30_000_000
    batch_tokens: int = 4096
    accumulate: int = 1
    lengths: tuple[int, ...] = (16, 32, 64, 128)
    learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    head_start: bool = True
    bag_weight: float = 1.0
    seed: int = 42

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return max(1, self.tokens // self.batch_tokens)


def new_model(config: PretrainConfig, tokenizer: PreTrainedTokenizerBase, corpus: TokenFile) -> PreTrainedModel:
    """A fresh BERT without dropout, its output bias at the unigram log-probabilities.

    With `head_start` its embeddings are the corpus's own counted word vectors instead of noise.
    """
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(config.seed)
    model: Any = BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=4 * config.hidden,
            max_position_embeddings=config.positions,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    counts = torch.from_numpy(corpus.counts(len(tokenizer)))
    with torch.no_grad():
        model.cls.predictions.bias.copy_(((counts + 0.5) / (counts.sum() + 0.5 * len(counts))).log())
        if config.head_start:
            vectors = word_vectors(np.asarray(corpus.ids), len(tokenizer), config.hidden, seed=config.seed)
            model.get_input_embeddings().weight.copy_(vectors)
    return model


def suit_device(model: PreTrainedModel, device: torch.device) -> None:
    """Compile the model's blocks on a GPU; on a CPU take plain attention, since the fused one's backward is slow.

    Measured in docs/decisions.md: there it is half again as fast, and compiling gains nothing.
    """
    if device.type == "cpu":
        model.set_attn_implementation("eager")
    if device.type == "cuda":
        encoder: Any = model.base_model.encoder
        for block in encoder.layer:
            block.compile()


def learning_rate(config: PretrainConfig, step: int) -> float:
    """Linear warm-up, then linear decay to zero at the last step."""
    warm = max(1, round(config.warmup * config.steps))
    return config.learning_rate * min((step + 1) / warm, (config.steps - step) / max(1, config.steps - warm))


def prepare(
    corpora: list[Path], output: Path, config: PretrainConfig, init: str | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, TokenFile, TokenFile]:
    """Tokenizer, tokenised corpus and starting model; what an earlier run left in `output` is used again."""
    from transformers import AutoTokenizer

    tokens, saved = output / "corpus", output / "tokenizer"
    if init:
        model, tokenizer = load_backbone(location(init))
        set_dropout(model, 0.0)
    elif saved.is_dir():
        tokenizer = AutoTokenizer.from_pretrained(saved)
    else:
        tokenizer = train_tokenizer(corpora, config.vocabulary)
        write_folder(saved, lambda folder: tokenizer.save_pretrained(folder))
    if len(tokenizer) > np.iinfo(np.uint16).max:
        raise ValueError(
            f"a vocabulary of {len(tokenizer)} does not fit 16-bit token files; give a `vocabulary` below 65,536"
        )
    if not tokens.is_dir():
        tokenise(corpora, tokenizer, tokens)
    train, valid = TokenFile.open(tokens, "train"), TokenFile.open(tokens, "valid")
    if not init:
        model = new_model(config, tokenizer, train)
    return model, tokenizer, train, valid


def evaluate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, valid: TokenFile, device: torch.device
) -> dict[str, float]:
    """Held-out loss (nats) and accuracy over a fixed draw of rows and masks."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    length = min(EVAL_LENGTH, len(valid.ids) + 2, row_limit(model))
    text = torch.from_numpy(valid.rows(EVAL_ROWS, length - 2, rng))
    inputs, labels = masked_rows(text, render(PLAIN, tokenizer), tokenizer, generator)
    model.eval()
    parts = []
    with torch.no_grad():
        for rows in Rows(inputs, labels, 0, text).split(64):
            logits, _ = read(model, rows.to(device), bag=False)
            wanted = rows.labels[rows.labels != IGNORED].to(device)
            parts.append((float(masked_loss(logits, wanted)), float((logits.argmax(-1) == wanted).float().mean())))
    model.train()
    loss, accuracy = np.mean(parts, axis=0)
    return {"held_out_loss": round(float(loss), 4), "held_out_accuracy": round(float(accuracy), 4)}


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
    before = _record(init)
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
    return _finish(output, plain, tokenizer, {**meta, "before": before}, str(accelerator.device))


@dataclass(frozen=True)
class Lesson:
    """What steps draw from: the text, the `forms` it is read in, the words' `weights` (V,), the `longest` row."""

    config: PretrainConfig
    text: TokenFile
    tokenizer: PreTrainedTokenizerBase
    forms: list[TokenTemplate]
    weights: torch.Tensor
    longest: int

    @classmethod
    def of(
        cls, config: PretrainConfig, text: TokenFile, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel
    ) -> Lesson:
        """The lesson of a run, its weights where the model is."""
        forms = [render(form, tokenizer) for form in (FORMS if config.bag_weight else (PLAIN,))]
        weights = rarity(text.counts(len(tokenizer)), tokenizer.all_special_ids).to(model.device)
        return cls(config, text, tokenizer, forms, weights, row_limit(model))

    def rows(self, step: int) -> Rows:
        """The rows of a step: a function of the seed and the step alone."""
        rng = np.random.default_rng((self.config.seed, step))
        length = int(rng.choice(self.config.lengths))
        form, tokens = self.forms[rng.integers(len(self.forms))], self.config.batch_tokens
        return draw_rows(self.text, form, self.tokenizer, tokens=tokens, length=length, longest=self.longest, rng=rng)

    def flops(self, model: PreTrainedModel) -> float:
        """FLOP of a token, averaged over the mixed lengths."""
        lengths = [min(length, self.longest) for length in self.config.lengths]
        return float(np.mean([training_flops(model, length, bag=self.config.bag_weight > 0) for length in lengths]))


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


def _record(init: str | None) -> dict[str, Any] | None:
    """What is known of the pretraining that a run went on from."""
    path = Path(location(init or "")) / RECORD
    return json.loads(path.read_text()) if init and path.is_file() else None


def _finish(
    output: Path, model: Any, tokenizer: PreTrainedTokenizerBase, meta: dict[str, Any], device: str
) -> dict[str, Any]:
    set_dropout(model, 0.1)  # contrastive training needs the noise
    result = {**meta, "device": device, "model": describe(model), "torch": torch.__version__}
    tokenizer.model_max_length = model.config.max_position_embeddings

    def fill(folder: Path) -> None:
        model.half().save_pretrained(folder, max_shard_size="9MB")
        tokenizer.save_pretrained(folder)
        (folder / RECORD).write_text(json.dumps(result, indent=1))

    write_folder(output / "model", fill)
    return result
