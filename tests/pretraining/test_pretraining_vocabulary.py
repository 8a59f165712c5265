"""Pruning: kept pieces keep their rows and split words as before, no character is lost, and wrong sizes are refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import SENTENCES, WORDS
from pretraining_runs import CONFIG, run_pretraining, write_corpus
from transformers import AutoTokenizer

from cse.encoding.backbone import load_backbone
from cse.errors import ArtefactError
from cse.pretraining.vocabulary import keep_rows, pruned_tokenizer

SIZE = 110  # of the test model's 142 pieces, 86 of them special tokens and characters


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_the_kept_pieces_are_the_specials_the_characters_and_the_commonest(bert_folder: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    common = [word for word in WORDS if len(word) > 1][:30]
    text.write_text("\n".join(" ".join(common[: n + 1]) for n in range(30)))  # an earlier word occurs more often
    whole = AutoTokenizer.from_pretrained(bert_folder)
    characters = {piece for piece in whole.get_vocab() if len(piece.removeprefix("##")) == 1}
    needed = characters | set(whole.all_special_tokens)
    pruned = pruned_tokenizer(whole, [text], len(needed) + 7)
    assert set(pruned.get_vocab()) == needed | set(common[:7])
    known = whole.get_vocab()
    order = sorted(pruned.get_vocab(), key=pruned.get_vocab().get)
    assert order == sorted(order, key=known.get)
    for attribute in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"):
        assert getattr(pruned, attribute) == getattr(whole, attribute)


def test_words_of_kept_pieces_are_cut_as_before_and_none_becomes_unknown(bert_folder: str, corpus: Path) -> None:
    whole = AutoTokenizer.from_pretrained(bert_folder)
    pruned = pruned_tokenizer(whole, [corpus], SIZE)
    kept = set(pruned.get_vocab())
    same = 0
    for text in [*SENTENCES, *WORDS, "The cats of Kitchens, playing the guitarist!"]:
        before, after = whole.tokenize(text), pruned.tokenize(text)
        assert "[UNK]" not in after
        assert "".join(before).replace("##", "") == "".join(after).replace("##", "")
        if set(before) <= kept:
            assert before == after
            same += 1
    assert 0 < same < len(SENTENCES) + len(WORDS) + 1


@pytest.mark.parametrize("headless", [False, True])
def test_every_kept_piece_keeps_its_row_and_its_logit(
    bert_folder: str, corpus: Path, headless: bool, tmp_path: Path
) -> None:
    folder = bert_folder
    if headless:
        model, tokenizer = load_backbone(bert_folder)
        model.base_model.save_pretrained(tmp_path / "encoder")
        tokenizer.save_pretrained(tmp_path / "encoder")
        folder = str(tmp_path / "encoder")
    (whole, before), (model, _) = load_backbone(folder), load_backbone(folder)
    after = pruned_tokenizer(before, [corpus], SIZE)
    keep_rows(model, before, after)
    assert model.config.vocab_size == SIZE
    pieces = ["the", "dog", "##d", "[MASK]", "z"]
    old, new = before.convert_tokens_to_ids(pieces), after.convert_tokens_to_ids(pieces)
    assert old != new
    torch.testing.assert_close(model.get_input_embeddings().weight[new], whole.get_input_embeddings().weight[old])
    text = "the dog was running"
    hidden = [
        m.base_model(**t(text, return_tensors="pt")).last_hidden_state for m, t in ((whole, before), (model, after))
    ]
    torch.testing.assert_close(*hidden)
    if not headless:
        logits = [m(**t(text, return_tensors="pt")).logits for m, t in ((whole, before), (model, after))]
        torch.testing.assert_close(logits[0][..., old], logits[1][..., new])
        assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


def test_a_pruned_model_is_trained_saved_and_pruned_once(bert_folder: str, corpus: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, vocabulary=SIZE)
    run_pretraining(corpus, tmp_path / "out", config, init=str(bert_folder))
    model, tokenizer = load_backbone(tmp_path / "out" / "model")
    assert (model.config.vocab_size, len(tokenizer)) == (SIZE, SIZE)
    again = run_pretraining(corpus, tmp_path / "out", config, init=str(bert_folder), overwrite=True)
    assert again["recipe"]["vocabulary"] == again["model"]["vocabulary"] == SIZE


@pytest.mark.parametrize(("size", "message"), [(143, "`init` has 142 pieces"), (60, "more than the 86 special tokens")])
def test_a_size_above_the_models_or_below_its_characters_is_refused(
    bert_folder: str, corpus: Path, size: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        pruned_tokenizer(AutoTokenizer.from_pretrained(bert_folder), [corpus], size)


def test_a_byte_level_tokenizer_is_not_pruned(roberta_folder: str, corpus: Path) -> None:
    with pytest.raises(ArtefactError, match=r"cannot be pruned.*`vocabulary`"):
        pruned_tokenizer(AutoTokenizer.from_pretrained(roberta_folder), [corpus], 50)
