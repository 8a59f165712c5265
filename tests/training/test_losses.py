"""The contrastive loss against a slow loop and closed forms."""

import math

import pytest
import torch
from slow_losses import slow_info_nce

from cse.training.losses import energy_hinge, info_nce, mlm_weight, nt_xent


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("temperature", [0.05, 1.0])
@pytest.mark.parametrize("negative", [False, True])
def test_info_nce_is_a_double_loop(count: int, temperature: float, negative: bool) -> None:
    generator = torch.Generator().manual_seed(count)
    anchors, positives, negatives = torch.randn(3, count, 5, generator=generator, dtype=torch.float64).float()
    loss = info_nce(anchors, positives, negatives if negative else None, temperature=temperature)
    expected = slow_info_nce(
        anchors.double(), positives.double(), negatives.double() if negative else None, temperature
    )
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_nt_xent_is_every_row_against_all_others_of_both_views() -> None:
    first, second = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = [row / row.norm() for row in [*first, *second]]
    total = 0.0
    for i in range(8):
        terms = {j: math.exp(float(rows[i] @ rows[j]) / 0.1) for j in range(8) if j != i}
        assert len(terms) == 7  # 2N - 1
        total -= math.log(terms[(i + 4) % 8] / sum(terms.values()))
    assert float(nt_xent(first.float(), second.float(), temperature=0.1)) == pytest.approx(total / 4, rel=1e-5)
    same = torch.ones(6, 4)
    assert float(nt_xent(same, same)) == pytest.approx(2 * math.log(11), abs=1e-5)


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.2, 1.5])
def test_the_energy_hinge_is_a_loop_over_every_negative_of_every_anchor(negative: bool, margin: float) -> None:
    anchors, others = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    positives, negatives = anchors + 0.5 * others, torch.stack([*others[:4], anchors[2]])
    total = 0.0
    for i in range(5):
        cosines = [float(torch.cosine_similarity(anchors[i], positives[j], dim=0)) for j in range(5)]
        wrong = [cosines[j] for j in range(5) if j != i]
        if negative:
            wrong += [float(torch.cosine_similarity(anchors[i], row, dim=0)) for row in negatives]
        total += max(0.0, margin - cosines[i] + max(wrong))
    loss = energy_hinge(anchors.float(), positives.float(), negatives.float() if negative else None, margin=margin)
    assert float(loss) == pytest.approx(total / 5, abs=1e-6)
    assert total > 0


def test_the_masked_language_weight_decays_by_five_percent_in_a_hundred_steps() -> None:
    assert [mlm_weight(0.1, step) for step in (0, 100, 200)] == pytest.approx([0.1, 0.095, 0.09025])
