"""The encoder under sentence-transformers' own evaluators and tools, and beside its models, argument by argument."""

import inspect
import math
from copy import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT, SENTENCES

import cse
from cse.corpus.supervised import scored_pairs
from cse.encoder.encoder import Encoder
from cse.encoder.torch_encoder import TorchEncoder
from cse.vectors import PRECISIONS, quantised

pytest.importorskip("sentence_transformers", reason="sentence-transformers (tests/requirements.txt) is not installed")

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from sentence_transformers.util import SimilarityFunction, paraphrase_mining, quantize_embeddings

PAIRS = scored_pairs(ROOT / "cse/bundled/demo/pairs.tsv")
PROMPTS = {"query": "a dog : ", "document": "the ", "sad": "it is sad : "}


@pytest.fixture
def encoder(bert_folder: Path) -> TorchEncoder:
    encoder = cse.load(str(bert_folder), "mean", device="cpu", backend="torch")
    encoder.prompts = dict(PROMPTS)
    return encoder


@pytest.fixture(scope="module")
def theirs(bert_folder: Path) -> SentenceTransformer:
    """The same backbone and pooling as a model of sentence-transformers."""
    transformer = Transformer(str(bert_folder))
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(modules=[transformer, pooling], prompts=PROMPTS, device="cpu")


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


@pytest.mark.parametrize(
    "options",
    [
        {"prompt": "the red "}, {"prompt_name": "sad"}, {"prompt": "the red ", "prompt_name": "unheard"},
        {"truncate_dim": 900}, {"truncate_dim": 5, "normalize_embeddings": True},
        {"precision": "binary", "truncate_dim": 12},
    ],
    ids=str,
)  # fmt: skip
def test_arguments_mean_what_they_mean_in_sentence_transformers(encoder, theirs, options):
    for sentences in (SENTENCES, SENTENCES[0]):
        vectors, expected = encoder.encode(sentences, **options), theirs.encode(sentences, **options)
        assert (vectors.shape, vectors.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["encode", "encode_query", "encode_document"])
def test_arguments_have_the_order_and_names_of_sentence_transformers(encoder, theirs, name):
    ours, reference = getattr(encoder, name), getattr(theirs, name)
    expected = [argument for argument in inspect.signature(reference).parameters if argument != "kwargs"]
    own = list(inspect.signature(Encoder.encode).parameters)[1:-1]
    assert own == expected
    values = ["sad", None, 2, False, "sentence_embedding", "float32", True, True, "cpu", True, 7]
    for count in range(len(values) + 1):
        np.testing.assert_allclose(ours(SENTENCES, *values[:count]), reference(SENTENCES, *values[:count]), atol=1e-6)
    for called in ("inputs", "sentences"):
        rows = ours(**{called: SENTENCES}, chunk_size=3, **({"task": "query"} if name == "encode" else {}))
        np.testing.assert_array_equal(rows, ours(SENTENCES))
    with pytest.raises(TypeError, match="inputs"):
        ours()


def test_a_default_prompt_is_put_before_what_has_no_other(encoder, theirs):
    plain = encoder.fingerprint
    encoder.default_prompt_name = "sad"
    expected = copy(theirs)
    expected.default_prompt_name = "sad"
    for options in ({}, {"prompt_name": "query"}, {"prompt": ""}):
        rows = [model.encode(SENTENCES, **options) for model in (encoder, expected)]
        np.testing.assert_allclose(*rows, atol=1e-6)
    np.testing.assert_allclose(encoder.encode_query(SENTENCES), theirs.encode_query(SENTENCES), atol=1e-6)
    assert encoder.fingerprint != plain  # so that no index of one is searched with the other
    encoder.default_prompt_name = "unheard"
    with pytest.raises(ValueError, match="`default_prompt_name` is 'unheard'; `prompts` of this model has query"):
        encoder.encode(SENTENCES)


def test_vectors_are_cut_where_the_model_says(encoder):
    rows = encoder.encode(SENTENCES)
    with encoder.truncate_embeddings(9):
        np.testing.assert_array_equal(encoder.encode(SENTENCES), rows[:, :9])
        np.testing.assert_array_equal(encoder.encode(SENTENCES, truncate_dim=4), rows[:, :4])
        assert encoder.get_embedding_dimension() == 9
    np.testing.assert_array_equal(encoder.encode(SENTENCES), rows)


def test_queries_and_documents_have_their_prompts(encoder, theirs):
    for name in ("encode_query", "encode_document"):
        ours, reference = getattr(encoder, name), getattr(theirs, name)
        for options in ({}, {"prompt_name": "sad"}, {"prompt": "big "}, {"truncate_dim": 7}):
            np.testing.assert_allclose(ours(SENTENCES, **options), reference(SENTENCES, **options), atol=1e-6)
        assert isinstance(ours(SENTENCES, convert_to_tensor=True), torch.Tensor)
    assert np.abs(encoder.encode_query(SENTENCES) - encoder.encode_document(SENTENCES)).max() > 1e-2
    encoder.prompts = {"corpus": "of ", "passage": "in "}
    np.testing.assert_array_equal(encoder.encode_document(SENTENCES), encoder.encode(SENTENCES, prompt="in "))
    np.testing.assert_array_equal(encoder.encode_query(SENTENCES), encoder.encode(SENTENCES))


