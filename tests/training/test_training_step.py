"""The inputs and the loss of a step: lengths of rows, drawn templates, the masked-LM term."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from encoders import DISTINCT, make
from training_runs import CONFIG, OneProcess, losses, run_of

from cse.methods.method import Pooling
from cse.training.loop import train
from cse.training.losses import energy_hinge, info_nce, nt_xent
from cse.training.step import contrast, draw_templates, step_data


def test_conpvp_draws_every_template_of_its_sets_about_equally(bert_folder: str) -> None:
    encoder = make(str(bert_folder), "conpvp")
    rng = np.random.default_rng(0)
    for view in (1, 2):
        drawn = draw_templates(encoder, view, 9_000, rng)
        counts = [drawn.count(template) for template in encoder.views[view]]
        assert min(counts) > 800
        assert sum(counts) == 9_000


def test_promcses_hinge_is_added_with_its_weight_and_nothing_without_it() -> None:
    vectors = torch.randn(9, 8, generator=torch.Generator().manual_seed(0))
    plain = float(info_nce(*vectors.chunk(3)))
    expected = plain + 10 * float(energy_hinge(*vectors.chunk(3)))
    assert float(contrast(vectors, 3, CONFIG, OneProcess())) == pytest.approx(plain, abs=1e-6)
    assert float(contrast(vectors, 3, replace(CONFIG, hinge=10.0), OneProcess())) == pytest.approx(expected, rel=1e-5)
    assert expected > plain + 0.1


def test_conserts_first_loss_is_nt_xent_of_mean_pooled_views_without_dropout(bert_folder: str, tmp_path: Path) -> None:
    """A trained model pools the mean of the last two layers."""
    encoder = make(str(bert_folder), "consert")
    run = run_of(encoder, temperature=0.1, dropout=0.0)
    rows = step_data(encoder, run.batch(0), run.config, 0).rows
    with torch.no_grad():
        views = torch.stack([encoder.hidden(rows[[number]])[0].mean(0) for number in range(len(rows))]).chunk(2)
    expected = 0.15 * float(nt_xent(*views, temperature=0.1))
    train(encoder, run, tmp_path / "out")
    assert losses(tmp_path / "out")[0] == pytest.approx(expected, rel=1e-5)
    assert encoder.reading.pooling is Pooling.LAST_TWO


def test_the_masked_language_term_adds_to_the_loss_and_reaches_the_prefix(backbone: str, tmp_path: Path) -> None:
    runs = {}
    for weight in (0.0, 0.5):
        encoder = make(backbone, "dcpcse")
        encoder.method = encoder.method.replaced(mlm_weight=weight)
        train(encoder, run_of(encoder), tmp_path / str(weight))
        runs[weight] = losses(tmp_path / str(weight))
    assert runs[0.5][0] > runs[0.0][0] + 0.5


@pytest.mark.parametrize(("name", "supervised"), DISTINCT)
def test_thirty_two_tokens_hold_a_bare_sentences_specials_and_stand_beside_a_prompt(
    backbone: str, name: str, supervised: bool
) -> None:
    encoder = make(backbone, name, supervised)
    batch = {column: ["dog " * 50, "the dog"] for column in "012"}
    views, rows, _ = step_data(encoder, batch, replace(CONFIG, max_length=32), 0)
    assert views == len(encoder.method.views)
    for number, view in enumerate(encoder.method.views):
        bare, own = view[0].text == "[X]", rows[[2 * number, 2 * number + 1]]
        assert own.lengths.tolist() == [30 if bare else 32, 2]
        assert own.sizes[0] == (32 if bare else 32 + own.templates[own.kinds[0]].length)
