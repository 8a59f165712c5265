"""Geometry of sentence vectors: isotropy and cosines by grade on STS-B test, and the bias of single tokens.

The bias of static token embeddings by frequency, subword and case is that of PromptBERT section 3 (Tables 1-3, Figure
1): scores of sentence vectors that average static embeddings, and the mean cosines of groups of tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.corpus.corpus import Corpus
from cse.corpus.supervised import Pair, log_once, scored_pairs
from cse.encoder.rows import plain_ids
from cse.evaluation import sts
from cse.evaluation.metrics import (
    DIGITS,
    alignment,
    anisotropy,
    check_grades,
    correlation_or_none,
    distinct_texts,
    mean_or_none,
    pair_vectors,
    uniformity,
)
from cse.evaluation.tasks import Task, TaskData
from cse.vectors import cosines, unit_rows

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.evaluation import Encode, EncodeIds, Scores, Tokenise, Unit

STSB_TEST = Path("STSB") / "test.tsv"
POSITIVE_GRADE = 4.0  # STS-B pairs from here on count as positives for `alignment`
TOP_GRADE = 5
MAX_SENTENCES, MAX_SENTENCE_WORDS = 100_000, 32  # PromptBERT's sample for Eq. 1
MAP_GRADES, PAIRS_PER_GRADE = (0.0, 3.0, 5.0), 10  # three groups of ten pairs
PERPLEXITY, SEED = 10.0, 42  # the paper gives neither


def units(data: TaskData) -> dict[str, Unit]:
    """Return the units on STS-B test, rounded to four decimals, and with an `encoder` those on all seven STS tasks.

    Tasks are read by `sts.sources`. The first 100,000 of `sentences` (a text file or table) replace STS-B for the
    anisotropy. `removal` and `static-bias` are averages over the seven tasks and need all of them. Raises ValueError if
    STS-B test or the file of sentences is missing, and as `sts.sources` does.
    """
    files = sts.sources(data) if sts.files(data.folder) else {}
    pairs = files.get("STS-B", [data.folder / STSB_TEST])[0]
    if missing := [path for path in (pairs, data.sentences) if path and not path.is_file()]:
        raise ValueError(f"{missing[0]}: no such file; give the folder that holds STSB, and sentences in a text file")
    measures: dict[str, Unit] = {
        "anisotropy": partial(_anisotropy, pairs, data.sentences),
        "alignment-uniformity": partial(_alignment_uniformity, pairs),
        "distribution": partial(grade_distribution, path=pairs),
        "map": partial(pair_map, path=pairs),
    }
    if (encoder := data.encoder) is not None and len(files) == len(sts.SETS):
        sets = cache(lambda: {task: [pair for path in of for pair in scored_pairs(path)] for task, of in files.items()})
        template = encoder.views[0][0]
        measures["removal"] = lambda _: removal_curve(
            lambda texts: encoder.tokenise(texts, [template] * len(texts)),
            partial(encoder.encode_ids, batch_size=data.batch_size),
            sets(),
            counted=distinct_texts(sets()["STS-B"]),
        )
        measures["static-bias"] = lambda _: static_bias(
            StaticEmbeddings.of(encoder), sets(), distinct_texts(sets()["STS-B"])
        )
    return measures


def _anisotropy(pairs: Path, sentences: Path | None, encode: Encode) -> Scores:
    if sentences is None:
        texts = distinct_texts(scored_pairs(pairs))
    else:  # lower-cased and cut to 32 words by PromptBERT's released code
        corpus = Corpus.read(sentences, limit=MAX_SENTENCES)
        log_once(corpus.understood())
        words = (sentence.lower().split() for sentence in corpus.sentences)
        texts = list(dict.fromkeys(" ".join(of_sentence[:MAX_SENTENCE_WORDS]) for of_sentence in words))
    return {"anisotropy": round(anisotropy(encode(texts)), DIGITS), "sentences": len(texts)}


def _alignment_uniformity(path: Path, encode: Encode) -> Scores:
    pairs = scored_pairs(path)
    positive = [number for number, (grade, _, _) in enumerate(pairs) if grade >= POSITIVE_GRADE]
    if not positive:
        raise ValueError(f"{path}: no pair has a grade of {POSITIVE_GRADE:g} or more, which alignment needs")
    vectors, first, second = pair_vectors(encode, pairs)
    return {
        "alignment": round(alignment(first[positive], second[positive]), DIGITS),
        "uniformity": round(uniformity(vectors), DIGITS),
        "positives": len(positive),
        "sentences": len(vectors),
    }


def grade_distribution(encode: Encode, path: Path) -> Scores:
    """Distribution of N pairs' cosines per bucket of grades 0 to 5, and separation of the outer ones (ConPVP Figure 4).

    `separation`: mean cosine of the highest bucket minus that of the lowest. `buckets`: grades (0-1 is 0 <= g < 1, 4-5
    includes both ends), count, mean and quartiles; empty ones are left out. `points`: the N grades and cosines. Raises
    ValueError for a grade outside 0 to 5 and for fewer than two non-empty buckets.
    """
    pairs = scored_pairs(path)
    graded = np.array([grade for grade, _, _ in pairs], np.float64)
    if wrong := [grade for grade in graded.tolist() if not 0 <= grade <= TOP_GRADE]:
        raise ValueError(f"grade {wrong[0]:g} is outside 0 to {TOP_GRADE}, the scale of STS-B")
    _, first, second = pair_vectors(encode, pairs)
    of_pairs = cosines(first, second)
    floors = np.minimum(graded.astype(int), TOP_GRADE - 1)
    buckets = []
    for floor in np.unique(floors).tolist():
        inside = of_pairs[floors == floor]
        quartiles = np.round(np.quantile(inside, (0.25, 0.5, 0.75)), DIGITS).tolist()
        mean = round(float(inside.mean()), DIGITS)
        buckets.append({"grades": f"{floor}-{floor + 1}", "count": len(inside), "mean": mean, "quartiles": quartiles})
    if len(buckets) < 2:
        raise ValueError(f"{len(buckets)} bucket of grades has pairs; the separation needs two of 0-1, 1-2, ... 4-5")
    return {
        "separation": round(buckets[-1]["mean"] - buckets[0]["mean"], DIGITS),
        "buckets": buckets,
        "points": {"grades": graded.tolist(), "cosines": np.round(of_pairs, DIGITS).tolist()},
    }


def pair_map(encode: Encode, path: Path) -> Scores:
    """Mean cosine of ten drawn pairs of grade 0, 3 and 5 each, and a t-SNE map of their sentences (ConPVP Figure 6).

    `points`: `x` and `y` (2n: the n first sentences, then the n second ones) and the pairs' `grades` (n). Raises
    ValueError if fewer than four pairs have one of the grades.
    """
    from sklearn.manifold import TSNE

    pairs, rng = scored_pairs(path), np.random.default_rng(SEED)
    drawn: list[Pair] = []
    for grade in MAP_GRADES:
        of_grade = [pair for pair in pairs if pair[0] == grade]
        drawn += [of_grade[number] for number in sorted(rng.permutation(len(of_grade))[:PAIRS_PER_GRADE].tolist())]
    if len(drawn) < 4:
        raise ValueError(f"{path}: {len(drawn)} pairs are graded exactly 0, 3 or 5; a map needs at least four")
    vectors = encode([*(first for _, first, _ in drawn), *(second for _, _, second in drawn)]).astype(np.float64)
    pair_cosines = cosines(*np.split(vectors, 2))
    grades = np.array([pair[0] for pair in drawn])
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    xy = TSNE(perplexity=perplexity, init="pca", random_state=SEED).fit_transform(unit_rows(vectors)).round(DIGITS)
    means = {f"cosine of {g:g}": float(pair_cosines[grades == g].mean()) for g in MAP_GRADES if g in grades}
    return {
        **{name: round(value, DIGITS) for name, value in means.items()},
        "pairs": len(drawn),
        "points": {"x": xy[:, 0].tolist(), "y": xy[:, 1].tolist(), "grades": grades.tolist()},
    }


@dataclass(frozen=True)
class StaticEmbeddings:
    """A model's static `embeddings` (V, d), its V token strings, and its tokenizer.

    `tokenise` turns texts into ids without special tokens; `specials` are the ids added around a sentence.
    """

    embeddings: np.ndarray
    tokens: Sequence[str]
    tokenise: Tokenise
    specials: tuple[int, ...]

    @classmethod
    def of(cls, encoder: Encoder) -> StaticEmbeddings:
        """Return those of an encoder."""
        tokenizer = encoder.tokenizer
        return cls(
            encoder.word_embeddings()[: len(tokenizer)],  # the rest is padding
            tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))),
            partial(plain_ids, tokenizer),  # not the encoder's own, which puts a space before a sentence of RoBERTa
            (tokenizer.cls_token_id, tokenizer.sep_token_id),
        )


def static_bias(static: StaticEmbeddings, sets: Mapping[str, Sequence[Pair]], counted: Sequence[str]) -> Scores:
    """PromptBERT section 3, on `sets` of scored pairs, tokens counted in the sentences `counted`."""
    groups = token_groups(static, counted)
    removal = cumulative_removal(static, sets, frequent_tokens(static, counted))
    return {**removal, "groups": group_cosines(static, groups), "picture": picture(static, groups)}


REMOVED_COUNTS = range(0, 101, 10)


def most_frequent(contents: Iterable[Sequence[int]], k: int) -> list[int]:
    """The k most frequent token ids in lists of ids, most frequent first, ties by lower id."""
    counts = Counter(token for content in contents for token in content)
    return sorted(counts, key=lambda token: (-counts[token], token))[:k]


def task_scores(rows: Mapping[str, np.ndarray], sets: Mapping[str, Sequence[Pair]]) -> dict[str, float | None]:
    """Spearman x 100 of each set's cosines with its grades, and their `average`, from a vector (d,) per sentence.

    A set whose cosines are all equal, and then the average, is None. Raises ValueError if all its grades are equal.
    """
    scores: dict[str, float | None] = {}
    for name, pairs in sets.items():
        check_grades(pairs, name)
        first, second = (np.array([rows[str(pair[side])] for pair in pairs], np.float64) for side in (1, 2))
        scores[name] = correlation_or_none(cosines(first, second), [grade for grade, _, _ in pairs])
    return {**scores, "average": mean_or_none(list(scores.values()))}


def removal_curve(
    tokenise: Tokenise,
    encode_ids: EncodeIds,
    sets: Mapping[str, Sequence[Pair]],
    *,
    counted: Iterable[str],
    steps: Sequence[int] = REMOVED_COUNTS,
) -> dict[str, Any]:
    """Average Spearman x 100 of `sets` without the K most frequent tokens, for each K of `steps` (ConPVP Figure 5).

    Tokens are counted in the sentences `counted` (paper: STS-B test) and removed from the input for every method:
    ConSERT removes them from mean pooling only, which is impossible for prompt methods, as they read one vector.
    ConSERT's two most frequent tokens are [CLS] and [SEP]; here `tokenise` omits them and `encode_ids` adds them, so
    they are never removed. `encode_ids` ((N, d) from N lists, which may be empty) is called once, with every distinct
    list. Returns "K=0" ... "K=100" and `curve` with `removed` (the steps), `average`, and `kept` (percent of tokens).
    """
    texts = distinct_texts(chain.from_iterable(sets.values()))
    contents = tokenise(texts)
    rank = {token: number for number, token in enumerate(most_frequent(tokenise(list(counted)), max(steps)))}
    left = {
        step: [tuple(token for token in content if rank.get(token, step) >= step) for content in contents]
        for step in steps
    }
    distinct = list(dict.fromkeys(content for kept in left.values() for content in kept))
    vectors = dict(zip(distinct, encode_ids([list(content) for content in distinct]), strict=True))
    curve: dict[str, list[Any]] = {"removed": list(left), "average": [], "kept": []}
    for kept in left.values():
        scored = task_scores({text: vectors[content] for text, content in zip(texts, kept, strict=True)}, sets)
        curve["average"].append(scored["average"])
        curve["kept"].append(round(100 * sum(map(len, kept)) / max(1, sum(map(len, contents))), 2))
    return {**{f"K={step}": score for step, score in zip(left, curve["average"], strict=True)}, "curve": curve}


FREQUENT_TOKENS = 36  # PromptBERT section 3
# The released code's sets; the paper's Table 11 prints the same ones.
WORDPIECE_FREQUENT = tuple(
    ". a the in , is to of and ' on man - s with for \" at ##s woman are it two that you dog said playing i an as was "
    "from : by white".split()
)
BYTE_FREQUENT = tuple(
    "Ġ. Ġa Ġthe Ġin a Ġ, Ġis Ġto Ġof Ġand Ġon Ġ' s . the Ġman - Ġwith Ġfor Ġat Ġwoman Ġare Ġ\" Ġthat Ġit Ġdog Ġsaid "
    "Ġplaying Ġwas Ġas Ġfrom Ġ: Ġyou Ġan i Ġby".split()
)
# Vocabulary sizes of the models these sets were counted for: BERT uncased and cased, RoBERTa.
PUBLISHED_TOKENS = {30522: WORDPIECE_FREQUENT, 28996: WORDPIECE_FREQUENT, 50265: BYTE_FREQUENT}
CONTINUES, SPACE = "##", "Ġ"  # marks a WordPiece that continues a word, a byte-level token that begins one
FREQUENCY_BANDS = ("frequent", "middle", "rare")
REMOVAL_ROWS = ("static", "-Freq", "-Freq&Sub", "-Freq&Sub&Case", "-Freq&Sub&Case&Pun")
MAX_PICTURE_TOKENS = 2000


def frequent_tokens(static: StaticEmbeddings, sentences: Sequence[str]) -> tuple[str, ...]:
    """The 36 tokens of Table 3's row Freq: the released lists for BERT and RoBERTa, else those of `sentences`."""
    listed = PUBLISHED_TOKENS.get(len(static.tokens), ())
    if listed and {*listed} <= {*static.tokens}:
        return listed
    counted = most_frequent(_contents(static, sentences), FREQUENT_TOKENS)
    return tuple(static.tokens[token] for token in counted)


