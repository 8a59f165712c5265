"""How many tokens of a row ESimCSE repeats, and which."""

from collections import Counter

import numpy as np
import pytest

from cse.encoder.rows import HARD, TokenRows, TokenTemplate
from cse.training.step import repeated

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
