"""Words have their marks; scripts without spaces are cut by an installed segmenter or into pairs, as a note says."""

import sys
import unicodedata
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest

from cse.corpus.words import han_language, segmenter, spans_within, word_notes, words

WITHOUT = " (the script has no spaces)"
CHINESE, JAPANESE, THAI = "送餐太慢了", "猫が好きです", "วันนี้อากาศดีมาก"


@pytest.fixture(autouse=True)
def _no_segmenters(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("jieba", "fugashi", "pythainlp", "pythainlp.tokenize"):
        monkeypatch.setitem(sys.modules, name, None)
    segmenter.cache_clear()
    yield
    segmenter.cache_clear()


@pytest.fixture
def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules with the names and calls of the segmenters, which know the three texts above."""
    jieba, fugashi, pythainlp = (ModuleType(name) for name in ("jieba", "fugashi", "pythainlp.tokenize"))
    known = {CHINESE: ["送餐", "太慢", "了"], "送餐": ["送餐"]}
    jieba.setLogLevel = lambda level: None
    jieba.Tokenizer = lambda: SimpleNamespace(initialize=lambda: None, lcut=known.__getitem__)
    surfaces = {JAPANESE: ["猫", "が", "好き", "です"]}
    fugashi.Tagger = lambda: lambda text: [SimpleNamespace(surface=word) for word in surfaces[text]]
    pythainlp.word_tokenize = {THAI: ["วันนี้", "อากาศ", "ดีมาก"]}.__getitem__
    for module in (jieba, fugashi, pythainlp):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "pythainlp", ModuleType("pythainlp"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("मौसम ठंडा है, बैंक बंद है।", ["मौसम", "ठंडा", "है", "बैंक", "बंद", "है"]),
        ("اَلْعَرَبِيَّةُ لُغَةٌ جَمِيلَةٌ.", ["اَلْعَرَبِيَّةُ", "لُغَةٌ", "جَمِيلَةٌ"]),
        ("می\u200cخواهم\u200c بروم", ["می\u200cخواهم", "بروم"]),
        ("L'ÉTÉ déjà, à Noël 2024", ["L", "ÉTÉ", "déjà", "à", "Noël", "2024"]),
        ("한국어 문장입니다", ["한국어", "문장입니다"]),
        ("don't well-known snake_case __init__", ["don", "t", "well", "known", "snake_case", "init"]),
        ("❤️great 1️⃣ ℹ️ 👩‍🔬 5 km²", ["great", "1", "ℹ", "5", "km²"]),
        ("! …", []),
    ],
)
def test_words_have_their_marks_in_any_normal_form(text, expected):
    nfc = [unicodedata.normalize("NFC", word) for word in expected]
    for form in ("NFC", "NFD"):
        assert words(unicodedata.normalize(form, text)) == nfc


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("送餐太慢，用iPhone点了2次", ["送餐", "餐太", "太慢", "用", "iPhone", "点了", "2", "次"],
         f"Chinese words are character pairs{WITHOUT}; install jieba for words"),
        ("人々はラーメンを", ["人々", "々は", "はラ", "ラー", "ーメ", "メン", "ンを"],
         f"Japanese words are character pairs{WITHOUT}; install fugashi for words"),
        ("ที่นี้ covid19", ["ที่นี้", "covid19"], f"Thai words are character pairs{WITHOUT}; install pythainlp for words"),
        ("မြန်မာ", ["မြန်", "န်မာ"], f"Burmese words are character pairs{WITHOUT}"),
    ],
)  # fmt: skip
def test_scripts_without_spaces_are_pairs_of_characters_with_their_marks(text, expected, note):
    assert words(text) == expected
    assert word_notes(["a dog", text], expected) == [note]
    assert word_notes(["a dog", text], ["dog", "2024"]) == []


def test_spans_of_scripts_without_spaces_do_not_overlap_and_others_are_whole():
    text = "送餐太慢了，用iPhone don't"
    cut = spans_within(text, 0, text.index(" "))
    assert [text[slice(*span)] for span in cut] == ["送餐", "太慢", "了", "用", "iPhone"]
    assert spans_within(text, text.index("don"), len(text)) == [(len(text) - 5, len(text))]


def test_kana_tell_japanese_from_chinese_and_most_texts_tell_it_of_one_without():
    assert han_language([CHINESE, "東京", JAPANESE, "a dog"]) == "Chinese"
    assert han_language(["東京", JAPANESE, "ねこ", "ラーメン"]) == "Japanese"
    assert han_language(["a dog"]) == "Chinese"
    notes = word_notes([CHINESE, JAPANESE, "味道很好"], ["送餐"])
    assert [note.split()[0] for note in notes] == ["Chinese", "Japanese"]


@pytest.mark.usefixtures("_stand_ins")
def test_a_segmenter_that_is_installed_cuts_words_and_is_named():
    assert words(f"{CHINESE}!") == ["送餐", "太慢", "了"]
    assert words(JAPANESE) == ["猫", "が", "好き", "です"]
    assert words(f"{THAI} dog") == ["วันนี้", "อากาศ", "ดีมาก", "dog"]
    assert word_notes([CHINESE, JAPANESE, THAI], ["送餐", "อากาศ"]) == [
        "Chinese words are segmented by jieba",
        "Japanese words are segmented by fugashi",
        "Thai words are segmented by pythainlp",
    ]
    assert spans_within(f"A {THAI}", 2, 2 + len(THAI)) == [(2, 8), (8, 13), (13, 18)]