def cumulative_removal(
    static: StaticEmbeddings, sets: Mapping[str, Sequence[Pair]], frequent: Collection[str]
) -> dict[str, dict[str, float | None]]:
    """Spearman x 100 per set, and their average, of averaged static embeddings without biased tokens (Tables 1 and 3).

    Rows: `static` (all tokens and the specials), `-Freq`, `-Freq&Sub`, `-Freq&Sub&Case`, `-Freq&Sub&Case&Pun`, the last
    four without specials. As in the released code, tokens are removed first and the rest is lower-cased and tokenised
    again, which may reintroduce subwords. Sub: tokens that continue a word. Pun: tokens without letter or digit, and
    [UNK]. A sentence without tokens is a zero vector (released: the embedding of [PAD]). In the last row the text of a
    byte-level tokenizer ends in a blank, whose token is averaged too. The published numbers use SentEval's tokenised,
    lower-cased text.
    """
    texts = distinct_texts(chain.from_iterable(sets.values()))
    plain = [[*static.specials, *content] for content in static.tokenise(texts)]
    rows = [plain, *_without_tokens(static, _contents(static, texts), frequent)]
    nothing = 0 * static.embeddings[0]
    means = ([static.embeddings[content].mean(0) if content else nothing for content in contents] for contents in rows)
    return {
        name: task_scores(dict(zip(texts, vectors, strict=True)), sets)
        for name, vectors in zip(REMOVAL_ROWS, means, strict=True)
    }


