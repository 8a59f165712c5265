"""Masked-language-model pretraining of a small BERT on text files, on a laptop CPU or a GPU.

Text is tokenised once into a flat memory-mapped array. A row starts at the beginning of a sentence and runs on over
the following ones to its full length, so nothing is padded; lengths are mixed because short inputs are the use.
`cse.rows` says what a row is and what it teaches.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cse.backbone import describe, first_position, load_backbone, mlm_head
from cse.cooccurrence import word_vectors
from cse.rows import FORMS, IGNORED, Rows, bag_loss, draw_rows, masked_rows, rarity
from cse.speed import matrix_rate, training_flops
from cse.state import STATE_FOLDER, check_folder, load_state, save_state, start_accelerator, write_folder
from cse.templates import PLAIN, TokenTemplate, render
from cse.wordpieces import TokenFile, tokenise, train_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EVAL_ROWS = 512
EVAL_LENGTH = 64
SOURCE, RECORD = "source.json", "pretraining.json"


@dataclass(frozen=True)
class PretrainConfig:
    """One pretraining run. Rows of the mixed `lengths` get equal shares of the steps.

    `bag_weight`: share of the bag-of-words term (`cse.rows`); 0 is masked language modelling alone. A step's rows go
    through the model in `accumulate` parts, which changes the memory it needs and not the result.
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


