"""On a GPU every method gives the vectors, losses and words of the CPU; skipped where there is none."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from conftest import SENTENCES
from encoders import IN_FAMILIES, make, reading
from pretraining_runs import CONFIG, curve, kill_at, run_pretraining, write_corpus
from training_runs import DEV, Killed, kill_after, run_of
from training_runs import losses as logged_losses

import cse
from cse.encoder.devices import in_precision
from cse.encoder.encoder import Encoder
from cse.methods.catalogue import UNTRAINED
from cse.training import pretraining as pretraining
from cse.training.loop import TrainingLoop, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
SAME = 2e-5  # float32 sums in another order


@pytest.fixture(autouse=True)
def fresh_state() -> None:
    """Forget the device of an earlier test's accelerator, which accelerate keeps for the process."""
    AcceleratorState._reset_state(reset_partial_state=True)


def accelerator(device: str, precision: str = "no") -> Accelerator:
    AcceleratorState._reset_state(reset_partial_state=True)
    return Accelerator(mixed_precision=precision, cpu=device == "cpu")


def check_same_vectors(open_encoder: Callable[[], Any], texts: list[str] = SENTENCES) -> None:
    def vectors(device: str) -> np.ndarray:
        torch.manual_seed(3)  # for a pooler that the backbone lacks
        return open_encoder().to(device).encode(texts)

    there, here = vectors("cuda"), vectors("cpu")
    np.testing.assert_allclose(there, here, atol=SAME)


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_every_methods_vectors_are_the_cpus(open_backbone, family, name, supervised):
    check_same_vectors(lambda: make(open_backbone(family), name, supervised))


@pytest.mark.parametrize("pooling", UNTRAINED)
def test_every_poolings_vectors_are_the_cpus(bert_folder, pooling):
    check_same_vectors(lambda: reading(str(bert_folder), UNTRAINED[pooling]))


def test_many_sentences_of_mixed_lengths_keep_their_order(bert_folder):
    texts = [" ".join(SENTENCES[i % 7].split()[: 1 + i % 9] * (1 + i % 5)) for i in range(3000)]
    check_same_vectors(lambda: make(str(bert_folder), "promptbert"), texts)


@pytest.mark.parametrize("name", ["simcse", "promptbert", "dcpcse"])
def test_bfloat16_stays_near_float32(bert_folder, name):
    def encoder() -> Encoder:
        return make(str(bert_folder), name).to("cuda")

    exact, rounded = encoder().encode(SENTENCES), in_precision(encoder(), "bf16").encode(SENTENCES)
    assert rounded.dtype == np.float32
    cosines = (exact * rounded).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(rounded, axis=1)
    assert 0.99 < cosines.min() < cosines.max() < 1


@pytest.mark.parametrize("name", ["simcse", "promptbert", "dcpcse", "conpvp"])
def test_words_at_the_mask_are_the_cpus(bert_folder, name):
    def logits(device: str) -> list[np.ndarray]:
        encoder = make(str(bert_folder), name).to(device)
        states = encoder.mask_states(encoder.rows_of(SENTENCES, [encoder.prompt] * len(SENTENCES)))
        return [encoder.word_logits(state) for state in states]

    for there, here in zip(logits("cuda"), logits("cpu"), strict=True):
        np.testing.assert_allclose(there, here, atol=1e-4)


def step_losses(encoder: Any, device: str, precision: str = "no", **settings: Any) -> list[float]:
    """The losses of four training steps without dropout, which a GPU draws from another generator."""
    run = run_of(encoder, dropout=0.0, **settings)
    loop = TrainingLoop.start(encoder, run, Path(), accelerator(device, precision))
    return [float(loop.step(step, loop.data(step))) for step in range(4)]


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_every_methods_losses_are_the_cpus(open_backbone, family, name, supervised):
    there, here = (step_losses(make(open_backbone(family), name, supervised), device) for device in ("cuda", "cpu"))
    assert there == pytest.approx(here, rel=1e-3)
    assert len(set(there)) == 4


@pytest.mark.parametrize("name", ["promptbert", "dcpcse"])
def test_the_losses_of_chunks_are_those_of_a_whole_batch(bert_folder, name):
    whole, chunks = (step_losses(make(str(bert_folder), name), "cuda", chunk=size) for size in (None, 3))
    assert chunks == pytest.approx(whole, rel=1e-3)


def test_the_losses_of_bfloat16_stay_near_those_of_float32(bert_folder):
    exact, mixed = (step_losses(make(str(bert_folder), "promptbert"), "cuda", mode) for mode in ("no", "bf16"))
    assert mixed == pytest.approx(exact, rel=0.05)
    assert mixed != pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("name", ["promptbert", "dcpcse", "esimcse"])
def test_a_killed_run_resumes_and_its_checkpoint_opens_on_a_cpu(bert_folder, name, tmp_path):
    whole = make(str(bert_folder), name)
    train(whole, run_of(whole, DEV), tmp_path / "whole", precision="no")
    assert whole.device.type == "cuda"
    killed = make(str(bert_folder), name)
    with pytest.raises(Killed):
        train(killed, run_of(killed, DEV), tmp_path / "killed", precision="no", report=kill_after(5))
    fresh = make(str(bert_folder), name)
    train(fresh, run_of(fresh, DEV), tmp_path / "killed", precision="no", resume=True)
    assert logged_losses(tmp_path / "killed") == pytest.approx(logged_losses(tmp_path / "whole"), rel=1e-3)
    check_same_vectors(lambda: cse.load(str(tmp_path / "killed"), backend="torch"))


@pytest.mark.parametrize("changes", [{}, {"accumulate": 2}, {"untied": True}], ids=str)
def test_pretraining_has_the_cpus_curve_and_resumes(changes, tmp_path, monkeypatch):
    corpus, config, options = write_corpus(tmp_path), replace(CONFIG, **changes), {"eval_every": 4, "precision": "no"}
    there = run_pretraining(corpus, tmp_path / "there", config, **options)
    assert there["device"].startswith("cuda")
    with pytest.raises(KeyboardInterrupt):
        run_pretraining(corpus, tmp_path / "killed", config, kill_at(8), **options)
    resumed = run_pretraining(corpus, tmp_path / "killed", config, resume=True, **options)
    assert curve(resumed) == pytest.approx(curve(there), abs=2e-3)
    monkeypatch.setattr(pretraining, "start_accelerator", lambda precision: accelerator("cpu"))
    here = run_pretraining(corpus, tmp_path / "here", config, **options)
    assert here["device"] == "cpu"
    assert curve(there) == pytest.approx(curve(here), abs=2e-3)


def test_pretraining_in_bfloat16_stays_near_float32(tmp_path):
    corpus = write_corpus(tmp_path)
    exact, mixed = (run_pretraining(corpus, tmp_path / mode, CONFIG, precision=mode) for mode in ("no", "bf16"))
    assert curve(mixed) == pytest.approx(curve(exact), rel=0.02)
