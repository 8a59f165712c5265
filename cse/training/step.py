"""One training step: the views of a batch, their token rows, and the loss of their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from cse.encoder.backbone import mlm_head, on_device, row_limit, set_dropout
from cse.encoder.rows import TokenRows
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.method import Contrast
from cse.methods.settings import TrainConfig
from cse.training.losses import energy_hinge, info_nce, mask_tokens, nt_xent
from cse.training.tokens import TokenisedTexts, form_of, text_forms

if TYPE_CHECKING:
    from accelerate import Accelerator

    from cse.methods.method import Method

MAX_REPEATED_TOKENS = 10  # exclusive, as in ESimCSE's released code
NO_LABEL = -1  # of a token that is not to be predicted


def augmented(
    rows: TokenRows, views: int, method: Method, width: int, room: int, rng: np.random.Generator
) -> TokenRows:
    """The rows of all views, one view after the other, augmented as `method` says.

    Embeddings have `width` dimensions, and `room` tokens fit in a row.
    """
    count = len(rows) // views
    first, second = np.split(np.arange(2 * count), 2)
    if method.cutoff:
        rows = cut_off(rows, first, method.cutoff, width, rng)
    if method.repetition:
        rows = repeated(rows, second, method.repetition, room, rng)
    if method.shuffled:  # the positions, also of the special tokens (ConSERT)
        tokens = rows.tokens.copy()
        for number in second:
            rng.shuffle(tokens[2, rows.offsets[number] : rows.offsets[number + 1]])
        rows = replace(rows, tokens=tokens)
    return rows


def repeated(rows: TokenRows, numbers: np.ndarray, share: float, room: int, rng: np.random.Generator) -> TokenRows:
    """The rows, n distinct tokens of those of some `numbers` repeated in place, never the first or the last (ESimCSE
    3.1).

    n is drawn uniformly from 0 to min(10, floor(share * length)) - 1, as in the released code (the paper's bound is
    max(2, ...)), and reduced to the tokens that fit in `room`.
    """
    counts = np.ones_like(rows.ids)
    for start, length in zip(rows.offsets[numbers].tolist(), rows.sizes[numbers].tolist(), strict=True):
        most = min(MAX_REPEATED_TOKENS, int(share * length))
        count = min(int(rng.integers(most)) if most else 0, room - length)
        if count > 0:
            counts[start + 1 + rng.choice(length - 2, count, replace=False)] = 2
    longer = rows.repeated(counts)
    longer.tokens[2] = np.arange(longer.offsets[-1]) - np.repeat(longer.offsets[:-1], longer.sizes)
    return longer


def cut_off(rows: TokenRows, numbers: np.ndarray, share: float, width: int, rng: np.random.Generator) -> TokenRows:
    """The rows, floor(share * width) embedding dimensions of those of some `numbers` cut (ConSERT)."""
    cut = np.zeros((len(rows), width), bool)
    for number in numbers:
        cut[number, rng.permutation(width)[: int(share * width)]] = True
    return replace(rows, cut=cut)


def set_up(encoder: TorchEncoder, config: TrainConfig) -> None:
    """Set the encoder's dropout and `chunk` for training, and which of its parameters have gradients."""
    if config.dropout is not None:
        set_dropout(encoder.model, config.dropout)
        encoder.dropout.p = config.dropout  # of the prefix, which is not part of the backbone
    encoder.chunk = config.chunk
    encoder.select_learned(config.freeze_embeddings)


class StepData(NamedTuple):
    """The inputs of a step: how many `views` it has, the rows of all of them in turn, `plain` and augmented."""

    views: int
    plain: TokenRows
    rows: TokenRows


