"""Augmented rows against plain transformers: repeated tokens, cut-off dimensions, shuffled positions."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from encoders import make

from cse.encoder.backbone import first_position
from cse.encoder.rows import HARD, Row
from cse.encoder.torch_encoder import TorchEncoder
from cse.training.step import augmented, cut_off, repeated


def row_of(length: int, pool_at: int = 0) -> Row:
    return Row(tuple(range(100, 100 + length)), (HARD,) * length, tuple(range(length)), pool_at)


def doubled(row: Row, longer: Row) -> list[int]:
    """The positions of `row` whose token is repeated in `longer`; any other difference fails."""
    positions, at = [], 0
    for position, token in enumerate(row.ids):
        assert longer.ids[at] == token
        at += 1
        if at < len(longer.ids) and longer.ids[at] == token:
            positions.append(position)
            at += 1
    assert at == len(longer.ids)
    return positions


@pytest.mark.parametrize(
    ("length", "share", "most"), [(3, 0.32, 0), (4, 0.32, 0), (7, 0.32, 1), (20, 0.32, 5), (60, 0.28, 9)]
)
def test_as_many_tokens_repeat_as_released_and_never_the_outer_ones(length: int, share: float, most: int) -> None:
    """`most` is min(10, floor(share * length)) - 1."""
    rng, row, draws = np.random.default_rng(0), row_of(length), 4_000
    positions = [doubled(row, repeated(row, share, 512, rng)) for _ in range(draws)]
    counts, where = Counter(map(len, positions)), Counter(position for drawn in positions for position in drawn)
    assert set(counts) == set(range(most + 1))
    assert all(abs(count / draws - 1 / (most + 1)) < 0.03 for count in counts.values())
    if most:
        assert set(where) == set(range(1, length - 1))
        assert max(where.values()) < 1.5 * min(where.values())


def read(encoder: TorchEncoder, rows: list[Row]) -> torch.Tensor:
    with torch.no_grad():
        return encoder.hidden(rows)


def by_hand(encoder: TorchEncoder, row: Row) -> torch.Tensor:
    """(L, d) last hidden states of one row by the blocks of transformers, its dimensions cut in a loop."""
    base = encoder.model.base_model
    positions = torch.tensor([row.positions]) + first_position(encoder.model)
    with torch.no_grad():
        embedded = base.embeddings(input_ids=torch.tensor([row.ids]), position_ids=positions)
        for dimension in row.cut:
            for token in range(len(row.ids)):
                embedded[0, token, dimension] = 0.0
        for layer in base.encoder.layer:
            embedded = layer(embedded)
            embedded = embedded[0] if isinstance(embedded, tuple) else embedded
    return embedded.view(len(row.ids), -1)


def rows_of(encoder: TorchEncoder) -> list[Row]:
    template = encoder.views[0][0]
    return [template.row(ids) for ids in encoder.tokenise(SENTENCES, [template] * len(SENTENCES))]


def test_cut_dimensions_are_zero_in_what_the_blocks_get_of_their_own_row_alone(backbone: str) -> None:
    encoder, rng = make(backbone, "consert"), np.random.default_rng(0)
    plain = rows_of(encoder)
    cut = [cut_off(row, 0.2, encoder.dim, rng) for row in plain]
    assert all(len(set(row.cut)) == 6 and max(row.cut) < 32 for row in cut)  # floor(0.2 * 32)
    assert len({row.cut for row in cut}) == len(cut)
    mixed = [cut[0], plain[1], *cut[2:]]  # of different lengths, so padded
    hidden = read(encoder, mixed)
    for number, row in enumerate(mixed):
        torch.testing.assert_close(hidden[number, : len(row.ids)], by_hand(encoder, row), atol=1e-5, rtol=0)
    assert float((hidden[0, 0] - read(encoder, plain)[0, 0]).abs().max()) > 1e-3
    torch.testing.assert_close(read(encoder, plain)[1], hidden[1], atol=1e-6, rtol=0)  # nothing stays cut


def test_a_method_changes_the_view_it_says_and_no_other(bert_folder: str) -> None:
    def change(name: str) -> tuple[list[list[Row]], list[list[Row]]]:
        encoder = make(str(bert_folder), name)
        before = [rows_of(encoder) for _ in encoder.views]
        return before, augmented(before, encoder.method, encoder.dim, 80, np.random.default_rng(0))

    before, after = change("esimcse")
    assert after[0] == before[0]
    assert [len(row.ids) for row in after[1]] != [len(row.ids) for row in before[1]]
    before, after = change("consert")
    assert [replace(row, cut=()) for row in after[0]] == before[0]
    assert all(row.cut for row in after[0])
    assert [replace(row, positions=tuple(sorted(row.positions))) for row in after[1]] == before[1]
    for name in ("simcse", "conpvp"):
        before, after = change(name)
        assert after == before
