"""A sentence-transformers model with a linear layer after its pooling gives that package's own vectors."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from safetensors.torch import load_file, save_file

import cse
from cse.errors import ArtefactError
from cse.models.export import export_model
from cse.models.names import resolve_backbone

WIDTH, OUTPUTS = 32, 12
BACKENDS = ("openvino", "torch")
Make = Callable[..., Path]


def vectors_of(folder: Path) -> np.ndarray:
    """The vectors that sentence-transformers gives."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").encode(SENTENCES)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Save a pipeline with a linear layer by sentence-transformers itself."""

    def saved(backbone: str, pooling: str = "mean", tanh: bool = False, normal: bool = False, **options: Any) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

        torch.manual_seed(3)
        activation = torch.nn.Tanh() if tanh else torch.nn.Identity()
        dense = Dense(WIDTH, OUTPUTS, activation_function=activation, **options)
        modules = [Transformer(backbone), Pooling(WIDTH, pooling), dense, *([Normalize()] if normal else [])]
        SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "dense"))
        return tmp_path / "dense"

    return saved


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("pooling", "tanh", "bias"), [("mean", False, True), ("cls", True, True), ("cls", False, False)]
)
def test_both_engines_give_the_vectors_of_sentence_transformers(
    make: Make, backbone: str, pooling: str, tanh: bool, bias: bool, backend: str
) -> None:
    folder = make(backbone, pooling, tanh, bias=bias)
    encoder = cse.load(str(folder), backend=backend)
    assert (encoder.dim, encoder.get_embedding_dimension(), encoder.backend) == (OUTPUTS, OUTPUTS, backend)
    expected = vectors_of(folder)
    assert expected.shape == (len(SENTENCES), OUTPUTS)
    np.testing.assert_allclose(encoder.encode(SENTENCES), expected, atol=1e-5)


def test_the_fingerprint_depends_on_the_layer_and_its_activation_and_not_on_the_engine(
    make: Make, bert_folder: Path
) -> None:
    folder = make(str(bert_folder))
    seen = [cse.load(str(folder), backend=backend).fingerprint for backend in BACKENDS]
    assert seen[0] == seen[1]
    seen.append(cse.load(str(folder), pooling="mean").fingerprint)
    file = folder / "2_Dense" / "config.json"
    before = file.read_text()
    file.write_text(before.replace("torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"))
    seen.append(cse.load(str(folder)).fingerprint)
    file.write_text(before)
    weights = load_file(folder / "2_Dense" / "model.safetensors")
    weights["linear.bias"][0] += 1
    save_file(weights, folder / "2_Dense" / "model.safetensors")
    seen.append(cse.load(str(folder)).fingerprint)
    assert len(set(seen[1:])) == 4


def test_an_older_pickle_is_read_as_weights_alone(make: Make, bert_folder: Path) -> None:
    folder = make(str(bert_folder))
    expected = cse.load(str(folder)).encode(SENTENCES)
    file = folder / "2_Dense" / "model.safetensors"
    torch.save(load_file(file), folder / "2_Dense" / "pytorch_model.bin")
    file.unlink()
    np.testing.assert_array_equal(cse.load(str(folder)).encode(SENTENCES), expected)
    torch.save({"linear.weight": Path("x")}, folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(ArtefactError, match="could run code"):
        cse.load(str(folder))


@pytest.mark.parametrize("tanh", [False, True])
def test_such_a_model_is_exported_with_its_layer(make: Make, bert_folder: Path, tmp_path: Path, tanh: bool) -> None:
    folder = make(str(bert_folder), tanh=tanh)
    export_model(cse.load(str(folder), backend="torch"), "sentence-transformers", tmp_path / "out")
    expected = cse.load(str(folder)).encode(SENTENCES)
    shutil.rmtree(folder)
    np.testing.assert_allclose(vectors_of(tmp_path / "out"), expected, atol=1e-5)
    np.testing.assert_allclose(cse.load(str(tmp_path / "out")).encode(SENTENCES), expected, atol=1e-5)


def test_training_does_not_leave_the_layer_out_silently(make: Make, bert_folder: Path) -> None:
    with pytest.raises(ArtefactError, match=r"has a linear layer \(2_Dense\), which training would leave out"):
        resolve_backbone(str(make(str(bert_folder))))