def step_data(
    encoder: TorchEncoder, batch: Mapping[str, list[str]] | TokenisedTexts, config: TrainConfig, step: int
) -> StepData:
    """The inputs of a step on a batch: a function of the seed and the step."""
    texts = batch if isinstance(batch, TokenisedTexts) else TokenisedTexts.of(encoder, batch, config)
    first = {form: texts.count * number for number, form in enumerate(text_forms(encoder, texts.columns, config))}
    rng = np.random.default_rng((config.seed, step, 1))
    templates, numbers, count = [], [], len(texts.numbers)
    for column, view in zip(texts.columns, encoder.views, strict=False):  # pairs have no third view
        # One template per sentence, drawn uniformly from the view's set (ConPVP 3.1).
        drawn = rng.integers(len(view), size=count) if len(view) > 1 else np.zeros(count, int)
        templates += (chosen := [view[number] for number in drawn])
        first_of = {id(template): first[form_of(column, template, config)] for template in view}
        numbers.append(texts.numbers + [first_of[id(template)] for template in chosen])
    plain = TokenRows.of_ids(*texts.file.texts(np.concatenate(numbers)), templates)
    width = encoder.model.get_input_embeddings().embedding_dim
    room = row_limit(encoder.model) - encoder.reading.prefix
    rng = np.random.default_rng((config.seed, step, 2))
    views = len(texts.columns)
    return StepData(views, plain, augmented(plain, views, encoder.method, width, room, rng))


def contrast(
    vectors: torch.Tensor,
    views: int,
    config: TrainConfig,
    accelerator: Accelerator,
    *,
    kind: Contrast = Contrast.INFO_NCE,
    queue: torch.Tensor | None = None,
) -> torch.Tensor:
    """The loss of (views * n, d) vectors, view after view, over the batch of all processes.

    The rows of `queue` (K, d) are additional negatives of every anchor, besides those of a third view.
    Every process computes the whole loss, with gradients through its own vectors only, as in SimCSE; the sum of the
    processes' gradients is that of the batch.
    """
    parts = vectors.chunk(views)
    if accelerator.num_processes > 1:
        gathered = [list(accelerator.gather(part.detach()).chunk(accelerator.num_processes)) for part in parts]
        for everyone, part in zip(gathered, parts, strict=True):
            everyone[accelerator.process_index] = part  # the one part that has gradients
        parts = tuple(map(torch.cat, gathered))
    if queue is not None:
        parts = (*parts[:2], torch.cat([*parts[2:], queue]))
    loss = nt_xent if kind is Contrast.NT_XENT else info_nce
    value = loss(*parts, temperature=config.temperature)
    return value + config.hinge * energy_hinge(*parts) if config.hinge else value


def masked_rows(encoder: TorchEncoder, rows: TokenRows) -> tuple[TokenRows, TokenRows]:
    """Rows with 15 % of their sentence tokens masked (80/10/10), and the rows of these tokens' ids, elsewhere -1."""
    inside = rows.inside
    sentences = np.split(rows.ids[inside].astype(np.int64), np.cumsum(rows.lengths)[:-1])
    drawn = [mask_tokens(torch.from_numpy(ids), encoder.tokenizer) for ids in sentences]
    changed, chosen = (torch.cat(parts).numpy() for parts in zip(*drawn, strict=True))
    masked, labels = replace(rows, tokens=rows.tokens.copy()), replace(rows, tokens=rows.tokens.copy())
    masked.ids[inside], labels.ids[:] = changed, NO_LABEL
    labels.ids[inside] = np.where(chosen, rows.ids[inside], NO_LABEL)
    return masked, labels


def masked_language_loss(encoder: TorchEncoder, rows: TokenRows) -> torch.Tensor:
    """Cross-entropy of 15 % masked sentence tokens (80/10/10) behind the same prefix (DCPCSE); the head is frozen."""
    masked, labels = masked_rows(encoder, rows)
    count = int(np.count_nonzero(labels.ids != NO_LABEL))
    if not count:
        return torch.zeros((), device=encoder.device)

    def summed_losses(numbers: Sequence[int]) -> torch.Tensor:
        """(n,) the sum of the cross-entropies of each row's masked tokens."""
        hidden = encoder.hidden(masked[numbers])
        table = labels[numbers].tables(NO_LABEL)[0][0]
        chosen = np.nonzero(table != NO_LABEL)  # on the host, which would wait for a GPU to count them
        row, column, ids = on_device(np.stack([*chosen, table[chosen]]), hidden.device)
        logits = mlm_head(encoder.model)(hidden[row, column]).float()
        losses = torch.nn.functional.cross_entropy(logits, ids, reduction="none")
        return losses.new_zeros(len(numbers)).index_add(0, row, losses)

    return encoder.grouped(rows.sizes.tolist(), summed_losses).sum() / count