def _without_tokens(
    static: StaticEmbeddings, contents: Sequence[Sequence[int]], frequent: Collection[str]
) -> list[list[list[int]]]:
    """The ids of texts in the four rows of `REMOVAL_ROWS` after the first, given all their ids."""

    def keep(kept: Callable[[int], bool], among: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[token for token in content if kept(token)] for content in among]

    def lowered(among: Sequence[Sequence[int]]) -> list[list[int]]:
        cased = {token: texts[token] for token in chain.from_iterable(among) if texts[token] != texts[token].lower()}
        # Tokenizers refuse an empty list.
        lower = _contents(static, [text.lower() for text in cased.values()]) if cased else []
        replaced = dict(zip(cased, lower, strict=True))
        return [list(chain.from_iterable(replaced.get(token, [token]) for token in content)) for content in among]

    texts, continues, byte_level = _read(static)
    dropped = {*frequent}
    common = keep(lambda token: static.tokens[token] not in dropped, contents)
    whole = keep(lambda token: not continues[token], common)
    words = keep(lambda token: any(map(str.isalnum, texts[token])), whole)
    blank = [list(static.tokens).index(SPACE)] if byte_level and SPACE in static.tokens else []
    return [common, whole, lowered(whole), [content + blank if content else [] for content in lowered(words)]]


