"""Eq. 3 against a loop over plain transformers' probabilities; whitening against its definition and scikit-learn."""

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from sklearn.decomposition import PCA
from transformers import AutoModelForMaskedLM, AutoTokenizer

import cse
from cse.evaluation.representations import Representation, fit_whitening, top_k_tokens, whitened

K = 7


def eq3(probabilities: np.ndarray, words: np.ndarray, special: set[int]) -> np.ndarray:
    """PromptBERT's Eq. 3 as a loop: the K likeliest tokens' vectors, weighted by probability."""
    best = [int(v) for v in np.argsort(-probabilities) if int(v) not in special][:K]
    return sum(probabilities[v] * words[v] for v in best) / sum(probabilities[v] for v in best)


def test_a_sentence_is_its_likeliest_tokens_weighted_by_probability(backbone):
    encoder = cse.load(backbone, "prompt", backend="torch")
    tokenizer, model = AutoTokenizer.from_pretrained(backbone), AutoModelForMaskedLM.from_pretrained(backbone).eval()
    vectors = top_k_tokens(encoder, False, k=K).encode(SENTENCES, batch_size=3)
    words = model.get_input_embeddings().weight.detach().numpy()
    for sentence, vector in zip(SENTENCES, vectors, strict=True):
        filled = encoder.reading.template.text.replace("[X]", sentence).replace(" [MASK]", tokenizer.mask_token)
        inputs = tokenizer(filled, return_tensors="pt")
        with torch.no_grad():
            logits = model(**inputs).logits[inputs["input_ids"] == tokenizer.mask_token_id][0]
        expected = eq3(logits.softmax(-1).numpy(), words, set(tokenizer.all_special_ids))
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_more_tokens_than_a_vocabulary_has_are_refused(bert_folder):
    with pytest.raises(ValueError, match="`k` is 10000; choose between 1 and"):
        top_k_tokens(cse.load(str(bert_folder), "prompt"), False, k=10_000)


def correlated(count: int, width: int, seed: int = 0) -> np.ndarray:
    """(count, width) float32 draws from one Gaussian with mixed scales and a mean."""
    generator = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(width, width)) * np.geomspace(0.1, 3, width)
    return (generator.normal(size=(count, width)) @ mixing + 5).astype(np.float32)


def test_whitening_is_scikit_learns_but_for_signs():
    vectors, others = correlated(200, 5), correlated(50, 5, seed=1)
    expected = PCA(whiten=True).fit(vectors.astype(np.float64)).transform(others)
    mean, matrix = fit_whitening(vectors)
    np.testing.assert_allclose(np.abs((others - mean) @ matrix), np.abs(expected), atol=1e-3)


def test_a_real_encoder_is_wrapped_and_its_own_numbers_count(bert_folder):
    encoder = cse.load(str(bert_folder), "mean")
    texts = [f"{first} and {second}" for first in SENTENCES for second in SENTENCES]
    made = whitened(encoder, texts)
    vectors = encoder.encode(texts)
    np.testing.assert_allclose(made.encode(SENTENCES[:2], batch_size=1), made.encode(SENTENCES[:2]), atol=1e-3)
    np.testing.assert_allclose(np.cov(made.encode(texts), rowvar=False), np.eye(made.encode(texts).shape[1]), atol=1e-3)
    assert made.name == "bert-mean+whitening"
    other = Representation("other", "1" * 12, lambda _, __: vectors)
    assert whitened(other, texts).fingerprint != made.fingerprint
