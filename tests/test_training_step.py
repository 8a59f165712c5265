"""Losses of three sentences by hand: which vectors are contrasted, how templates are drawn, the masked term."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from test_encoder import make
from test_losses import slow_info_nce
from test_training import CONFIG, TEXTS, OneProcess, losses, run_of

from cse.backbone import set_dropout
from cse.encoder import Encoder
from cse.losses import energy_hinge, nt_xent
from cse.methods import METHODS, Pooling, When
from cse.training import train
from cse.training_step import contrast, draw_templates, step_inputs, step_rows, view_texts


def three_vectors(encoder: Encoder, draws: int = 0) -> tuple[list[torch.Tensor], float]:
    """The vectors of each view of three sentences in eval-mode noise but training-mode steps, and the loop's loss."""
    encoder.train()
    set_dropout(encoder.model, 0.0)
    encoder.dropout.p = 0.0
    config = replace(CONFIG, batch_size=3)
    batch = {"0": TEXTS[:3], "1": TEXTS[3:6], "2": TEXTS[6:9]} if encoder.method.supervised else {"0": TEXTS[:3]}
    contents, templates = step_inputs(encoder, batch, config, draws)
    vectors = encoder(list(chain(*contents)), list(chain(*templates)))
    loss = contrast(vectors, len(contents), config, OneProcess())
    return [part.detach().double() for part in vectors.chunk(len(contents))], float(loss.detach())


@pytest.mark.parametrize("name", ["simcse", "promptbert", "dcpcse"])
def test_the_supervised_denominator_holds_every_positive_and_every_hard_negative(bert_folder: str, name: str) -> None:
    (anchors, positives, negatives), loss = three_vectors(make(str(bert_folder), name, True))
    assert loss == pytest.approx(slow_info_nce(anchors, positives, negatives, 0.05), rel=1e-4)


def test_conpvp_contrasts_each_sentence_with_the_prototypes_of_all(bert_folder: str) -> None:
    encoder = make(str(bert_folder), "conpvp")
    (anchors, positives, negatives), loss = three_vectors(encoder)
    assert loss == pytest.approx(slow_info_nce(anchors, positives, negatives, 0.05), rel=1e-4)
    (anchors, positives), loss = three_vectors(make(str(bert_folder), "conpvp-no-negative"))
    assert loss == pytest.approx(slow_info_nce(anchors, positives, None, 0.05), rel=1e-4)


def test_conpvp_draws_every_template_of_its_sets_about_equally(bert_folder: str) -> None:
    encoder = make(str(bert_folder), "conpvp")
    rng = np.random.default_rng(0)
    for view in (1, 2):
        drawn = draw_templates(encoder, view, 9_000, rng)
        counts = [drawn.count(template) for template in encoder.views[view]]
        assert min(counts) > 800
        assert sum(counts) == 9_000


def test_denoised_training_vectors_are_the_head_of_the_difference(bert_folder: str) -> None:
    encoder = make(str(bert_folder), "promptbert")
    (anchors, positives), _ = three_vectors(encoder)
    for vectors, view in ((anchors, 0), (positives, 1)):
        template = encoder.views[view][0]
        contents = encoder.tokenise(TEXTS[:3], [template] * 3, CONFIG.max_length)
        with torch.no_grad():
            plain = encoder.pool([template.row(ids) for ids in contents])
            expected = encoder.head(plain - encoder.bias([template] * 3, list(map(len, contents))))
        torch.testing.assert_close(vectors.float(), expected, atol=1e-5, rtol=0)
    assert encoder.method.denoise is When.TRAINING


def test_promcses_hinge_is_added_with_its_weight_and_nothing_without_it(bert_folder: str) -> None:
    encoder = make(str(bert_folder), "dcpcse", True)
    (anchors, positives, negatives), plain = three_vectors(encoder)
    vectors = torch.cat([anchors, positives, negatives]).float()
    expected = plain + 10 * float(energy_hinge(anchors, positives, negatives))
    assert float(contrast(vectors, 3, CONFIG, OneProcess())) == pytest.approx(plain, abs=1e-6)
    assert float(contrast(vectors, 3, replace(CONFIG, hinge=10.0), OneProcess())) == pytest.approx(expected, rel=1e-5)
    assert expected > plain + 0.1


def test_conserts_first_loss_is_nt_xent_of_mean_pooled_views_without_dropout(bert_folder: str, tmp_path: Path) -> None:
    """And a trained model is read as the mean of the last two layers."""
    encoder = make(str(bert_folder), "consert")
    run = run_of(encoder, temperature=0.1, dropout=0.0)
    contents, templates = step_inputs(encoder, run.batch(0), run.config, 0)
    rows = step_rows(encoder, contents, templates, run.config, 0)
    with torch.no_grad():
        views = [torch.stack([encoder.hidden([row])[0].mean(0) for row in view]) for view in rows]
    expected = 0.15 * float(nt_xent(*views, temperature=0.1))
    train(encoder, run, tmp_path / "out")
    assert losses(tmp_path / "out")[0] == pytest.approx(expected, rel=1e-5)
    assert encoder.method.pooling is Pooling.LAST_TWO


def test_the_masked_language_term_adds_to_the_loss_and_reaches_the_prefix(backbone: str, tmp_path: Path) -> None:
    runs = {}
    for weight in (0.0, 0.5):
        encoder = make(backbone, "dcpcse")
        encoder.method = replace(encoder.method, mlm_weight=weight)
        train(encoder, run_of(encoder), tmp_path / str(weight))
        runs[weight] = losses(tmp_path / str(weight))
    assert runs[0.5][0] > runs[0.0][0] + 0.5


def test_supervised_training_needs_two_columns(bert_folder: str) -> None:
    with pytest.raises(ValueError, match="two or three columns"):
        view_texts(make(str(bert_folder), "simcse", True), {"0": TEXTS})
    assert METHODS["simcse"].supervised is False