def test_max_seq_length_counts_the_template_and_is_the_recorded_one(bert_folder):
    encoder = cse.load(str(bert_folder), "prompt", backend="torch")
    fits = "dog " * (encoder.max_seq_length - encoder.views[0][0].length - 1)
    assert np.abs(encoder.encode(fits + "cat") - encoder.encode(fits + "dog")).max() > 1e-3
    np.testing.assert_array_equal(encoder.encode(fits + "dog cat"), encoder.encode(fits + "dog"))
    room, whole, plain = encoder.max_seq_length, encoder.encode(fits), encoder.fingerprint
    encoder.max_seq_length = 20
    assert encoder.max_seq_length == 20
    kept = "dog " * (20 - encoder.views[0][0].length)
    np.testing.assert_array_equal(encoder.encode(fits), encoder.encode(kept))
    assert np.abs(encoder.encode(fits) - whole).max() > 1e-3
    assert encoder.fingerprint != plain
    for value in (room, 10_000, None):  # no more than the model has positions for
        encoder.max_seq_length = 20
        encoder.max_seq_length = value
        assert encoder.max_seq_length == room
        assert encoder.fingerprint == plain
    plain_reading = cse.load(str(bert_folder), "mean")
    plain_reading.max_row_length = plain_reading.row_limit  # as a folder may record it, beyond what a template leaves
    plain, length = plain_reading.fingerprint, plain_reading.max_seq_length
    plain_reading.max_seq_length = length
    assert (plain_reading.max_seq_length, plain_reading.fingerprint) == (length, plain)
    fewest = encoder.views[0][0].length + 1
    with pytest.raises(ValueError, match=f"^`max_seq_length` is {fewest - 1}; give at least {fewest}, for"):
        encoder.max_seq_length = fewest - 1


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions_are_those_of_quantize_embeddings(encoder, precision):
    rows = encoder.encode([text for _, *pair in PAIRS for text in pair][:100], truncate_dim=21)
    rows[:, 3] = 0.25  # no range to divide
    codes = quantised(rows, precision)
    expected = quantize_embeddings(rows, precision)
    assert codes.dtype == expected.dtype
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(
        encoder.encode(SENTENCES, precision=precision, convert_to_tensor=True),
        quantised(encoder.encode(SENTENCES), precision),
    )
    assert len(encoder.encode([], precision=precision)) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt_name": "unheard"}, "`prompt_name` is 'unheard'; `prompts` of this model has query, document, sad$"),
        ({"precision": "int8"}, "`precision` int8 needs the range of several vectors"),
        ({"inputs": ["a", 3]}, "sentence 1 is 3, not text$"),
        ({"output_value": "token_embeddings"}, "`output_value` is 'token_embeddings'"),
        ({"device": ["cpu", "cpu"]}, r"`device` is \['cpu', 'cpu'\]; give one$"),
        ({"processing_kwargs": {}}, "`encode` has no argument `processing_kwargs` here"),
    ],
)
def test_what_is_not_supported_is_refused_in_a_line(encoder, options, message):
    with pytest.raises(ValueError, match=message):
        encoder.encode(**{"inputs": SENTENCES[:1], **options})


@pytest.mark.parametrize("name", ["dot", "manhattan", None, SimilarityFunction.EUCLIDEAN])
def test_similarities_are_those_of_their_name(encoder, theirs, name):
    first, second = encoder.encode(SENTENCES[:3]).astype(np.float64), encoder.encode(SENTENCES[4:]).astype(np.float64)
    by_hand = {
        "cosine": cosine,
        "dot": lambda a, b: sum(x * y for x, y in zip(a, b, strict=True)),
        "euclidean": lambda a, b: -math.dist(a, b),
        "manhattan": lambda a, b: -sum(abs(x - y) for x, y in zip(a, b, strict=True)),
    }
    encoder.similarity_fn_name = theirs.similarity_fn_name = name
    called = "cosine" if name is None else getattr(name, "value", name)
    assert encoder.similarity_fn_name == theirs.similarity_fn_name == called
    expected = [[by_hand[called](a, b) for b in second] for a in first]
    similarities = encoder.similarity(first, second)
    np.testing.assert_allclose(similarities, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(similarities, theirs.similarity(first, second), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(encoder.similarity_pairwise(first, second), np.diag(expected), rtol=1e-5, atol=1e-6)
    theirs.similarity_fn_name = None


def test_a_similarity_without_a_function_is_refused_in_a_line(encoder):
    with pytest.raises(ValueError, match="`similarity_fn_name` is 'maxsim'; choose from cosine, dot, "):
        encoder.similarity_fn_name = "maxsim"
    assert encoder.similarity_fn_name == "cosine"


@pytest.mark.parametrize("options", [{"prompt": "the ", "truncate_dim": 9}, {"prompt_name": "sad"}], ids=str)
def test_paraphrase_mining_gives_the_pairs_of_sentence_transformers(encoder, theirs, options):
    mined, expected = (paraphrase_mining(model, SENTENCES, **options) for model in (encoder, theirs))
    assert [pair for _, *pair in mined] == [pair for _, *pair in expected]
    np.testing.assert_allclose([score for score, *_ in mined], [score for score, *_ in expected], atol=1e-6)


def test_the_retrieval_evaluator_gives_the_scores_of_sentence_transformers(encoder, theirs):
    queries = {"q1": "dog", "q2": "a happy woman", "q3": "big kitchen"}
    corpus = {f"d{number}": text for number, text in enumerate(SENTENCES)}
    relevant = {"q1": {"d1", "d5"}, "q2": {"d3"}, "q3": {"d5", "d6", "d0"}}
    scores, expected = (InformationRetrievalEvaluator(queries, corpus, relevant)(model) for model in (encoder, theirs))
    assert scores == pytest.approx(expected, abs=1e-6)
    assert 0 < scores["cosine_ndcg@10"] < 1
