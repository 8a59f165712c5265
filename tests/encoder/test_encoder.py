"""Vectors against plain transformers, against attention written by hand, and against themselves in another order."""

from __future__ import annotations

import itertools
import random
from functools import cache
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SENTENCES, WORDS
from encoders import make, reading
from transformers import AutoModelForMaskedLM, AutoTokenizer

import cse
from cse.analysis.calibration import input_notes
from cse.encoder.rows import CHARACTERS_PER_TOKEN, shortened
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import When
from cse.methods.templates import MEANS, MEANS_ROBERTA, Template


@cache
def plain_model(backbone: str) -> tuple[Any, Any]:
    return AutoTokenizer.from_pretrained(backbone), AutoModelForMaskedLM.from_pretrained(backbone).eval()


def plain_states(backbone: str, text: str) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Each layer's states (L, d) of one text through plain transformers, and its ids (L,)."""
    tokenizer, model = plain_model(backbone)
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    return [layer[0] for layer in states], inputs["input_ids"][0]


@pytest.mark.parametrize("pooling", ["mean", "cls", "first-last", "last-two", "cls-first-last", "static"])
def test_poolings_are_their_definitions(backbone, pooling):
    encoder, words = cse.load(backbone, pooling, backend="torch"), plain_model(backbone)[1].get_input_embeddings()
    for sentence in SENTENCES:
        (first, *_, before, last), ids = plain_states(backbone, sentence)
        expected = {
            "mean": last.mean(0), "cls": last[0], "first-last": ((first + last) / 2).mean(0),
            "last-two": ((before + last) / 2).mean(0), "static": words(ids).mean(0).detach(),
            "cls-first-last": torch.cat([(first + last)[0] / 2, ((first + last) / 2).mean(0)]),
        }  # fmt: skip
        np.testing.assert_allclose(encoder.encode(sentence), expected[pooling], atol=1e-5)


def test_static_output_is_the_mean_of_the_decoders_rows(bert_folder, tmp_path):
    model = AutoModelForMaskedLM.from_pretrained(bert_folder)
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    model.config.tie_word_embeddings = False
    rows = torch.randn(model.config.vocab_size, model.config.hidden_size)
    decoder = model.cls.predictions.decoder
    decoder.weight, decoder.bias = torch.nn.Parameter(rows), torch.nn.Parameter(decoder.bias.detach().clone())
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    expected = rows[tokenizer(SENTENCES[0])["input_ids"]].mean(0)
    vector = cse.load(str(tmp_path), "static-output", backend="torch").encode(SENTENCES[0])
    np.testing.assert_allclose(vector, expected, atol=1e-6)


def test_the_mask_survives_a_sentence_of_ten_thousand_words(backbone):
    for name in ("promptbert", "dcpcse", "conpvp"):
        vectors = make(backbone, name).encode(["dog " * 10_000, "the dog"])
        assert np.isfinite(vectors).all()
        assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


ODD = [
    "", "   ", "[MASK]", "[SEP] [CLS] <mask> </s>", MEANS.text, "🎸🎸", "שלום עולם", "a\x00b", "\ud800", "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize(("text", "read"), [("a\x00dog", "a dog"), ("a \ud800 dog\udfff", "a ? dog?")], ids=ascii)
def test_nul_is_a_space_and_half_a_surrogate_a_question_mark_to_everything(bert_folder, text, read):
    encoder = make(str(bert_folder), "promptbert")
    np.testing.assert_array_equal(encoder.encode(text), encoder.encode(read))
    np.testing.assert_array_equal(encoder.encode([text], prompt="a\x00"), encoder.encode([read], prompt="a "))
    assert encoder.top_tokens(text) == encoder.top_tokens(read)
    assert input_notes(encoder, text) == input_notes(encoder, read)


@pytest.mark.parametrize("name", ["promptbert", "dcpcse"])
def test_odd_text_gives_finite_vectors_and_leaves_its_neighbours_alone(backbone, name):
    encoder = make(backbone, name)
    alone = encoder.encode(SENTENCES[0])
    for text in ODD:
        both = encoder.encode([text, SENTENCES[0]])
        assert np.isfinite(both).all(), ascii(text[:12])
        np.testing.assert_allclose(both[1], alone, atol=1e-5, err_msg=ascii(text[:12]))


def test_top_tokens_are_the_masked_language_model_at_the_template_mask(bert_folder):
    encoder = cse.load(str(bert_folder), "prompt", backend="torch")
    tokenizer, model = plain_model(str(bert_folder))
    inputs = tokenizer('This sentence : "the dog" means [MASK] .', return_tensors="pt")
    at = int((inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0])
    with torch.no_grad():
        probabilities = model(**inputs).logits[0, at].softmax(-1)
    predictions = encoder.top_tokens("the dog", k=8, denoise=False)
    for token, probability in predictions:
        assert probability == pytest.approx(float(probabilities[tokenizer.convert_tokens_to_ids(token)]), abs=1e-6)
    assert [p for _, p in predictions] == sorted((p for _, p in predictions), reverse=True)
    assert not {token for token, _ in predictions} & set(tokenizer.all_special_tokens)
    assert encoder.top_tokens("the dog", k=8) != predictions


def test_top_tokens_take_another_template(bert_folder):
    encoder = cse.load(str(bert_folder), "mean", backend="torch")
    tokenizer, model = plain_model(str(bert_folder))
    template = Template("[MASK] is not [X] and it was " + "big " * 60)
    rows = [tokenizer(f"[MASK] is not {text} and it was {'big ' * 60}")["input_ids"] for text in ("", "sad dog " * 10)]
    whole = rows[1][: 4 + 80 - len(rows[0])] + rows[0][4:]  # the sentence is cut to what 80 positions leave
    assert len(whole) == 80
    with torch.no_grad():
        expected = model(torch.tensor([whole])).logits[0, 1].softmax(-1)
    predictions = encoder.top_tokens("sad dog " * 50, k=5, denoise=False, template=template)
    for token, probability in predictions:
        assert probability == pytest.approx(float(expected[tokenizer.convert_tokens_to_ids(token)]), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "message"), [("it is [X]", r"needs a \[MASK\]"), ("big " * 90 + "[X] [MASK]", "no position")]
)
def test_a_template_without_mask_or_room_is_refused(bert_folder, text, message):
    with pytest.raises(ValueError, match=message):
        cse.load(str(bert_folder), backend="torch").top_tokens("the dog", template=Template(text))


