"""The losses against slow loops and closed forms, and the inputs and the loss of a step."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from encoders import IN_FAMILIES, make
from training_runs import CONFIG, OneProcess, losses, run_of

from cse.encoder.backbone import set_dropout
from cse.training.loop import train
from cse.training.losses import energy_hinge, info_nce, nt_xent
from cse.training.step import contrast, step_data


def slow_info_nce(
    anchors: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor | None, temperature: float
) -> float:
    def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
        return float((a @ b) / (a.norm() * b.norm()))

    total = 0.0
    for i in range(len(anchors)):
        terms = [math.exp(cosine(anchors[i], positives[j]) / temperature) for j in range(len(positives))]
        own = terms[i]
        if negatives is not None:
            terms += [math.exp(cosine(anchors[i], negatives[j]) / temperature) for j in range(len(negatives))]
        total -= math.log(own / sum(terms))
    return total / len(anchors)


@pytest.mark.parametrize("negative", [False, True])
def test_info_nce_is_a_double_loop(negative):
    generator = torch.Generator().manual_seed(7)
    anchors, positives, negatives = torch.randn(3, 7, 5, generator=generator, dtype=torch.float64).float()
    loss = info_nce(anchors, positives, negatives if negative else None, temperature=0.1)
    expected = slow_info_nce(anchors.double(), positives.double(), negatives.double() if negative else None, 0.1)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_nt_xent_is_every_row_against_all_others_of_both_views():
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
@pytest.mark.parametrize("margin", [0.0, 1.5])
def test_the_energy_hinge_is_a_loop_over_every_negative_of_every_anchor(negative, margin):
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


def test_promcses_hinge_is_added_with_its_weight_and_nothing_without_it():
    vectors = torch.randn(9, 8, generator=torch.Generator().manual_seed(0))
    plain = float(info_nce(*vectors.chunk(3)))
    expected = plain + 10 * float(energy_hinge(*vectors.chunk(3)))
    assert float(contrast(vectors, 3, CONFIG, OneProcess())) == pytest.approx(plain, abs=1e-6)
    assert float(contrast(vectors, 3, replace(CONFIG, hinge=10.0), OneProcess())) == pytest.approx(expected, rel=1e-5)
    assert expected > plain + 0.1


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_thirty_two_tokens_hold_a_bare_sentences_specials_and_stand_beside_a_prompt(
    open_backbone, family, name, supervised
):
    encoder = make(open_backbone(family), name, supervised)
    batch = {column: ["dog " * 50, "the dog"] for column in "012"}
    views, rows, _ = step_data(encoder, batch, replace(CONFIG, max_length=32), 0)
    assert views == len(encoder.method.views)
    for number, view in enumerate(encoder.method.views):
        bare, own = view[0].text == "[X]", rows[[2 * number, 2 * number + 1]]
        assert own.lengths.tolist() == [30 if bare else 32, 2]
        assert own.sizes[0] == (32 if bare else 32 + own.templates[own.kinds[0]].length)


def test_training_is_the_loop_written_by_hand(bert_folder, tmp_path):
    """Each step: loss against the queue so far, update of the copy, of the queue, and of the encoder."""
    encoder = make(str(bert_folder), "esimcse")
    encoder.method = encoder.method.replaced(queue=6)
    hand = copy.deepcopy(encoder)
    run = run_of(encoder, dropout=0.0)
    train(encoder, run, tmp_path / "out")

    hand.select_learned()
    set_dropout(hand.model, 0.0)
    teacher, queue, expected = copy.deepcopy(hand), [], []
    optimizer = torch.optim.AdamW(hand.learned(training=True).values(), lr=1.0, weight_decay=0.0, fused=True)
    for step in range(run.steps):
        optimizer.param_groups[0]["lr"] = CONFIG.learning_rate * (1 - step / run.steps)
        rows = step_data(hand, run.batch(step), run.config, step).rows
        rows = rows[range(4)], rows[range(4, 8)]
        anchors, positives = (hand.head(hand.read(view)) for view in rows)
        candidates = torch.nn.functional.normalize(torch.cat([positives, *queue]), dim=-1)
        logits = torch.nn.functional.normalize(anchors, dim=-1) @ candidates.T / 0.05
        loss = torch.nn.functional.cross_entropy(logits, torch.arange(4))
        expected.append(float(loss.detach()))
        with torch.no_grad():
            for slow, live in zip(teacher.model.bert.parameters(), hand.model.bert.parameters(), strict=True):
                slow.copy_(0.995 * slow + 0.005 * live)
            queue = [torch.cat([*queue, hand.head(teacher.read(rows[0]))])[-6:]]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(hand.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    assert losses(tmp_path / "out") == pytest.approx(expected, abs=1e-4)
