"""Very long texts: cut before they are tokenised, with the very ids that the whole text has."""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import pytest

import cse
from cse.encoding import long_texts
from cse.engines.torch_encoder import TorchEncoder
from cse.methods.catalogue import METHODS
from tests.conftest import SENTENCES, WORDS

SEED = 20261123
LIMITS = (1, 2, 7, 20, 40, 60, 80, 100, 130, 160, 200, 250, 300)
PIECES = {
    "words": [f"{word}{end}" for word in (*WORDS, "playingfoo") for end in (" ", ", ", "\n", "")],
    "white space": [" ", "\t", "\r\n", "\u00a0", "\u2003", "\u3000", "\x0b", "\x1c", "\x85", "cat", " dog"],
    "white space alone": [" "],
    "one letter": ["a"],
    "letters": list("abcdefghijklmnop"),
    "no white space": [*WORDS, "'", "s", "'re", "12", "!", "<mask>", "[MASK]", "{", "+"],
    "ideographs": ["中", "文", "的", "句", "。", "，", "カ", "ナ", "\u3099", "豈", "\u8c48"],
    "combining marks": ["e", "a ", "\u0301", "\u0323", "\u0327", "=\u0338", "ö", "가", "\u1100\u1161", "\u11a8"],
    "marks on white space": [" \u0301", " ", "\u0338", "\n\u0323", "cat"],
    "normalised to nothing": ["\u200b", "\u0301", "\ufeff", "\x01", "\u00ad", "\u200d", " a"],
    "very long words": ["cat" * 40, "x" * 101, " ", "1234567890" * 30, "-", " the"],
    "digits": ["1", "23", "7 ", "0"],
    "joined emoji": ["👩\u200d", "👧", "🏽", " ", "!", "\ufe0f"],
    "contractions": ["don", "'", "t", "''", "'l", "l ", "``", " ' "],
    "added words": ["sad ", "red cat ", "red ", "cat ", "red  cat", "dog"],
}


