"""One training step: the views of a batch, their token rows, and the loss of their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from cse.encoder.backbone import mlm_head, row_limit, set_dropout
from cse.encoder.rows import Row
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.method import Contrast
from cse.methods.settings import TrainConfig
from cse.training.losses import energy_hinge, info_nce, mask_tokens, nt_xent

if TYPE_CHECKING:
    from accelerate import Accelerator

    from cse.encoder.rows import Row, TokenTemplate
    from cse.methods.method import Method

MAX_REPEATED_TOKENS = 10  # exclusive, as in ESimCSE's released code


def augmented(
    views: Sequence[Sequence[Row]], method: Method, width: int, room: int, rng: np.random.Generator
) -> list[list[Row]]:
    """The rows of every view, augmented as `method` says.

    Embeddings have `width` dimensions, and `room` tokens fit in a row.
    """
    first, second, *others = (list(rows) for rows in views)
    if method.cutoff:
        first = [cut_off(row, method.cutoff, width, rng) for row in first]
    if method.repetition:
        second = [repeated(row, method.repetition, room, rng) for row in second]
    if method.shuffled:
        second = [shuffled(row, rng) for row in second]
    return [first, second, *others]


def repeated(row: Row, share: float, room: int, rng: np.random.Generator) -> Row:
    """The row with n distinct tokens repeated in place, never the first or the last (ESimCSE 3.1).

    n is drawn uniformly from 0 to min(10, floor(share * length)) - 1, as in the released code (the paper's bound is
    max(2, ...)), and reduced to the tokens that fit in `room`.
    """
    length = len(row.ids)
    most = min(MAX_REPEATED_TOKENS, int(share * length))
    count = min(int(rng.integers(most)) if most else 0, room - length)
    twice = set((1 + rng.choice(length - 2, count, replace=False)).tolist()) if count > 0 else set()
    order = [position for position in range(length) for _ in range(1 + (position in twice))]
    return Row(
        tuple(row.ids[position] for position in order),
        tuple(row.slots[position] for position in order),
        tuple(range(len(order))),
        order.index(row.pool_at),
    )


def shuffled(row: Row, rng: np.random.Generator) -> Row:
    """The row with its positions permuted, including those of the special tokens (ConSERT)."""
    return replace(row, positions=tuple(rng.permutation(row.positions).tolist()))


def cut_off(row: Row, share: float, width: int, rng: np.random.Generator) -> Row:
    """The row with floor(share * width) embedding dimensions marked to be zeroed (ConSERT's feature cut-off)."""
    return replace(row, cut=tuple(rng.permutation(width)[: int(share * width)].tolist()))


CONTRAST_LOSSES: dict[Contrast, Callable[..., torch.Tensor]] = {Contrast.INFO_NCE: info_nce, Contrast.NT_XENT: nt_xent}


def set_up(encoder: TorchEncoder, config: TrainConfig) -> None:
    """Set the encoder's dropout and `chunk` for training, and which of its parameters have gradients."""
    if config.dropout is not None:
        set_dropout(encoder.model, config.dropout)
        encoder.dropout.p = config.dropout  # of the prefix, which is not part of the backbone
    encoder.chunk = config.chunk
    encoder.select_learned(config.freeze_embeddings)


def view_texts(encoder: TorchEncoder, batch: dict[str, list[str]]) -> list[list[str]]:
    """The texts of each view: the columns of supervised data, the same sentences for every view otherwise.

    Raises ValueError when supervised data has fewer than two columns.
    """
    if not encoder.method.supervised:
        return [batch["0"]] * len(encoder.views)
    columns = [batch[name] for name in sorted(batch)][: len(encoder.views)]
    if len(columns) < 2:
        raise ValueError("supervised training needs two or three columns: premise, entailed, contradicted")
    return columns


def draw_templates(encoder: TorchEncoder, view: int, count: int, rng: np.random.Generator) -> list[TokenTemplate]:
    """One template per sentence, drawn uniformly from the view's set (ConPVP 3.1), which may have only one."""
    choices = encoder.views[view]
    return [choices[i] for i in rng.integers(len(choices), size=count)] if len(choices) > 1 else [choices[0]] * count


def step_inputs(
    encoder: TorchEncoder, batch: dict[str, list[str]], config: TrainConfig, step: int
) -> tuple[list[list[list[int]]], list[list[TokenTemplate]]]:
    """Token ids and templates of every view of a batch."""
    rng = np.random.default_rng((config.seed, step, 1))
    texts = view_texts(encoder, batch)
    templates = [draw_templates(encoder, view, len(column), rng) for view, column in enumerate(texts)]
    # Each method's released code decides whether `max_length` counts the template and its special tokens.
    contents = [
        encoder.tokenise(column, chosen, chosen[0].content_limit(config.max_length))
        for column, chosen in zip(texts, templates, strict=True)
    ]
    return contents, templates


def step_rows(
    encoder: TorchEncoder,
    contents: Sequence[Sequence[Sequence[int]]],
    templates: Sequence[Sequence[TokenTemplate]],
    config: TrainConfig,
    step: int,
) -> list[list[Row]]:
    """The augmented rows of every view: a function of the seed and the step."""
    rows = [
        [template.row(ids) for ids, template in zip(*view, strict=True)]
        for view in zip(contents, templates, strict=True)
    ]
    width = encoder.model.get_input_embeddings().embedding_dim
    room = row_limit(encoder.model) - encoder.reading.prefix
    return augmented(rows, encoder.method, width, room, np.random.default_rng((config.seed, step, 2)))


class StepData(NamedTuple):
    """The inputs of a step: token ids, templates and rows of every view, one of each per text."""

    contents: list[list[list[int]]]
    templates: list[list[TokenTemplate]]
    rows: list[list[Row]]


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
    loss = CONTRAST_LOSSES[kind](*parts, temperature=config.temperature)
    return loss + config.hinge * energy_hinge(*parts) if config.hinge else loss


def masked_rows(
    encoder: TorchEncoder, contents: Sequence[Sequence[int]], templates: Sequence[TokenTemplate]
) -> tuple[list[Row], list[list[tuple[int, int]]]]:
    """Rows with 15 % of their sentence tokens masked (80/10/10), and the place and id of each of these tokens."""
    rows, targets = [], []
    for ids, template in zip(contents, templates, strict=True):
        tokens = torch.tensor(ids, dtype=torch.long)
        changed, chosen = mask_tokens(tokens, encoder.tokenizer)
        rows.append(template.row(changed.tolist()))
        targets.append([(len(template.before) + int(position), ids[position]) for position in chosen.nonzero()[:, 0]])
    return rows, targets


def masked_language_loss(
    encoder: TorchEncoder, contents: Sequence[Sequence[int]], templates: Sequence[TokenTemplate]
) -> torch.Tensor:
    """Cross-entropy of 15 % masked sentence tokens (80/10/10) behind the same prefix (DCPCSE); the head is frozen."""
    rows, targets = masked_rows(encoder, contents, templates)
    count = sum(map(len, targets))
    if not count:
        return torch.zeros((), device=encoder.device)

    def summed_losses(numbers: Sequence[int]) -> torch.Tensor:
        """(n,) the sum of the cross-entropies of each row's masked tokens."""
        hidden = encoder.hidden([rows[number] for number in numbers])
        positions = [(at, *target) for at, number in enumerate(numbers) for target in targets[number]]
        row, column, labels = torch.tensor(positions, dtype=torch.long, device=hidden.device).reshape(-1, 3).T
        logits = mlm_head(encoder.model)(hidden[row, column]).float()
        losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
        return losses.new_zeros(len(numbers)).index_add(0, row, losses)

    return encoder.grouped([len(row.ids) for row in rows], summed_losses).sum() / count
