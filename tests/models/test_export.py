"""Exports of models: what the real consumers make of them and what `cse.load` reads back, against the encoder."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from encoders import encoder_of
from model_files import run_card
from sentence_transformers import SentenceTransformer
from transformers import AutoConfig, AutoModel, AutoTokenizer

import cse
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.methods.method import Pooling
from cse.models.export import export_model

ROUNDING = 3e-6  # of sums in another order: batches differ, and numbers go up to 5
TEXTS = [*SENTENCES[:3], "", " ", "the [MASK] <mask> [SEP] </s> [P0] cat", "a\x00b  dog ", "the cat is eating " * 40]
ONNX = pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="has no wheel below Python 3.11")


def open_sentence_transformers(folder: Path, **options: object):
    return SentenceTransformer(str(folder), device="cpu", **options)


def product(encoder: TorchEncoder) -> float:
    first, second = encoder.encode(["A man is playing a guitar.", "Someone plays an instrument."])
    return float(first @ second)


@pytest.mark.parametrize(
    ("family", "method"),
    [*(("bert", name) for name in ("promptbert", "dcpcse", "supervised", "cls-first-last")), ("roberta", "conpvp")],
)
def test_sentence_transformers_gives_the_vectors_and_so_does_reading_back(family, method, tmp_path, request):
    encoder = encoder_of(request.getfixturevalue(f"{family}_folder"), method)
    export_model(encoder, "sentence-transformers", tmp_path / "out")
    expected = encoder.encode(TEXTS)
    code = {"trust_remote_code": True} if method == "dcpcse" else {}
    opened = open_sentence_transformers(tmp_path / "out", **code)
    np.testing.assert_allclose(opened.encode(TEXTS), expected, atol=ROUNDING)
    np.testing.assert_allclose(opened.encode_query(TEXTS), expected, atol=ROUNDING)
    np.testing.assert_allclose(cse.load(str(tmp_path / "out")).encode(TEXTS), expected, atol=ROUNDING)
    assert opened.max_seq_length == encoder.max_seq_length
    assert (list(tmp_path.glob("out/*.py")) != []) == (method == "dcpcse")


def test_a_bundled_model_opens_elsewhere_and_the_snippet_of_the_card_runs(tmp_path):
    encoder = cse.load("promptbert", device="cpu", backend="torch")
    export_model(encoder, "sentence-transformers", tmp_path / "out")
    assert float(run_card(tmp_path / "out")) == pytest.approx(product(encoder), rel=1e-5)
    assert product(cse.load(str(tmp_path / "out"))) == pytest.approx(product(encoder), rel=1e-5)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "base_model: sentence-transformers/all-MiniLM-L6-v2\n" in card
    assert "license: apache-2.0\n" in card
    assert "no score made on it is an unsupervised result" in card
    assert "1_Pooling/config.json" in card


@pytest.mark.parametrize("pooling", [Pooling.TOKEN, Pooling.MEAN])
def test_peft_gives_the_vectors_and_so_does_reading_back(backbone, tmp_path, pooling):
    from peft import PeftModel

    encoder = encoder_of(backbone, "dcpcse")
    encoder.method = encoder.method.replaced(pooling=pooling)
    export_model(encoder, "peft", tmp_path / "out")
    base = AutoModel.from_pretrained(tmp_path / "out" / "base", add_pooling_layer=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by an older name
        model = PeftModel.from_pretrained(base, str(tmp_path / "out")).eval()
    inputs = AutoTokenizer.from_pretrained(tmp_path / "out")(TEXTS, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        states = model(**inputs).last_hidden_state
    vectors = states[:, 0]
    if pooling is Pooling.MEAN:
        vectors = torch.stack(
            [rows[read == 1].mean(0) for rows, read in zip(states, inputs["attention_mask"], strict=True)]
        )
    np.testing.assert_allclose(vectors.numpy(), encoder.encode(TEXTS), atol=ROUNDING)
    np.testing.assert_allclose(cse.load(str(tmp_path / "out")).encode(TEXTS), encoder.encode(TEXTS), atol=ROUNDING)
    assert float(run_card(tmp_path / "out")) == pytest.approx(product(encoder), abs=1e-4)  # of vectors of length 6


@ONNX
@pytest.mark.parametrize(
    "method", ["promptbert", "conpvp", "dcpcse", "supervised", "cls-first-last"]
)  # simcse is below
def test_onnx_gives_the_vectors(bert_folder, method, tmp_path):
    check_onnx(encoder_of(bert_folder, method), tmp_path / "out")


@ONNX
def test_onnx_gives_the_vectors_of_a_roberta_whose_sentences_follow_a_space(roberta_folder, tmp_path):
    check_onnx(encoder_of(roberta_folder, "promptbert"), tmp_path / "out", start=" ")


@ONNX
def test_onnx_gives_the_vectors_that_a_default_prompt_and_a_number_of_dimensions_make(bert_folder, tmp_path):
    encoder = encoder_of(bert_folder, "simcse")
    encoder.prompts, encoder.default_prompt_name, encoder.truncate_dim = {"task": 'a "dog" : '}, "task", 7
    check_onnx(encoder, tmp_path / "out", start='a "dog" : ')


def check_onnx(encoder: TorchEncoder, folder: Path, start: str = "") -> None:
    """Compare an export's vectors: by onnxruntime alone, and by sentence-transformers on optimum's reading."""
    import onnxruntime
    import optimum_stand_in

    export_model(encoder, "onnx", folder)
    session = onnxruntime.InferenceSession(str(folder / "onnx" / "model.onnx"))
    widths = [output.shape[1:] for output in session.get_outputs()]  # by which optimum allocates on a GPU
    assert widths == [[encoder.encode(TEXTS).shape[1]], ["tokens", encoder.width]]
    tokenizer, scale = AutoTokenizer.from_pretrained(folder), np.abs(encoder.encode(TEXTS)).max()
    for texts in (TEXTS, TEXTS[:1]):
        inputs = tokenizer([start + text for text in texts], padding=True, truncation=True, return_tensors="np")
        (vectors,) = session.run(["sentence_embedding"], dict(inputs))
        np.testing.assert_allclose(vectors, encoder.encode(texts), atol=1e-5 * scale)
        np.testing.assert_array_equal(session.run(None, dict(inputs))[0], vectors)  # also by those who name no output
    assert AutoConfig.from_pretrained(folder).model_type == encoder.model.config.model_type
    assert float(run_card(folder)) == pytest.approx(product(encoder), abs=1e-3)  # of vectors of length 6
    with pytest.MonkeyPatch.context() as patch:
        optimum_stand_in.install(patch)
        opened = open_sentence_transformers(folder, backend="onnx")
    np.testing.assert_allclose(opened.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5 * scale)
    assert not list(folder.rglob("*.py"))
    with pytest.raises(ArtefactError, match=r"an export to onnx, which cse does not run; .* export it again"):
        cse.load(str(folder))


@pytest.mark.parametrize(
    ("method", "to", "reason"),
    [
        ("prompt-denoised", "sentence-transformers", "subtracts its template's bias"),
        ("static", "onnx", "pools by static"),
    ],
)
def test_what_a_form_cannot_hold_is_refused_and_nothing_is_left(bert_folder, tmp_path, method, to, reason):
    with pytest.raises(ValueError, match=reason):
        export_model(encoder_of(bert_folder, method), to, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_only_an_export_is_replaced_and_only_when_asked(bert_folder, tmp_path):
    encoder, folder = encoder_of(bert_folder, "simcse"), tmp_path / "out"
    export_model(encoder, "sentence-transformers", folder)
    with pytest.raises(ValueError, match=r"already holds an export; .* pass `overwrite`"):
        export_model(encoder, "sentence-transformers", folder)
    export_model(encoder_of(bert_folder, "promptbert"), "sentence-transformers", folder, overwrite=True)
    assert (folder / "1_WordWeights").is_dir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds notes.txt, which is no part of an export"):
        export_model(encoder, "sentence-transformers", folder, overwrite=True)
