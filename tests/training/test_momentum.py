"""The queue of negatives and the copy that fills it, against a list, a closed form and a training loop by hand."""

import copy
from itertools import chain
from pathlib import Path

import pytest
import torch
from test_encoder import make
from test_losses import slow_info_nce
from test_training import CONFIG, TEXTS, OneProcess, losses, run_of

from cse.encoder.backbone import set_dropout
from cse.encoder.torch_encoder import TorchEncoder
from cse.training.loop import train
from cse.training.losses import MomentumQueue
from cse.training.step import contrast, step_inputs, step_rows


def esimcse(folder: object, queue: int = 6) -> TorchEncoder:
    encoder = make(str(folder), "esimcse")
    encoder.method = encoder.method.replaced(queue=queue)
    return encoder


@pytest.mark.parametrize("batch", [1, 4, 9])
def test_the_queue_holds_the_last_vectors_in_their_order(bert_folder: Path, batch: int) -> None:
    momentum = MomentumQueue.start(esimcse(bert_folder))
    expected: list[torch.Tensor] = []
    assert momentum.negatives().shape == (0, 32)
    for step in range(5):
        vectors = torch.randn(batch, 32, generator=torch.Generator().manual_seed(step))
        momentum.push(vectors)
        expected = [*expected, *vectors][-6:]
        torch.testing.assert_close(momentum.negatives(), torch.stack(expected))


def test_the_copy_is_the_moving_average_of_what_is_learned_below_the_head(bert_folder: Path) -> None:
    encoder = esimcse(bert_folder)
    encoder.select_learned(freeze_embeddings=True)
    momentum = MomentumQueue.start(encoder)
    names = {name for name, tensor in encoder.named_parameters() if tensor.requires_grad}
    assert set(momentum.weights) == {name for name in names if not name.startswith("head.")}
    assert not any("word_embeddings" in name for name in momentum.weights)
    name = "model.bert.encoder.layer.0.output.dense.weight"
    live = dict(encoder.named_parameters())[name]
    start, values = live.detach().clone(), []
    for _ in range(4):
        with torch.no_grad():
            live.add_(torch.randn_like(live))
        values.append(live.detach().clone())
        momentum.follow()
    closed = 0.995**4 * start + sum(0.005 * 0.995 ** (3 - step) * value for step, value in enumerate(values))
    torch.testing.assert_close(momentum.weights[name], closed, atol=1e-5, rtol=0)


def test_the_copy_encodes_without_dropout_through_the_live_head(bert_folder: Path) -> None:
    encoder = esimcse(bert_folder).train()
    momentum = MomentumQueue.start(encoder)
    teacher = copy.deepcopy(encoder).eval()
    with torch.no_grad():
        for tensor in encoder.parameters():
            tensor.add_(torch.randn_like(tensor), alpha=0.1)
    template = encoder.views[0][0]
    contents = encoder.tokenise(TEXTS[:3], [template] * 3)
    with torch.no_grad():
        expected = encoder.head(teacher.read([template.row(ids) for ids in contents]))
    vectors = momentum.encode(contents, [template] * 3)
    torch.testing.assert_close(vectors, expected, atol=1e-6, rtol=0)
    assert encoder.training
    assert not vectors.requires_grad


def test_the_queue_adds_columns_and_gradients_reach_the_live_model_alone(bert_folder: Path) -> None:
    encoder = esimcse(bert_folder).train()
    momentum = MomentumQueue.start(encoder)
    contents, templates = step_inputs(encoder, {"0": TEXTS[:3]}, CONFIG, 0)
    momentum.advance(contents[0], templates[0], lambda vectors: torch.cat([vectors, vectors + 1]))  # two processes
    queue = momentum.negatives()
    assert queue.shape == (6, 32)
    vectors = encoder(list(chain(*contents)), list(chain(*templates)))
    loss = contrast(vectors, 2, CONFIG, OneProcess(), queue=queue)
    anchors, positives = vectors.detach().double().chunk(2)
    assert float(loss.detach()) == pytest.approx(slow_info_nce(anchors, positives, queue.double(), 0.05), rel=1e-4)
    loss.backward()
    assert all(tensor.grad is not None for tensor in encoder.learned(training=True).values())
    assert all(tensor.grad is None and not tensor.requires_grad for tensor in momentum.tensors().values())


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
        contents, templates = step_inputs(hand, run.batch(step), run.config, step)
        rows = step_rows(hand, contents, templates, run.config, step)
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
