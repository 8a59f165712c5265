"""The queue of negatives and the copy that fills it, against a list, a closed form and a training loop by hand."""

import copy
from pathlib import Path

import pytest
import torch
from encoders import make
from slow_losses import slow_info_nce
from training_runs import CONFIG, OneProcess, losses, run_of

from cse.encoder.backbone import set_dropout
from cse.encoder.torch_encoder import TorchEncoder
from cse.training.loop import train
from cse.training.step import contrast, step_data


def esimcse(folder: object, queue: int = 6) -> TorchEncoder:
    encoder = make(str(folder), "esimcse")
    encoder.method = encoder.method.replaced(queue=queue)
    return encoder


def test_a_third_view_and_the_queue_are_negatives_side_by_side() -> None:
    vectors, queue = torch.randn(9, 5), torch.randn(4, 5)
    anchors, positives, negatives = vectors.double().chunk(3)
    expected = slow_info_nce(anchors, positives, torch.cat([negatives, queue.double()]), 0.05)
    assert float(contrast(vectors, 3, CONFIG, OneProcess(), queue=queue)) == pytest.approx(expected, rel=1e-4)


def test_training_is_the_loop_written_by_hand(bert_folder: Path, tmp_path: Path) -> None:
    """Each step: loss against the queue so far, update of the copy, of the queue, and of the encoder."""
    encoder = esimcse(bert_folder)
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
