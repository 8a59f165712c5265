"""A projection is that of sklearn's Ridge and PCA, and opens with its model here and in sentence-transformers."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SENTENCES, WORDS
from fitted_models import project
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestNeighbors

import cse
from cse.adaptation.projection import fit_projection, raw_vectors
from cse.errors import ArtefactError
from cse.models.export import export_model
from cse.training.run import TrainRequest, prepare
from cse.vectors import unit_rows

COMPONENTS = 5
TEXTS = [" ".join(words) for words in np.random.default_rng(2).choice(WORDS[:40], (60, 6))]


TYPED = ["[MASK]", "the dog [MASK] runs", "[CLS] [SEP]", "[PAD] the dog", "<mask> the </s> dog", "<s> <pad> [UNK]"]


def theirs(folder: Path, texts: list[str] = SENTENCES) -> np.ndarray:
    """The vectors that sentence-transformers gives."""
    return SentenceTransformer(str(folder), device="cpu").encode(texts)


def test_it_is_the_projection_of_sklearn():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(300, 20)) * np.linspace(3, 0.1, 20) + rng.normal(size=20)).astype(np.float32)
    oracle = PCA(COMPONENTS, svd_solver="full").fit(vectors.astype(np.float64))
    projection = fit_projection(vectors, COMPONENTS)
    np.testing.assert_allclose(projection.mean, oracle.mean_, atol=1e-9)
    np.testing.assert_allclose(projection.components, oracle.components_, atol=1e-9)
    assert projection.explained == pytest.approx(oracle.explained_variance_ratio_.sum())
    np.testing.assert_allclose(projection(vectors), oracle.transform(vectors), atol=1e-5)


@pytest.mark.parametrize("towards", ["neighbours", "labels"])
def test_towards_others_it_is_the_ridge_of_sklearn(towards):
    rng = np.random.default_rng(1)
    vectors = (rng.normal(size=(1000, 20)) * np.linspace(3, 0.1, 20) + rng.normal(size=20)).astype(np.float32)
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    if towards == "labels":
        labels = rng.choice(["", "a", "b", "c"], 1000)
        means = np.array([unit[labels == label].mean(axis=0) if label else own
                          for label, own in zip(labels, unit, strict=True)])  # fmt: skip
        options: dict[str, Any] = {"labels": labels.tolist()}
    else:
        near = NearestNeighbors(n_neighbors=6, algorithm="brute").fit(unit).kneighbors(unit)[1][:, 1:]  # without itself
        means, options = unit[near].mean(axis=1), {"neighbours": 5}
    ridge = Ridge(alpha=0.01 * np.square(centred).sum() / 20, fit_intercept=False)
    outputs = ridge.fit(centred, unit / 2 + means / 2).predict(centred)
    oracle = PCA(COMPONENTS, svd_solver="full").fit(outputs)
    projection = fit_projection(vectors, COMPONENTS, **options)
    signs = np.sign((projection(vectors) * oracle.transform(outputs)).sum(axis=0))
    np.testing.assert_allclose(projection(vectors) * signs, oracle.transform(outputs), atol=1e-5)
    assert projection.explained == pytest.approx(oracle.explained_variance_ratio_.sum())
    spectrum = oracle.singular_values_ / oracle.singular_values_[0]
    weighted = fit_projection(vectors, COMPONENTS, **options, exponent=-0.25)
    np.testing.assert_allclose(weighted.components, projection.components * spectrum[:, None] ** -0.25, rtol=1e-6)


def test_vectors_that_cannot_be_fitted_are_refused():
    for value, message in ((np.nan, "not finite"), (0.1, "all texts have the same vector")):
        with pytest.raises(ValueError, match=message):
            fit_projection(np.full((9, 4), value, np.float32))


def test_typed_special_tokens_are_text_in_both(backbone, tmp_path):
    projection = project(backbone, TEXTS, tmp_path / "out", components=COMPONENTS, pooling="mean")
    expected = projection(raw_vectors(cse.load(backbone, "mean", backend="torch"), TYPED))
    np.testing.assert_allclose(theirs(tmp_path / "out", TYPED), expected, atol=1e-5)
    for backend in ("openvino", "torch"):
        opened = cse.load(str(tmp_path / "out"), backend=backend)
        np.testing.assert_allclose(opened.encode(TYPED), expected, atol=1e-5)
    (file,) = (tmp_path / "out").glob("*_Dense/model.safetensors")
    whole = file.read_bytes()
    file.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    for backend in ("openvino", "torch"):
        with pytest.raises(ArtefactError, match=r"model\.safetensors: damaged "):
            cse.load(str(tmp_path / "out"), backend=backend)


def test_a_sentence_transformers_model_keeps_its_length_prompts_and_normalisation(bert_folder, tmp_path):
    modules = [Transformer(str(bert_folder), max_seq_length=7), Pooling(32, "cls"), Normalize()]
    prompts = {"prompts": {"query": "the dog "}, "default_prompt_name": "query"}
    SentenceTransformer(modules=modules, device="cpu", truncate_dim=2, **prompts).save(str(tmp_path / "start"))
    encoder = cse.load(str(tmp_path / "start"))
    projection = project(str(tmp_path / "start"), TEXTS, tmp_path / "out", components=COMPONENTS)
    opened = cse.load(str(tmp_path / "out"))
    assert (opened.max_seq_length, opened.default_prompt_name, opened.dim) == (7, "query", COMPONENTS)
    np.testing.assert_allclose(
        opened.encode(SENTENCES), unit_rows(projection(raw_vectors(encoder, SENTENCES))), atol=1e-5
    )
    unit = theirs(tmp_path / "out")
    assert unit.shape == (len(SENTENCES), COMPONENTS)
    np.testing.assert_allclose(unit, opened.encode(SENTENCES), atol=1e-5)


def test_a_trained_model_is_written_as_its_export_with_the_layer(bert_folder, tmp_path):
    encoder, _ = prepare(TrainRequest("promptbert", TEXTS, str(bert_folder)))
    expected = fit_projection(encoder.eval().encode(TEXTS), COMPONENTS)(encoder.encode(SENTENCES))
    encoder.truncate_dim = 2  # which the layer does not cut
    export_model(encoder, "sentence-transformers", tmp_path / "start")
    project(str(tmp_path / "start"), TEXTS, tmp_path / "out", components=COMPONENTS)
    shutil.rmtree(tmp_path / "start")
    np.testing.assert_allclose(cse.load(str(tmp_path / "out")).encode(SENTENCES), expected, atol=1e-5)
    np.testing.assert_allclose(theirs(tmp_path / "out"), expected, atol=1e-5)


def test_models_that_no_linear_layer_can_follow_are_refused_in_one_line(bert_folder, tmp_path):
    with pytest.raises(ValueError, match="reads a backbone by mean or cls, not first-last"):
        project(str(bert_folder), TEXTS, tmp_path / "out", components=COMPONENTS, pooling="first-last")
    project(str(bert_folder), TEXTS, tmp_path / "out", components=COMPONENTS)
    with pytest.raises(ValueError, match="has a linear layer or head already"):
        project(str(tmp_path / "out"), TEXTS, tmp_path / "second", components=COMPONENTS)
    assert not (tmp_path / "second").exists()
