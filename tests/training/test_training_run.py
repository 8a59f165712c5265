"""Requests: a run from Python is that of the command, with the same preset, settings, seed, batch and encoder."""

import shutil
from pathlib import Path

import pytest
import torch
from conftest import SENTENCES
from model_files import POOLING, TRANSFORMER, with_pipeline

from cse.methods.catalogue import METHODS
from cse.methods.method import Pooling, When
from cse.models.loading import load
from cse.training.loop import train
from cse.training.run import TrainRequest, prepare


@pytest.fixture
def texts(tmp_path: Path) -> str:
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES))
    return str(tmp_path / "texts.txt")


@pytest.mark.parametrize("method", ["dcpcse", "consert"])
def test_mean_pooling_is_that_of_training_and_of_the_checkpoint_without_a_head(method, texts, bert_folder, tmp_path):
    request = TrainRequest(method, texts, str(bert_folder), settings={"pooling": "mean", "max_steps": 1})
    encoder, run = prepare(request)
    assert encoder.reading.pooling is Pooling.MEAN
    assert encoder.head is None
    rows = encoder.rows_of(SENTENCES[:1], encoder.views[0])
    encoder.train()
    encoder.model.eval()  # no dropout
    encoder.dropout.eval()
    states = encoder.hidden(rows)[0]
    torch.testing.assert_close(encoder.pool(rows)[0], states.mean(0))
    train(encoder, run, tmp_path / "out")
    opened = load(str(tmp_path / "out"))
    assert (opened.reading.pooling, opened.reading.head_when) == (Pooling.MEAN, When.NEVER)


def test_a_sentence_transformers_folder_is_trained_by_the_pooling_that_it_records(texts, bert_folder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(bert_folder, folder)
    with_pipeline(folder, [TRANSFORMER, POOLING], {"pooling_mode_mean_tokens": True})

    def pooling(method: str, **settings: str) -> Pooling:
        return prepare(TrainRequest(method, texts, str(folder), settings=settings))[0].reading.pooling

    assert pooling("simcse") is pooling("dcpcse") is Pooling.MEAN
    assert pooling("simcse", pooling="cls") is Pooling.TOKEN
    assert pooling("consert") is METHODS["consert"].reading.pooling is Pooling.LAST_TWO
    assert pooling("promptbert") is Pooling.TOKEN


def test_a_pooling_that_a_method_cannot_have_is_refused(texts):
    with pytest.raises(ValueError, match=r"promptbert reads the vector at its prompt's \[MASK\]"):
        TrainRequest("promptbert", texts, settings={"pooling": "mean"}).preset("bert-base")
