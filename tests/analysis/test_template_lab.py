"""The template lab: its own template is the checkpoint, another is what transformers makes of the whole text."""

from pathlib import Path

import numpy as np
import pytest
import torch
from app_models import write_model
from conftest import SENTENCES
from scipy.stats import spearmanr

import cse
from cse.analysis.template_lab import Question, compare, template_of, under
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.templates import Template
from cse.vectors import cosines

OTHER = Template('"[X]" is a [MASK] one')
PAIRS = [(float(i % 4), SENTENCES[i], SENTENCES[(3 * i + 1) % 7]) for i in range(7)]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> dict[str, TorchEncoder]:
    root, names = tmp_path_factory.mktemp("lab"), ("simcse", "promptbert", "conpvp")
    return {name: cse.load(str(write_model(root / name, bert_folder, name)), backend="torch") for name in names}


@pytest.mark.parametrize("name", ["simcse", "conpvp"])
def test_the_stored_template_is_the_stored_vector_and_another_changes_it(encoders, name):
    encoder = encoders[name]
    stored = encoder.encode(SENTENCES)
    same = under(encoder, template_of(encoder, encoder.reading.template.text)).encode(SENTENCES)
    np.testing.assert_array_equal(same, stored)
    changed = under(encoder, OTHER).encode(SENTENCES)
    assert (np.abs(changed - stored).max(1) > 0.01).all()
    np.testing.assert_array_equal(encoder.encode(SENTENCES), stored)  # the model itself is as it was


def test_a_vector_under_another_template_is_the_hidden_state_at_its_mask(encoders):
    encoder = encoders["promptbert"]
    inputs = encoder.tokenizer('"the dog was running" is a [MASK] one', return_tensors="pt")
    with torch.no_grad():
        hidden = encoder.model.base_model(**inputs).last_hidden_state[0]
    (at,) = (inputs["input_ids"][0] == encoder.tokenizer.mask_token_id).nonzero()
    vector = under(encoder, OTHER).encode("the dog was running")
    np.testing.assert_allclose(vector, hidden[int(at)].numpy(), atol=1e-6)


def test_a_trial_is_the_correlation_and_the_denoised_words_under_a_template(encoders):
    encoder = encoders["promptbert"]
    first, second = (under(encoder, OTHER).encode([pair[side] for pair in PAIRS]) for side in (1, 2))
    compared = compare(encoder, OTHER, Question(PAIRS, SENTENCES[0], 4))
    trial = compared.other
    assert trial.score == pytest.approx(100 * spearmanr(cosines(first, second), [p[0] for p in PAIRS])[0], abs=0.006)
    assert trial.words == encoder.top_tokens(SENTENCES[0], 4, template=OTHER)
    assert (compared.own.template, trial.template) == (encoder.reading.template.text, OTHER.text)
    assert compared.own.words == encoder.top_tokens(SENTENCES[0], 4)
    assert compared.gain.value == pytest.approx(trial.score - compared.own.score, abs=0.02)
    same = compare(encoder, encoder.reading.template, Question(PAIRS, SENTENCES[0], 1))
    assert (same.own, same.gain.value, same.gain.noise) == (same.other, 0, True)
