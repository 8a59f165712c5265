"""Words of texts in any language: letters with their marks, and digits.

Scripts without spaces between words are cut by a segmenter, if it is installed, or into pairs of characters.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from tempfile import TemporaryDirectory

import regex

MAX_PAIRS = 3  # of labels, in a note
EAST_ASIAN = "EastAsian"  # Chinese and Japanese share Han characters
SCRIPTS = {
    EAST_ASIAN: r"\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}",
    "Thai": r"\p{Thai}",
    "Lao": r"\p{Lao}",
    "Khmer": r"\p{Khmer}",
    "Burmese": r"\p{Myanmar}",
}
_UNSPACED = "".join(SCRIPTS.values())
# Letters and digits begin a word. The marks of emoji and keycaps are no part of it; joiners are: Persian, Malayalam and
# Sinhala spell words with them. Underscores are, too, between letters: identifiers are words.
_BASE, _MARK = r"\p{L}\p{N}", r"[[\p{Mn}\p{Mc}\u200D]--[\uFE0E\uFE0F]]"


def _word(first: str) -> str:
    """The pattern of a word whose letters and digits are `first`, a set."""
    rest = rf"{first}[{first}{_MARK}]*+"
    return rf"{rest}(?:[_\u200C]++{rest})*+"


WORD = regex.compile(_word(rf"[{_BASE}]"), regex.V1)
UNSPACED_LETTER = rf"[[{_BASE}]&&[{_UNSPACED}]]{_MARK}*+"
_OTHER = "other"
_RUN = regex.compile(  # a word, or all that a script without spaces has between others
    "|".join(
        [f"(?P<{_OTHER}>{_word(f'[[{_BASE}]--[{_UNSPACED}]]')})"]
        + [f"(?P<{name}>(?:[[{_BASE}]&&[{script}]]{_MARK}*+)++)" for name, script in SCRIPTS.items()]
    ),
    regex.V1,
)
_UNIT = regex.compile(rf"[{_BASE}]{_MARK}*+", regex.V1)
_ANY_UNSPACED, _EAST_ASIAN, _KANA = (
    regex.compile(f"[{script}]") for script in (_UNSPACED, SCRIPTS[EAST_ASIAN], r"\p{Hiragana}\p{Katakana}")
)
SEGMENTERS = {"Chinese": "jieba", "Japanese": "fugashi", "Thai": "pythainlp"}
LANGUAGES = ("Chinese", "Japanese", *(name for name in SCRIPTS if name != EAST_ASIAN))


def words(text: str, han: str = "Chinese") -> list[str]:
    """Return the words of a text, in NFC and their order; `han` is the language of a text of Han without kana."""
    text = unicodedata.normalize("NFC", text)
    if text.isascii() or not _ANY_UNSPACED.search(text):  # a tenth of the time
        return WORD.findall(text)
    return [word for match in _RUN.finditer(text) for word in _words_of(match, han, 1)]


def spans_within(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the span `start` to `end`, or without overlaps those of its words if scripts without spaces are in it."""
    if not _ANY_UNSPACED.search(text, start, end):
        return [(start, end)]
    spans = []
    for match in _RUN.finditer(text, start, end):
        at = match.start()
        for word in _words_of(match, "Chinese", 2):
            spans.append((at, at + len(word)))
            at += len(word)
    return spans


def _words_of(match: regex.Match[str], han: str, step: int) -> Sequence[str]:
    """The words of a run; without a segmenter the pairs of its characters, each `step` after the one before."""
    if match.lastgroup == _OTHER:
        return [match[0]]
    segment = segmenter(_language(match, han))
    if segment is not None:
        return segment(match[0])
    units = _UNIT.findall(match[0])
    return ["".join(units[at : at + 2]) for at in range(0, max(1, len(units) + step - 2), step)]


def han_language(texts: Iterable[str]) -> str:
    """Return the language of those texts that have Han characters and no kana, by what most of the East Asian have."""
    kana = [_KANA.search(text) is not None for text in texts if not text.isascii() and _EAST_ASIAN.search(text)]
    return "Japanese" if 2 * sum(kana) > len(kana) else "Chinese"


def word_notes(texts: Sequence[str], shown: Iterable[str]) -> list[str]:
    """Return a line for each language without spaces that the `shown` words of the texts may be of: how it was cut."""
    scripts = {match.lastgroup for word in shown for match in _RUN.finditer(word)} - {_OTHER}
    if not scripts:
        return []
    han = han_language(texts)
    runs = (match for text in texts for match in _RUN.finditer(text) if match.lastgroup in scripts)
    languages = {_language(match, han) for match in runs}
    return [_note(language) for language in LANGUAGES if language in languages]


def _note(language: str) -> str:
    package = SEGMENTERS.get(language)
    if segmenter(language) is not None:
        return f"{language} words are segmented by {package}"
    return f"{language} words are character pairs (the script has no spaces)" + (
        f"; install {package} for words" if package else ""
    )


def _language(match: regex.Match[str], han: str) -> str:
    """The language of a run of a script without spaces, by the text it is in."""
    if match.lastgroup != EAST_ASIAN:
        return str(match.lastgroup)
    return "Japanese" if _KANA.search(match.string) else han


@cache
def segmenter(language: str) -> Callable[[str], list[str]] | None:
    """Return what cuts a text of a language into words; None if no such package is installed, with its dictionary."""
    try:
        if language == "Chinese":
            import jieba

            jieba.setLogLevel(logging.WARNING)  # else each start of it is told on stderr
            tokenizer = jieba.Tokenizer()
            with TemporaryDirectory() as folder:  # its default is a file of any user's in the temporary folder
                tokenizer.tmp_dir = folder
                tokenizer.initialize()
            return tokenizer.lcut
        if language == "Japanese":
            from fugashi import Tagger

            tagger = Tagger()
            return lambda text: [str(word.surface) for word in tagger(text)]
        if language == "Thai":
            from pythainlp.tokenize import word_tokenize

            return word_tokenize
    except (ImportError, RuntimeError):  # the second: fugashi without a dictionary
        return None
    return None


def label_note(labels: Iterable[str]) -> str:
    """Return which labels differ in capitals alone, as they rarely should; "" if none do."""
    alike: dict[str, list[str]] = {}
    for label in dict.fromkeys(filter(None, labels)):
        alike.setdefault(label.casefold(), []).append(label)
    pairs = [" and ".join(map(repr, names)) for names in alike.values() if len(names) > 1]
    more = f" and {len(pairs) - MAX_PAIRS} more" if len(pairs) > MAX_PAIRS else ""
    return f"labels that differ in capitals alone: {', '.join(pairs[:MAX_PAIRS])}{more}" if pairs else ""
