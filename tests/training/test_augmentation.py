"""Augmented rows against plain transformers: repeated tokens, cut-off dimensions, shuffled positions."""

from collections import Counter

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from encoders import make

from cse.encoder.backbone import first_position
from cse.encoder.rows import HARD, TokenRows, TokenTemplate
from cse.encoder.torch_encoder import TorchEncoder
from cse.training.step import augmented, cut_off, repeated

BARE = TokenTemplate(ids=(100, 101), slots=(HARD, HARD), start=1, mask_index=None, spaced=False)


def row_of(length: int) -> TokenRows:
    return TokenRows.of([range(200, 198 + length)], [BARE])


def doubled(ids: list[int], longer: list[int]) -> list[int]:
    """The positions of `ids` whose token is repeated in `longer`; any other difference fails."""
    positions, at = [], 0
    for position, token in enumerate(ids):
        assert longer[at] == token
        at += 1
        if at < len(longer) and longer[at] == token:
            positions.append(position)
            at += 1
    assert at == len(longer)
    return positions


@pytest.mark.parametrize(("length", "share", "most"), [(3, 0.32, 0), (7, 0.32, 1), (60, 0.28, 9)])
def test_as_many_tokens_repeat_as_released_and_never_the_outer_ones(length, share, most):
    """`most` is min(10, floor(share * length)) - 1."""
    rng, row, draws = np.random.default_rng(0), row_of(length), 4_000
    many = repeated(row[[0] * draws], np.arange(draws), share, 512, rng)
    assert many.tokens[2].tolist() == [at for size in many.sizes for at in range(size)]
    positions = [doubled(row.ids.tolist(), ids.tolist()) for ids in np.split(many.ids, many.offsets[1:-1])]
    counts, where = Counter(map(len, positions)), Counter(position for drawn in positions for position in drawn)
    assert set(counts) == set(range(most + 1))
    assert all(abs(count / draws - 1 / (most + 1)) < 0.03 for count in counts.values())
    if most:
        assert set(where) == set(range(1, length - 1))
        assert max(where.values()) < 1.5 * min(where.values())


def test_a_repeated_row_is_read_where_it_was(bert_folder):
    encoder, rng = make(str(bert_folder), "promptbert"), np.random.default_rng(0)
    rows = encoder.rows_of(SENTENCES * 9, encoder.views[0] * len(SENTENCES) * 9)
    longer = repeated(rows, np.arange(0, len(rows), 2), 0.32, 80, rng)
    assert len(longer.ids) > len(rows.ids)
    masks = np.array(
        [ids.tolist().index(encoder.tokenizer.mask_token_id) for ids in np.split(longer.ids, longer.offsets[1:-1])]
    )
    assert longer.read_at.tolist() == masks.tolist()
    for number in range(1, len(rows), 2):
        np.testing.assert_array_equal(longer[[number]].tokens, rows[[number]].tokens)


def by_hand(encoder: TorchEncoder, row: TokenRows) -> torch.Tensor:
    """(L, d) last hidden states of one row by the blocks of transformers, its dimensions cut in a loop."""
    base = encoder.model.base_model
    ids, _, positions = torch.tensor(row.tokens, dtype=torch.long)[:, None]
    with torch.no_grad():
        embedded = base.embeddings(input_ids=ids, position_ids=positions + first_position(encoder.model))
        for dimension in () if row.cut is None else np.flatnonzero(row.cut[0]):
            for token in range(len(row.ids)):
                embedded[0, token, dimension] = 0.0
        for layer in base.encoder.layer:
            embedded = layer(embedded)
            embedded = embedded[0] if isinstance(embedded, tuple) else embedded
    return embedded.view(len(row.ids), -1)


def test_cut_dimensions_are_zero_in_what_the_blocks_get_of_their_own_row_alone(backbone):
    encoder, rng = make(backbone, "consert"), np.random.default_rng(0)
    plain = encoder.rows_of(SENTENCES, encoder.views[0] * len(SENTENCES))
    numbers = np.array([0, 2, 3, 4, 5, 6])  # of different lengths, so padded
    mixed = cut_off(plain, numbers, 0.2, encoder.dim, rng)
    assert mixed.cut is not None
    assert mixed.cut.sum(1).tolist() == [6, 0, 6, 6, 6, 6, 6]  # floor(0.2 * 32)
    assert len(np.unique(mixed.cut, axis=0)) == len(plain)
    with torch.no_grad():
        hidden, uncut = encoder.hidden(mixed), encoder.hidden(plain)
    for number in range(len(plain)):
        row = mixed[[number]]
        torch.testing.assert_close(hidden[number, : len(row.ids)], by_hand(encoder, row), atol=1e-5, rtol=0)
    assert float((hidden[0, 0] - uncut[0, 0]).abs().max()) > 1e-3
    torch.testing.assert_close(uncut[1], hidden[1], atol=1e-6, rtol=0)  # nothing stays cut


def test_a_method_changes_the_view_it_says_and_no_other(bert_folder):
    def change(name: str) -> tuple[TokenRows, TokenRows, list[np.ndarray]]:
        encoder = make(str(bert_folder), name)
        templates = [view[0] for view in encoder.views for _ in SENTENCES]
        before = encoder.rows_of(SENTENCES * len(encoder.views), templates)
        after = augmented(before, len(encoder.views), encoder.method, encoder.dim, 80, np.random.default_rng(0))
        return before, after, np.split(np.arange(len(before)), len(encoder.views))

    before, after, (first, second) = change("esimcse")
    np.testing.assert_array_equal(after[first].tokens, before[first].tokens)
    assert after[second].sizes.tolist() != before[second].sizes.tolist()
    before, after, (first, second) = change("consert")
    np.testing.assert_array_equal(after[first].tokens, before[first].tokens)
    np.testing.assert_array_equal(after.tokens[:2], before.tokens[:2])
    assert after.cut is not None
    assert after.cut[first].any(1).all()
    assert not after.cut[second].any()
    for number in second:
        positions = after[[number]].tokens[2].tolist()
        assert sorted(positions) == list(range(len(positions)))
    assert after[second].tokens[2].tolist() != before[second].tokens[2].tolist()
    for name in ("simcse", "conpvp"):
        before, after, _ = change(name)
        assert after is before