def _contents(static: StaticEmbeddings, texts: Sequence[str]) -> list[list[int]]:
    """Ids of the texts, each after a space, so that byte-level tokenizers mark the start of the first word."""
    return static.tokenise([f" {text}" for text in texts])


def _read(static: StaticEmbeddings) -> tuple[list[str], list[bool], bool]:
    """Return each token's text, "" for special and unused ones ([MASK], <pad>), whether it continues a word, and
    whether the vocabulary is byte-level: it has more tokens with such marks, since each kind has some of the other's.
    """
    tokens = static.tokens
    begun, continued = (sum(token.startswith(mark) for token in tokens) for mark in (SPACE, CONTINUES))
    byte_level = begun > continued
    named = [len(token) > 2 and token[0] + token[-1] in ("[]", "<>") for token in tokens]
    if byte_level:
        from tokenizers.decoders import ByteLevel

        decoder = ByteLevel()
        texts = [decoder.decode([token]).strip() for token in tokens]
    else:
        texts = [token.removeprefix(CONTINUES) for token in tokens]
    continues = [not token.startswith(SPACE) if byte_level else token.startswith(CONTINUES) for token in tokens]
    return ["" if special else text for special, text in zip(named, texts, strict=True)], continues, byte_level


def token_groups(static: StaticEmbeddings, sentences: Sequence[str]) -> dict[str, list[str]]:
    """The group of every token by "frequency", "piece" and "case": V names each, "" for none (Figure 1).

    Frequency: thirds of the tokens in `sentences` (frequent, middle, rare), ties by lower id. Piece: whole word,
    subword. Case: lower, upper (at least one capital) of tokens with letters. Special and unused tokens have no group.
    """
    texts, continues, _ = _read(static)
    ranked = [token for token in most_frequent(_contents(static, sentences), len(texts)) if texts[token]]
    bands = [""] * len(texts)
    for band, members in zip(FREQUENCY_BANDS, np.array_split(ranked, len(FREQUENCY_BANDS)), strict=True):
        for token in members:
            bands[token] = band
    pieces = ["subword" if continued else "whole word" for continued in continues]
    cases = ["lower" if text == text.lower() else "upper" for text in texts]
    return {
        "frequency": bands,
        "piece": [piece if text else "" for piece, text in zip(pieces, texts, strict=True)],
        "case": [case if any(map(str.isalpha, text)) else "" for case, text in zip(cases, texts, strict=True)],
    }


