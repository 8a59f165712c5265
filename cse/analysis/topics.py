"""Groups of texts: k-means on their vectors, the words that mark a group, its typical and odd texts, its labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import regex

from cse.corpus.words import han_language, words
from cse.evaluation.clustering import k_means
from cse.evaluation.metrics import numbered
from cse.methods.settings import SETTINGS
from cse.vectors import unit_rows

if TYPE_CHECKING:
    from cse.evaluation import Encode

MAX_DEFAULT_GROUPS = 100  # of the default number
CANDIDATE_WORDS = 20  # of a group, among which the meaning decides
MIN_STEM, MAX_ENDING = 4, 2  # letters
# Beside scikit-learn's: forms of "do", and the halves of "couldn't" and its kind, but not of "won't".
STOP_WORDS = frozenset(
    "aren couldn did didn does doesn doing don hadn hasn haven isn ll mustn needn re shan shouldn ve wasn weren "
    "wouldn".split()
)
ALIKE = 1 / 3  # share of the texts of two groups that both have, from which on they are one: half of equally large ones
MAX_SHARE, MIN_TEXTS = 0.1, 20  # share of texts that may have a word of a name; of fewer texts any share is large
MARKING = 3  # from so many times its share of all texts on a word marks a group, however many texts have it
WORDED, BESIDE = 0.5, 0.4  # share of a group's texts with its first word, and of these, below which others are chance
GREETING = regex.compile(
    r"^\s*(?:dear|hi|hello|hey|good (?:morning|afternoon|evening)|hallo|liebe[rs]?|sehr geehrte[rns]?|guten tag|bonjour"
    r"|ch[eè]re?|madame|monsieur|hola|buenos d[ií]as|estimad[oa]s?|ciao|gentile|ol[aá]|beste)\b[^\n,!:]{0,40}[,!:\n]",
    regex.IGNORECASE,
)
# After a sentence or on a line of its own, with at most four words behind it, which are a name. What repeats is never
# given back (`++`): a line of a hundred dashes would take minutes.
SIGN_OFF = regex.compile(
    r"(?:(?<=[.!?])\s++|\n\s*+)(?:-- ?\n.*|"
    r"(?:(?:with )?(?:(?:best|kind|kindest|warm|many)\W+)?(?:regards|wishes|thanks)|best|sincerely|yours(?: \w+)?"
    r"|cheers|thank you|(?:mit )?(?:freundliche|beste|viele|liebe|herzliche|schöne)n? gr(?:ü|ue)(?:ß|ss)en?|vielen dank"
    r"|danke|mfg|(?:bien )?cordialement|merci|saludos|gracias|atentamente|cordiali saluti|grazie|obrigad[oa]"
    r"|met vriendelijke groet(?:en)?)\b\W*+(?:[\p{L}'.-]++\s*+){0,4}+)$",
    regex.IGNORECASE | regex.DOTALL,
)


def default_groups(count: int) -> int:
    """Return the number of groups for `count` distinct texts: the square root of half of them, 2 to 100."""
    return max(2, min(MAX_DEFAULT_GROUPS, round((count / 2) ** 0.5)))


def grouped(vectors: np.ndarray, count: int, seed: int, texts: Sequence[str] = ()) -> np.ndarray:
    """(N,) groups of vectors (N, d), of any length, numbered from 0 for the largest; k-means on unit rows.

    Of equal `texts` (N) only the first counts in k-means. There may be fewer than `count` groups if vectors are equal.
    Raises ValueError for more groups than different texts, and for a seed that k-means does not take.
    """
    SETTINGS["seed"].check(seed)
    text_of = numbered(texts)[1] if texts else np.arange(len(vectors))  # (N,)
    different = np.asarray(vectors, np.float32)[np.unique(text_of, return_index=True)[1]]
    if not 1 <= count <= len(different):
        raise ValueError(f"{count} groups for {len(different)} texts; give 1 to {len(different)}")
    distinct = len(np.unique(different, axis=0))
    groups = k_means(unit_rows(different), min(count, distinct), seed)[text_of]
    sizes = np.bincount(groups)
    places = np.empty_like(sizes)
    places[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return places[groups]


def class_words(counts: Any, vocabulary: np.ndarray, groups: np.ndarray, most: int) -> list[list[tuple[str, float]]]:
    """Return the `most` words that mark each group, best first, with their class-based TF-IDF.

    `counts` (N, words) and `vocabulary` are those of `word_counts`. The score is the word's share of the group's words
    times log(1 + A / f), where f is the word's count in all texts and A the mean number of words per group
    (Grootendorst 2022, BERTopic, with shares for counts).
    """
    if not len(vocabulary):
        return [[] for _ in range(int(groups.max()) + 1)]
    of_group = by_group(counts, groups)
    totals = np.asarray(of_group.sum(axis=1)).ravel()
    weights = np.log1p(totals.mean() / np.asarray(of_group.sum(axis=0)).ravel())  # (words,)
    ranked = []
    for group in range(of_group.shape[0]):
        row = of_group[[group]]
        scores = row.data / max(1.0, totals[group]) * weights[row.indices]
        best = sorted(zip(-scores, vocabulary[row.indices], strict=True))[:most]
        ranked.append([(str(word), float(-score)) for score, word in best])
    return ranked


def by_group(counts: Any, groups: np.ndarray) -> Any:
    """Return the sums (groups, words) of sparse counts (N, words) over the texts of each group, sparse as well."""
    from scipy.sparse import csr_matrix

    return (csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups))))) @ counts).tocsr()


class Names(NamedTuple):
    """The `scores` of each group's words, best first, and the boilerplate `left_out`, what most texts have first."""

    scores: list[list[tuple[str, float]]]
    left_out: list[str]

    @property
    def words(self) -> list[list[str]]:
        """The words of each group."""
        return [[word for word, _ in group] for group in self.scores]

    def notes(self, most: int) -> list[str]:
        """Return a sentence that names `most` of the words left out; none if there are none."""
        if not self.left_out:
            return []
        quoted = ", ".join(f"“{word}”" for word in self.left_out[:most])
        more = f" and {len(self.left_out) - most} more" if len(self.left_out) > most else ""
        what = "Words of more than a tenth of the texts that mark no group"
        return [f"{what}; they name a group only if it has no others: {quoted}{more}."]


