"""Eq. 3 against a loop over plain transformers' probabilities."""

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from transformers import AutoModelForMaskedLM, AutoTokenizer

import cse
from cse.evaluation.representations import top_k_tokens

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
