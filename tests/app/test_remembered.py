"""Vectors that were computed lately are looked up by the encoder that made them, which answers one at a time."""

import shutil
import threading
from pathlib import Path

import numpy as np
from app_models import GOOD, write_model

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


def test_models_of_one_fingerprint_have_vectors_of_their_own(tmp_path, bert_folder):
    """Equal weights and vocabulary, and one of them keeps capitals."""
    cased, texts = Path(shutil.copytree(bert_folder, tmp_path / "cased")), ["the CAT is Happy"]
    for name, old, new in (
        ("tokenizer.json", '"lowercase": true', '"lowercase": false'),
        ("tokenizer_config.json", '"do_lower_case": true', '"do_lower_case": false'),
    ):
        text = (cased / name).read_text()
        assert old in text
        (cased / name).write_text(text.replace(old, new))
    folders = [write_model(tmp_path / place.name[:2], place, "simcse", seed=1) for place in (bert_folder, cased)]
    one, other = (cse.load(str(folder)) for folder in folders)
    assert one.fingerprint == other.fingerprint
    wanted = [encoder.encode(texts)[0] for encoder in (one, other)]
    assert not np.allclose(*wanted, atol=1e-3)
    found = Models([str(folder) for folder in folders]).apply_to(texts, lambda *given: given[2][0])
    np.testing.assert_allclose(list(found.values()), wanted, atol=1e-5)
    demo = Demo()
    demo.texts = texts * 200
    np.testing.assert_allclose([demo.vectors(None, each)[0] for each in (one, other)], wanted, atol=1e-5)


def test_shipped_vectors_are_those_of_the_bundled_tokenizer(tmp_path, bert_folder, monkeypatch):
    encoder = cse.load(str(write_model(tmp_path / "mine", bert_folder, "simcse")))
    monkeypatch.setattr("cse.app.corpus.corpora.VECTORS", tmp_path)
    np.save(tmp_path / f"{encoder.fingerprint}.npy", np.ones((2000, encoder.dim), np.float16))
    demo = Demo()
    demo.texts = demo.texts[:5]
    np.testing.assert_allclose(demo.vectors(None, encoder), encoder.encode(demo.texts), atol=1e-5)
    encoder.backbone = "bundled"
    assert (Demo().vectors(None, encoder) == 1).all()


def test_a_model_answers_one_at_a_time_and_another_model_meanwhile(tmp_path, bert_folder):
    """The first holds `simcse` until the second has its answer from `promptbert`."""
    models = Models([str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]])
    inside, answered, order = threading.Event(), threading.Event(), []

    def hold(column, encoder):
        inside.set()
        assert answered.wait(30)
        order.append("first")

    holding = threading.Thread(target=models.apply, args=(hold, models.columns[:1]))
    holding.start()
    assert inside.wait(30)
    waiting = threading.Thread(target=models.apply, args=(lambda *_: order.append("second"), models.columns[:1]))
    waiting.start()
    assert models.apply(lambda column, encoder: encoder.dim, models.columns[1:]) == {"promptbert": 32}
    assert order == []
    answered.set()
    for thread in (holding, waiting):
        thread.join(30)
    assert order == ["first", "second"]