def test_the_denoised_tokens_are_what_the_sentence_adds_to_the_template(bert_folder):
    encoder = cse.load(str(bert_folder), "prompt", backend="torch")
    template = encoder.prompt
    rows = encoder.rows_of(["the dog"], [template])
    with torch.no_grad():
        asked, alone = (encoder.model.cls(states)[0] for states in (encoder.pool(rows), encoder.bias(rows)))
    expected = (asked - alone).softmax(-1)
    for token, probability in encoder.top_tokens("the dog", k=3):
        assert probability == pytest.approx(float(expected[encoder.tokenizer.convert_tokens_to_ids(token)]), abs=1e-6)


def test_a_fingerprint_changes_with_what_encoding_depends_on(bert_folder):
    method = UNTRAINED["prompt"]
    changed = [
        method.replaced(template=MEANS_ROBERTA), method.replaced(denoise=When.ALWAYS),
        method.replaced(denoise=When.ALWAYS, specials_in_bias=False), UNTRAINED["cls"], UNTRAINED["mean"],
    ]  # fmt: skip
    fingerprints = [reading(str(bert_folder), variant).fingerprint for variant in (method, *changed)]
    assert len(set(fingerprints)) == len(fingerprints)


def test_threads_that_tokenise_otherwise_do_not_cut_each_others_sentences(bert_folder):
    encoder, lengths = make(str(bert_folder), "simcse"), []
    template = encoder.views[0][0]

    def cut(limit: int) -> None:
        for _ in range(60):
            lengths.extend(len(ids) for ids in encoder.tokenise(["dog cat " * 2000], [template], limit))

    threads = [Thread(target=cut, args=(50,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        input_notes(encoder, "a short text")
    assert set(lengths) == {50}


PIECES = {
    "words": [f"{word}{end}" for word in (*WORDS, "playingfoo") for end in (" ", ", ", "\n", "")],
    "ideographs": ["中", "文", "的", "句", "。", "，", "カ", "ナ", "\u3099", "豈"],
    "combining marks": ["e", "a ", "\u0301", "\u0323", "=\u0338", "ö", "가", "\u1100\u1161", "\u11a8"],
    "long words": ["cat" * 40, "x" * 101, " ", "-", " the"],
}


def test_a_long_text_has_the_ids_of_the_whole_and_little_of_it_is_read(backbone):
    encoder = cse.load(backbone, backend="torch")
    template = encoder.views[0][0]
    for kind, side in itertools.product(PIECES, ("right", "left")):
        encoder.tokenizer.truncation_side = side
        text = "".join(random.Random(20261123).choices(PIECES[kind], k=10_000))[:10_000]
        for limit in (1, 9, encoder.max_content):
            assert len(shortened(text, encoder.tokenizer, limit)) <= CHARACTERS_PER_TOKEN * (limit + 1), (kind, side)
            (ids,) = encoder.tokenise([text], [template], limit)
            whole = encoder.tokenizer(text, add_special_tokens=False, truncation=True, max_length=limit)
            assert list(ids) == list(whole["input_ids"]), (kind, side)
