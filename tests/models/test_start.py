"""A checkpoint's own start: what its training began with, opened again from its record."""

import json
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES

import cse
from cse.errors import ArtefactError
from cse.evaluation.metrics import spearman
from cse.models.loading import load, open_model
from cse.models.names import Kind, resolve

DEV = [(float(number % 6), *pair) for number, pair in enumerate(combinations(SENTENCES, 2))]


def start(folder: Path, backend: str = "torch"):
    return open_model(replace(resolve(str(folder)), kind=Kind.START), backend=backend)


@pytest.mark.parametrize(
    ("method", "supervised"),
    [("simcse", False), ("promptbert", False), ("dcpcse", False), ("conpvp", False), ("promptbert", True)],
)
def test_a_start_scores_on_both_engines_what_training_measured_before_its_first_step(
    bert_folder: Path, tmp_path: Path, method: str, supervised: bool
) -> None:
    texts = [(text, text, SENTENCES[0]) for text in SENTENCES[1:]] if supervised else SENTENCES
    summary = cse.train(
        method, texts, output=tmp_path / "run", backbone=bert_folder, dev=DEV, supervised=supervised,
        learning_rate=0.05, seed=7, batch_size=3, progress=False,
    )  # fmt: skip
    for backend in ("torch", "openvino"):
        opened = start(tmp_path / "run", backend)
        assert opened.name == "run-start"
        assert round(spearman(opened.encode, DEV), 3) == summary.start
    trained = load(str(tmp_path / "run"))
    assert np.abs(trained.encode(SENTENCES) - opened.encode(SENTENCES)).max() > 1e-4


def test_a_start_that_cannot_be_made_again_is_refused_with_the_reason(bert_folder: Path, tmp_path: Path) -> None:
    backbone, record = Path(shutil.copytree(bert_folder, tmp_path / "backbone")), tmp_path / "run" / "config.json"
    cse.train("dcpcse", SENTENCES, output=tmp_path / "run", backbone=backbone, max_steps=1, progress=False)
    written = json.loads(record.read_text())
    del written["digest"]
    record.write_text(json.dumps({**written, "settings": {}}))
    with pytest.raises(ArtefactError, match="run: records no seed, so its start cannot be drawn again; train it again"):
        start(tmp_path / "run")
    shutil.rmtree(backbone)
    with pytest.raises(ArtefactError, match=r"its backbone .* is missing; restore that folder"):
        start(tmp_path / "run")