def group_names(
    texts: Sequence[str], groups: np.ndarray, most: int, vectors: np.ndarray | None = None, encode: Encode | None = None
) -> Names:
    """Return at most `most` words that name each group of texts: the first of `class_words`, or, with the texts'
    `vectors` (N, d) and what encodes words like them, the `telling_words` of more.

    Greetings, sign-offs and the names beside them are not read, nor are words with digits. Words that more than a tenth
    of the texts have are boilerplate and left out, unless a group has no others, or they mark one: `MARKING` times the
    share of all texts has them there. Where most texts of a group have its first word, those that few of them have are
    left out, too: it is chance that they are there.
    """
    bodies = (SIGN_OFF.sub("", GREETING.sub("", text)) for text in texts)
    counts, vocabulary = word_counts([body if body.strip() else text for body, text in zip(bodies, texts, strict=True)])
    if not len(vocabulary):
        return Names([[] for _ in range(int(groups.max()) + 1)], [])
    shares = np.asarray((counts > 0).mean(axis=0)).ravel()
    named = np.array([not any(sign.isdigit() for sign in word) for word in vocabulary])
    many = named & (shares > MAX_SHARE) & (len(texts) >= MIN_TEXTS)
    texts_with, sizes = by_group(counts > 0, groups), np.maximum(1, np.bincount(groups))  # (groups, words), (groups,)
    in_group = texts_with[:, many].toarray() / sizes[:, None]
    many[many] = in_group.max(axis=0) < MARKING * shares[many]
    columns = np.flatnonzero(named & ~many)
    common = np.flatnonzero(many)
    candidates = CANDIDATE_WORDS if encode else most
    ranked, spare = (class_words(counts[:, of], vocabulary[of], groups, candidates) for of in (columns, common))
    marking = [own or other for own, other in zip(ranked, spare, strict=True)]
    if vectors is not None and encode:
        marking = telling_words(marking, groups, vectors, encode)
    for number, group in enumerate(marking):
        having = texts_with[number, np.searchsorted(vocabulary, [word for word, _ in group])].toarray().ravel()
        if len(group) and having[0] >= WORDED * sizes[number]:
            marking[number] = [entry for entry, texts in zip(group, having, strict=True) if texts >= BESIDE * having[0]]
    return Names(
        [group[:most] for group in marking], vocabulary[common[np.argsort(-shares[common], kind="stable")]].tolist()
    )