def token_counts(corpus: TokenFile, tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """How often (V,) every token occurs, float32."""
    return np.bincount(corpus.ids, minlength=len(tokenizer)).astype(np.float32)


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
    counts = torch.from_numpy(token_counts(corpus, tokenizer))
    with torch.no_grad():
        model.cls.predictions.bias.copy_(((counts + 0.5) / (counts.sum() + 0.5 * len(counts))).log())
        if config.head_start:
            vectors = word_vectors(np.asarray(corpus.ids), len(tokenizer), config.hidden, seed=config.seed)
            model.get_input_embeddings().weight.copy_(vectors)
    return model


def read(model: PreTrainedModel, rows: Rows, bag: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (n, V) of the n masked positions and, with `bag`, (B, V) where the rows are read, else (0, V).

    Only these positions reach the vocabulary.
    """
    hidden = model.base_model(input_ids=rows.inputs, attention_mask=torch.ones_like(rows.inputs)).last_hidden_state
    masked = hidden[rows.labels != IGNORED]
    spoken = hidden[:, rows.at] if bag else masked[:0]
    logits = mlm_head(model)(torch.cat([masked, spoken]))
    return logits[: len(masked)], logits[len(masked) :]


def masked_loss(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of logits (n, V); 0 where n is, as a few short rows may have nothing to guess."""
    total = torch.nn.functional.cross_entropy(logits.float(), wanted, reduction="sum")
    return total / max(1, len(wanted))


def suit_device(model: PreTrainedModel, device: torch.device) -> None:
    """Compile the model's blocks on a GPU; on a CPU take plain attention, since the fused one's backward is slow.

    Measured in README, decisions: there it is half again as fast, and compiling gains nothing.
    """
    if device.type == "cpu":
        model.set_attn_implementation("eager")
    if device.type == "cuda":
        encoder: Any = model.base_model.encoder
        for block in encoder.layer:
            block.compile()


def row_limit(model: PreTrainedModel) -> int:
    """The longest row the model has positions for."""
    return int(model.config.max_position_embeddings) - first_position(model)


def learning_rate(config: PretrainConfig, step: int) -> float:
    """Linear warm-up, then linear decay to zero at the last step."""
    warm = max(1, round(config.warmup * config.steps))
    return config.learning_rate * min((step + 1) / warm, (config.steps - step) / max(1, config.steps - warm))


def claim(output: Path, source: dict[str, Any], resume: bool, overwrite: bool) -> None:
    """Make `output` a folder for this text and vocabulary, or raise ValueError where it holds something else."""
    record = output / SOURCE
    check_folder(output)
    if output.is_dir() and any(output.iterdir()):
        if not record.is_file():
            raise ValueError(f"{output} already holds something else; give another --output")
        if json.loads(record.read_text()) != source:
            raise ValueError(f"{output} was begun with other text, vocabulary or --init; give another --output")
        if not (resume or overwrite) and ((output / "model").exists() or (output / STATE_FOLDER).exists()):
            raise ValueError(f"{output} already holds a run; --resume goes on with it, --overwrite begins anew")
    if overwrite:
        shutil.rmtree(output / STATE_FOLDER, ignore_errors=True)  # or a later --resume would go on with the old run
    output.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(source))


def prepare(
    corpora: list[Path], output: Path, config: PretrainConfig, init: str | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, TokenFile, TokenFile]:
    """Tokenizer, tokenised corpus and starting model; what an earlier run left in `output` is used again."""
    from transformers import AutoTokenizer

    tokens, saved = output / "corpus", output / "tokenizer"
    if init:
        model, tokenizer = load_backbone(init, dropout=0.0)
    elif saved.is_dir():
        tokenizer = AutoTokenizer.from_pretrained(saved)
    else:
        tokenizer = train_tokenizer(corpora, config.vocabulary)
        write_folder(saved, lambda folder: tokenizer.save_pretrained(folder))
    if len(tokenizer) > np.iinfo(np.uint16).max:
        raise ValueError(f"a vocabulary of {len(tokenizer)} does not fit 16-bit token files; use one below 65,536")
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

    `report` gets one dictionary per evaluation. A killed run goes on from its last evaluation with `resume`.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    output = Path(output)
    texts = [[path.name, path.stat().st_size] if path.is_file() else [path.name, 0] for path in corpora]
    claim(output, {"texts": texts, "vocabulary": config.vocabulary, "init": init}, resume, overwrite)
    resume = resume and (output / STATE_FOLDER).is_dir()  # a run killed before its first evaluation begins again
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
    recipe = json.loads(json.dumps({**asdict(config), "init": init, "corpora": [path.name for path in corpora]}))
    learned = dict(plain.named_parameters())
    meta = (
        load_state(output, learned, optimizer, recipe)
        if resume
        else {"step": 0, "curve": [], "recipe": recipe, "seconds": 0.0}
    )
    longest = row_limit(plain)
    suit_device(plain, accelerator.device)
    half = accelerator.mixed_precision == "bf16"
    meta["matrix_rate"] = matrix_rate(accelerator.device, torch.bfloat16 if half else torch.float32)
    flops = training_flops(plain, float(np.mean([min(length, longest) for length in config.lengths])))
    forms = [render(form, tokenizer) for form in (FORMS if config.bag_weight else (PLAIN,))]
    weights = rarity(token_counts(train, tokenizer), tokenizer.all_special_ids).to(accelerator.device)
    started = time.perf_counter() - meta["seconds"]
    for step in range(meta["step"], config.steps):
        batch = _draw(train, forms, tokenizer, config, step, longest)
        loss = _step(accelerator, model, optimizer, batch, weights, config, learning_rate(config, step))
        done = step + 1
        if done % eval_every == 0 or done == config.steps:
            with accelerator.autocast():
                scores = evaluate(plain, tokenizer, valid, accelerator.device)
            meta["seconds"] = time.perf_counter() - started
            speed = done * config.batch_tokens / meta["seconds"]
            entry = {
                "step": done, "tokens": done * config.batch_tokens, "loss": round(loss.item(), 4), **scores,
                "tokens_per_second": round(speed), "mfu": round(speed * flops / meta["matrix_rate"], 3),
            }  # fmt: skip
            if not math.isfinite(entry["loss"]):
                raise ValueError(f"the loss became {entry['loss']} at step {done}; lower --learning-rate")
            meta = {**meta, "step": done, "curve": [*meta["curve"], entry]}
            save_state(output, learned, optimizer, meta)
            report(entry)
    return _finish(output, plain, tokenizer, {**meta, "before": before}, str(accelerator.device))


def _draw(
    train: TokenFile,
    forms: list[TokenTemplate],
    tokenizer: PreTrainedTokenizerBase,
    config: PretrainConfig,
    step: int,
    longest: int,
) -> Rows:
    rng = np.random.default_rng((config.seed, step))
    length = int(rng.choice(config.lengths))
    form = forms[rng.integers(len(forms))]
    return draw_rows(train, form, tokenizer, tokens=config.batch_tokens, length=length, longest=longest, rng=rng)


def _step(
    accelerator: Any,
    model: Any,
    optimizer: Any,
    batch: Rows,
    weights: torch.Tensor,
    config: PretrainConfig,
    rate: float,
) -> torch.Tensor:
    for group in optimizer.param_groups:
        group["lr"] = rate
    batch = batch.to(accelerator.device)
    total = (batch.labels != IGNORED).sum().clamp(min=1)
    whole = torch.zeros((), device=accelerator.device)
    for rows in batch.split(-(-len(batch.inputs) // config.accumulate)):
        wanted = rows.labels[rows.labels != IGNORED]
        with accelerator.autocast():
            logits, spoken = read(model, rows, bag=config.bag_weight > 0)
            # means over the step's masked tokens and rows, not over its parts'
            share = masked_loss(logits, wanted) * len(wanted) / total
            whole += share.detach()
            if config.bag_weight:
                share = share + config.bag_weight * bag_loss(spoken, rows.bag, weights) * len(rows.bag) / len(batch.bag)
        accelerator.backward(share)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return whole


def _record(init: str | None) -> dict[str, Any] | None:
    """What is known of the pretraining that a run went on from."""
    path = Path(init or "") / RECORD
    return json.loads(path.read_text()) if init and path.is_file() else None


def _finish(
    output: Path, model: Any, tokenizer: PreTrainedTokenizerBase, meta: dict[str, Any], device: str
) -> dict[str, Any]:
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = (
        0.1  # contrastive training needs the noise
    )
    result = {**meta, "device": device, "model": describe(model), "torch": torch.__version__}
    tokenizer.model_max_length = model.config.max_position_embeddings

    def fill(folder: Path) -> None:
        model.half().save_pretrained(folder, max_shard_size="9MB")
        tokenizer.save_pretrained(folder)
        (folder / RECORD).write_text(json.dumps(result, indent=1))

    write_folder(output / "model", fill)
    return result