def group_cosines(static: StaticEmbeddings, groups: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
    """Mean cosine between the tokens of each group (Table 2 for parts of the vocabulary), all tokens first as `all`.

    Each row: `tokens`, `cosine` (4 decimals) and `excess` over `all`, the expected value of a random group. `groups`
    come from `token_groups`; groups of fewer than two tokens are left out.
    """
    level = anisotropy(static.embeddings)
    table = {"all": {"tokens": len(static.tokens), "cosine": round(level, DIGITS), "excess": 0.0}}
    for names in groups.values():
        labels = np.array(names)
        for group in (name for name in sorted({*names} - {""}) if names.count(name) > 1):
            inside = anisotropy(static.embeddings[labels == group])
            row = {"tokens": names.count(group), "cosine": inside, "excess": inside - level}
            table[group] = {key: round(value, DIGITS) for key, value in row.items()}
    return table


def picture(static: StaticEmbeddings, groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """At most 2,000 tokens on the first two principal components of all embeddings, and their groups (Figure 1).

    Lists with an entry per token: `x`, `y`, `tokens` and each kind of `groups`; and `explained`, the percentage of
    variance on each axis. Tokens without any group are left out.
    """
    centred = static.embeddings.astype(np.float64) - static.embeddings.mean(0, dtype=np.float64)
    directions, variances, _ = np.linalg.svd(centred.T @ centred)
    axes = directions[:, :2] * np.sign(directions[np.abs(directions[:, :2]).argmax(0), [0, 1]])  # SVD leaves signs open
    drawn = np.array([token for token, names in enumerate(zip(*groups.values(), strict=True)) if any(names)])
    if len(drawn) > MAX_PICTURE_TOKENS:
        drawn = np.sort(np.random.default_rng(SEED).choice(drawn, MAX_PICTURE_TOKENS, replace=False))
    x, y = np.round(centred[drawn] @ axes, DIGITS).T
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "tokens": [static.tokens[token] for token in drawn],
        **{kind: [names[token] for token in drawn] for kind, names in groups.items()},
        "explained": np.round(100 * variances[:2] / variances.sum(), 2).tolist(),
    }


TASK = Task(
    name="geometry",
    units=units,
    layout=sts.LAYOUT,
    data_of="sts",
    shown=("anisotropy", "alignment", "uniformity", "separation", "K=0", "K=100"),
    title="Geometry",
    summary=(
        "How evenly the vectors of STS-B test fill the sphere. Anisotropy: mean cosine of any two sentences. "
        "Alignment: squared distance of pairs graded 4 or more. Uniformity: log of the mean of exp(-2 x squared "
        "distance) of any two (Wang and Isola). Separation: mean cosine of pairs graded 4 to 5 less that of pairs "
        "graded 0 to 1. K: STS average without the K most frequent tokens."
    ),
    lower=("anisotropy", "alignment", "uniformity"),
    options=("sentences", "figures", "tokenised"),  # a final period would not reach the tokens that are counted
    figures={
        "similarity": "distribution", "pairs": "map", "removal": "removal", "static-embeddings": "static-bias",
    },
    points=("points", "picture"),
    token_units=("removal", "static-bias"),
    unit_headings=False,
)  # fmt: skip
