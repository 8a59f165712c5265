"""Vectors that were computed lately are looked up by the encoder that made them."""

import numpy as np
from app_models import write_model

import cse
from cse.app.corpus.corpora import Demo
from cse.app.models.models import Models


def test_what_is_known_of_a_model_is_not_said_of_another_in_its_folder(tmp_path, bert_folder):
    folder, texts = tmp_path / "mine", ["the cat is happy"]
    first, demo = cse.load(str(write_model(folder, bert_folder, "simcse", seed=1))), Demo()
    before = demo.random_cosines(None, first)
    models = Models([str(folder)])
    models.apply_to(texts, lambda *_: None)
    second = cse.load(str(write_model(tmp_path / "other", bert_folder, "simcse", seed=2)))
    assert not np.allclose(demo.random_cosines(None, second), before)
    models._encoders[models.own[0].opened_by] = second
    found = models.apply_to(texts, lambda _, encoder, vectors: vectors)["mine"]
    np.testing.assert_allclose(found, second.encode(texts), atol=1e-5)
    assert not np.allclose(found, first.encode(texts), atol=1e-3)


def test_shipped_vectors_are_those_of_the_bundled_tokenizer(tmp_path, bert_folder, monkeypatch):
    encoder = cse.load(str(write_model(tmp_path / "mine", bert_folder, "simcse")))
    monkeypatch.setattr("cse.app.corpus.corpora.VECTORS", tmp_path)
    np.save(tmp_path / f"{encoder.fingerprint}.npy", np.ones((2000, encoder.dim), np.float16))
    demo = Demo()
    demo.texts = demo.texts[:5]
    np.testing.assert_allclose(demo.vectors(None, encoder), encoder.encode(demo.texts), atol=1e-5)
    encoder.backbone = "bundled"
    assert (Demo().vectors(None, encoder) == 1).all()