def telling_words(
    marking: Sequence[Sequence[tuple[str, float]]], groups: np.ndarray, vectors: np.ndarray, encode: Encode
) -> list[list[tuple[str, float]]]:
    """Return the `class_words` of each group, those first that also mean what its texts (N,) with vectors (N, d) do.

    The order is by the square root of a word's score times what its cosine to the group's mean vector is above its mean
    cosine to all groups' (as BERTopic's KeyBERT-inspired names are by cosine). Of two forms of a word the first stays.
    """
    words = sorted({word for group in marking for word, _ in group})
    if not words:
        return [[] for _ in marking]
    means = np.zeros((len(marking), vectors.shape[1]), np.float32)
    np.add.at(means, groups, unit_rows(np.asarray(vectors, np.float32)))
    cosines = unit_rows(np.asarray(encode(words), np.float32)) @ unit_rows(means).T  # (words, groups)
    above = dict(zip(words, (cosines - cosines.mean(1, keepdims=True)).clip(min=0), strict=True))
    told = []
    for number, group in enumerate(marking):
        kept: list[tuple[str, float]] = []
        for word, score in sorted(group, key=lambda entry: -(entry[1] ** 0.5) * above[entry[0]][number]):
            if not any(_one_word(word, other) for other, _ in kept):
                kept.append((word, score))
        told.append(kept)
    return told


def _one_word(word: str, other: str) -> bool:
    """True if two words differ by an ending of at most two letters, as singular and plural do."""
    short, long = sorted((word, other), key=len)
    return len(short) >= MIN_STEM and len(long) <= len(short) + MAX_ENDING and long.startswith(short)


def matched(groups: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(N,) `groups` renumbered: one that is a `known` group (K, N), of booleans, gets its number, others K and more.

    A group is a known one if they have at least `ALIKE` of the texts of either in common; of several such pairings that
    with the largest shares is taken.
    """
    from scipy.optimize import linear_sum_assignment

    own = np.arange(groups.max() + 1)[:, None] == groups
    both = own.astype(np.int64) @ known.T.astype(np.int64)
    shares = both / (own.sum(1)[:, None] + known.sum(1) - both)
    shares[shares < ALIKE] = 0
    renumbered = np.full(len(own), -1)
    for group, number in zip(*linear_sum_assignment(-shares), strict=True):
        if shares[group, number]:
            renumbered[group] = number
    beyond = np.flatnonzero(renumbered < 0)
    renumbered[beyond] = len(known) + np.arange(len(beyond))
    return renumbered[groups]


def typicality(vectors: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(N,) cosine of each vector (N, d), of any length, to the mean unit vector of its group (N,)."""
    unit = unit_rows(np.asarray(vectors, np.float32))
    means = np.zeros((groups.max() + 1, unit.shape[1]), np.float32)
    np.add.at(means, groups, unit)
    return np.einsum("nd,nd->n", unit, unit_rows(means)[groups])


def word_counts(texts: Sequence[str]) -> tuple[Any, np.ndarray]:
    """Return counts (N, words) of the words of lower-cased texts, and the words; none if there is no word.

    Words have two characters or more; English stop words are left out unless nothing else is there.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

    han = han_language(texts)
    for stop_words in (list(ENGLISH_STOP_WORDS | STOP_WORDS), None):
        vectoriser = CountVectorizer(
            tokenizer=lambda text: [word for word in words(text, han) if len(word) > 1],
            token_pattern=None, stop_words=stop_words,
        )  # fmt: skip
        try:
            counts = vectoriser.fit_transform(texts)
        except ValueError:  # an empty vocabulary
            continue
        return counts, vectoriser.get_feature_names_out()
    return None, np.array([])


def typical(vectors: np.ndarray, groups: np.ndarray, most: int) -> list[list[int]]:
    """Return the `most` rows of each group, by vectors (N, d), with the highest cosines to its mean unit vector."""
    cosines = typicality(vectors, groups)
    rows = (np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1))
    return [of_group[np.argsort(-cosines[of_group], kind="stable")][:most].tolist() for of_group in rows]


def majority(labels: Sequence[str]) -> tuple[str, float] | None:
    """Return the most frequent label, "" apart, and its share of all texts in [0, 1]; None without labels."""
    counts = Counter(filter(None, labels))
    return (counts.most_common(1)[0][0], counts.most_common(1)[0][1] / len(labels)) if counts else None