def odd_texts(length: int) -> dict[str, str]:
    """A text of `length` characters of each kind of pieces, and three of any characters at all."""
    rng = random.Random(SEED)
    texts = {name: "".join(rng.choices(pieces, k=length))[:length] for name, pieces in PIECES.items()}
    for number, last in enumerate((0xFF, 0x2FFF, 0x1FFFF)):
        letters = [chr(rng.randrange(1, last)) for _ in range(length)]
        texts[f"any {number}"] = "".join(c for c in letters if unicodedata.category(c) != "Cs")
    texts["a long number"] = "x" + "1" * (length - 1)  # which some tokenizers split from its end on
    texts["words after nothing"] = "\u200b" * (length // 2) + texts["words"]
    texts["words after white space"] = " " * (length // 2) + texts["words"]
    return texts


def other_tokenizer(kind: str) -> Any:
    """A fast tokenizer of another make, which has words of several words; one does not split texts otherwise."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    if kind == "unigram":
        inner = Tokenizer(models.Unigram())
        inner.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
        inner.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer: Any = trainers.UnigramTrainer(
            vocab_size=300, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
        )
    else:
        inner = Tokenizer(models.BPE(unk_token="<unk>"))
        inner.normalizer = normalizers.NFC()
        if kind == "bpe":
            pattern = (
                r"'(?:s|t|re|ll)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            )
            inner.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
        trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=["<unk>"], show_progress=False)
    letters = sorted({letter for pieces in PIECES.values() for piece in pieces for letter in piece})
    inner.train_from_iterator([*SENTENCES, " ".join(WORDS), "".join(letters), "11 111 11 111"], trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")
    made.add_tokens(["red cat", "sad red cat dog"])
    return made


def uncut(tokenizer: Any, text: str, limit: int) -> list[int]:
    return list(
        tokenizer(text, add_special_tokens=False, split_special_tokens=True, truncation=True, max_length=limit)[
            "input_ids"
        ]
    )


@pytest.mark.parametrize("method", ["simcse", "conpvp"])
def test_a_model_reads_the_same_ids_of_a_long_text_as_of_the_whole(backbone: str, method: str, monkeypatch) -> None:
    monkeypatch.setattr(long_texts, "SHORTEST", 300)
    source = cse.load(backbone, backend="torch")
    encoder = TorchEncoder(source.model, source.tokenizer, METHODS[method], name="long")
    for view in encoder.views:
        for name, text in odd_texts(3000).items():
            spaced = f" {text}" if view[0].spaced else text
            expected = uncut(encoder.tokenizer, spaced.replace("\x00", " "), encoder.max_content)
            assert encoder.tokenise([text], [view[0]]) == [expected], name
            assert encoder.tokenise([text], [view[0]], 9) == [expected[:9]], name


@pytest.mark.parametrize("kind", ["bert", "roberta", "unigram", "bpe", "bpe without words"])
def test_the_beginning_for_a_limit_has_the_same_ids_by_any_fast_tokenizer(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_texts, "SHORTEST", 150)
    ours = kind in ("bert", "roberta")
    tokenizer = (
        cse.load(str(request.getfixturevalue(f"{kind}_folder")), backend="torch").tokenizer
        if ours
        else other_tokenizer(kind)
    )
    cut = set()
    for name, text in odd_texts(2500).items():
        whole = uncut(tokenizer, text, len(text))
        for limit in LIMITS:
            beginning = long_texts.beginning(text, tokenizer, limit)
            assert text.startswith(beginning) or kind == "bert"
            assert uncut(tokenizer, beginning, limit) == whole[:limit], (name, limit, len(beginning))
            cut |= {name} if beginning != text else set()
    assert len(cut) >= 4 if kind != "bpe without words" else cut <= {"added words"}


def test_a_tokenizer_that_keeps_the_end_reads_the_whole_text(bert_folder) -> None:
    encoder = cse.load(str(bert_folder), backend="torch")
    encoder.tokenizer.truncation_side = "left"
    text = "the cat " * 10_000 + "is sad"
    assert encoder.tokenise([text], [encoder.views[0][0]]) == [uncut(encoder.tokenizer, text, encoder.max_content)]
    assert encoder.tokenizer.decode(encoder.tokenise([text], [encoder.views[0][0]])[0]).endswith("cat is sad")


def lengths_read(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all texts that the encoder's tokenizer will be given, as they come."""
    read: list[int] = []
    inner = type(encoder.tokenizer)._encode_plus

    def watched(self: Any, text: Any, *arguments: Any, **named: Any) -> Any:
        read.extend(map(len, [text] if isinstance(text, str) else text))
        return inner(self, text, *arguments, **named)

    monkeypatch.setattr(type(encoder.tokenizer), "_encode_plus", watched)
    return read


def test_a_line_of_megabytes_is_not_read_by_the_tokenizer(backbone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = cse.load(backbone, backend="torch")
    text = "the man is playing guitar, and a woman runs in the park. " * 50_000
    read = lengths_read(encoder, monkeypatch)
    assert len(text) > 2_000_000
    encoder.encode([text])
    encoder.top_tokens(text)
    assert 0 < max(read) <= long_texts.SHORTEST


@pytest.mark.parametrize("piece", ["a", "x9", " ", "\t\n", "é" + "a" * 4999, "a" * 5000 + "\u3000"])
def test_of_a_text_without_a_place_to_cut_little_is_read_by_berts_tokenizer(
    bert_folder: str, piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = cse.load(str(bert_folder), backend="torch")
    text = "the cat " + piece * (200_000 // len(piece)) + " sat"
    whole = uncut(encoder.tokenizer, text, encoder.max_content)
    read = lengths_read(encoder, monkeypatch)
    assert encoder.tokenise([text], [encoder.views[0][0]]) == [whole]
    assert sum(read) < 20_000


def test_long_words_are_squeezed_for_berts_tokenizer_alone(bert_folder: str, roberta_folder: str) -> None:
    bert, roberta = (cse.load(str(folder), backend="torch").tokenizer for folder in (bert_folder, roberta_folder))
    text = "a" * 99 + " " + "b" * 105 + "\n \t" + "c" * 500 + "-d"
    assert long_texts.collapsed(text, roberta) == text
    assert long_texts.collapsed(text, bert) == "a" * 99 + " " + "b" * 101 + "\n" + "c" * 101 + "-d"
    assert uncut(bert, long_texts.collapsed(text, bert), 512) == uncut(bert, text, 512)
    bert.add_tokens(["cc"])
    assert long_texts.collapsed(text, bert) == text


def test_a_text_of_usual_length_reaches_the_tokenizer_once(backbone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = cse.load(backbone, backend="torch")
    read = lengths_read(encoder, monkeypatch)
    texts = [*SENTENCES, "the dog " * 2400]
    encoder.encode(texts)
    assert read == [len(text) for text in texts]
