"""Which sentences share a pass: all of them once, within the budget, and with hardly any padding."""

import numpy as np
import pytest

from cse.encoder.rows import SMALL_PASS_DIVISOR, plan_batches

RNG = np.random.default_rng(5)
LENGTHS = {
    "none": [], "one": [7], "empty ones": [0] * 9, "too long": [9000, 3, 9000], "all alike": [5] * 100,
    "all different": list(range(1, 80)), "many": RNG.integers(2, 40, 3000).tolist(),
    "few long ones": [*[500] * 3, *RNG.geometric(0.05, 400).tolist()],
}  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize(("tokens", "sentences"), [(64, None), (1000, None), (1000, 7), (1, 1)])
def test_every_row_is_in_one_pass_which_keeps_its_budget(name: str, tokens: int, sentences: int | None) -> None:
    lengths = np.array(LENGTHS[name], dtype=int)
    plan = list(plan_batches(lengths, tokens, sentences))
    assert sorted(np.concatenate([np.empty(0, int), *plan])) == list(range(len(lengths)))
    assert all(len(rows) <= (sentences or len(rows)) for rows in plan)
    assert all(len(rows) == 1 or len(rows) * lengths[rows].max() <= tokens for rows in plan)
    longest = [lengths[rows].max() for rows in plan]
    assert longest == sorted(longest, reverse=True)


def test_a_pass_is_padded_only_where_its_rows_were_few() -> None:
    lengths = np.array(LENGTHS["many"])
    for rows in plan_batches(lengths, 1000):
        longest = lengths[rows].max()
        assert len(set(lengths[rows])) == 1 or len(rows) * longest <= 1000 / SMALL_PASS_DIVISOR
    plan = list(plan_batches(lengths, 1000))
    assert sum(len(rows) * lengths[rows].max() for rows in plan) < 1.02 * lengths.sum()
