"""Eq. 3 against a loop over plain transformers' probabilities; word-vector averages against hand-worked means."""

import lzma

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from transformers import AutoModelForMaskedLM, AutoTokenizer

import cse
from cse.evaluation.representations import glove, top_k_tokens, word_tokens

K = 7
VECTORS = "the 1 0\nman 0 2\nMan 0 4\nn't 6 6\n. . 9 9\n, -1 -1\n"


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


def test_a_sentence_is_the_mean_of_the_words_found(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text(VECTORS)
    vectors = glove(file).encode(["The man, the MAN don't", "Man man", "unknown words", "", "the . ."])
    # the, man, `,`, the, man (lower-cased), n't: do is unknown; Man has its own row; ". ." is one word with a space
    np.testing.assert_allclose(vectors, [[7 / 6, 9 / 6], [0, 3], [0, 0], [0, 0], [1, 0]], rtol=1e-6)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(glove(file).encode("the"), [1, 0])


@pytest.mark.parametrize(("name", "opener"), [("w.txt.xz", lzma.open), ("w.vec", open)])
def test_compressed_files_and_a_word2vec_header_give_the_same_vectors(tmp_path, name, opener):
    plain, other = tmp_path / "plain.txt", tmp_path / name
    plain.write_text(VECTORS)
    with opener(other, "wt") as file:  # type: ignore[operator]
        file.write("6 2\n" + VECTORS.replace("\n", " \n"))  # fastText ends its rows with a space
    np.testing.assert_array_equal(glove(other).encode(SENTENCES), glove(plain).encode(SENTENCES))
    assert glove(other).name == name
    known = glove(plain).fingerprint
    plain.write_text(VECTORS.replace("-1 -1", "-1 -2"))
    assert glove(plain).fingerprint != known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("6 2\n", "words.txt: no word vector in it; give"),
        ("the 1 2\n\nman 1 2 3\n", "words.txt: line 3 has 3 numbers after its word, not 2; repair the file"),
        ("the 1 2\nman 1 nan\n", "words.txt: line 2 has a value that is not finite; correct or remove"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(tmp_path, text, message):
    file = tmp_path / "words.txt"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"words\.txt") as caught:
        glove(file).encode(["the man"])
    assert message in str(caught.value)


def test_punctuation_and_contractions_are_split_and_split_text_stays():
    assert word_tokens("Don't stop: it's a well-known \"test\" -- isn't it?...") == [
        "Do", "n't", "stop", ":", "it", "'s", "a", "well-known", '"', "test", '"', "--", "is", "n't", "it", "?", "...",
    ]  # fmt: skip
    tokenised = "do n't you 'll see ; john 's `` word ''"
    assert word_tokens(tokenised) == tokenised.split()
