"""What a step is made of: how long its rows are, how templates are drawn, that the masked term counts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_encoder import ALL, make
from test_training import CONFIG, TEXTS, losses, run_of

from cse.methods import METHODS
from cse.training import train
from cse.training_step import draw_templates, step_inputs, view_texts


def test_conpvp_draws_every_template_of_its_sets_about_equally(bert_folder: str) -> None:
    encoder = make(str(bert_folder), "conpvp")
    rng = np.random.default_rng(0)
    for view in (1, 2):
        drawn = draw_templates(encoder, view, 9_000, rng)
        counts = [drawn.count(template) for template in encoder.views[view]]
        assert min(counts) > 800
        assert sum(counts) == 9_000


def test_the_masked_language_term_adds_to_the_loss_and_reaches_the_prefix(backbone: str, tmp_path: Path) -> None:
    runs = {}
    for weight in (0.0, 0.5):
        encoder = make(backbone, "dcpcse")
        encoder.method = replace(encoder.method, mlm_weight=weight)
        train(encoder, run_of(encoder), tmp_path / str(weight))
        runs[weight] = losses(tmp_path / str(weight))
    assert runs[0.5][0] > runs[0.0][0] + 0.5


@pytest.mark.parametrize(("name", "supervised"), ALL)
def test_thirty_two_tokens_hold_a_bare_sentences_specials_and_stand_beside_a_prompt(
    backbone: str, name: str, supervised: bool
) -> None:
    encoder = make(backbone, name, supervised)
    batch = {column: ["dog " * 50, "the dog"] for column in "012"}
    contents, templates = step_inputs(encoder, batch, replace(CONFIG, max_length=32), 0)
    for view, ids, chosen in zip(encoder.method.views, contents, templates, strict=True):
        bare = view[0].text == "[X]"
        assert [len(each) for each in ids] == [30 if bare else 32, 2]
        assert len(chosen[0].row(ids[0]).ids) == (32 if bare else 32 + chosen[0].length)


def test_supervised_training_needs_two_columns(bert_folder: str) -> None:
    with pytest.raises(ValueError, match="two or three columns"):
        view_texts(make(str(bert_folder), "simcse", True), {"0": TEXTS})
    assert METHODS["simcse"].supervised is False
