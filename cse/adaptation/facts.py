"""Facts about a user's texts as a model reads them: number, lengths, truncation, unknown pieces, duplicates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np

from cse.analysis.duplicates import groups_of, near_duplicates
from cse.corpus.corpus import Corpus
from cse.corpus.words import spans_within
from cse.encoder.encoder import Encoder
from cse.encoder.rows import plain_ids, shortened
from cse.evaluation.metrics import effective_rank
from cse.methods.catalogue import UNTRAINED
from cse.models.names import BUNDLED
from cse.vectors import unit_rows

SCORED_EVERY, MAX_SCORED = 5, 2_000  # one text of so many is held out; at most so many
TOKEN_SAMPLE = 2_000  # texts whose tokens are counted
# Percents of a text's pieces above which the vocabulary does not know the language.
MAX_UNKNOWN_PERCENT, MAX_LETTER_PERCENT = 20.0, 50.0
IDEOGRAPH_NAME = "CJK"  # beginning of their names; each is a piece of its own in a vocabulary that knows them


@dataclass(frozen=True)
class TextFacts:
    """Numbers of rows and different texts; medians of words and tokens; percents of texts and of pieces.

    `cut` is the percent of texts longer than the model reads, `unknown` that of a text's pieces that the vocabulary
    lacks, `letters` that of its pieces that are one letter or a part of one, both as means over the texts, so that a
    long one counts no more than others; `near` the percent of texts with a near-duplicate among the held-out ones.
    """

    rows: int
    distinct: int
    words: float
    tokens: float
    cut: float
    unknown: float
    letters: float
    near: float

    @property
    def warning(self) -> str | None:
        """A sentence if the model's vocabulary does not know the language of the texts."""
        if self.unknown <= MAX_UNKNOWN_PERCENT and self.letters <= MAX_LETTER_PERCENT:
            return None
        return (
            f"the model's vocabulary does not know the language of these texts: {self.unknown:.0f} % of their pieces "
            f"are unknown, {self.letters:.0f} % are single letters; choose a model of that language"
        )

    def __str__(self) -> str:
        return (
            f"{self.rows:,} texts, {self.distinct:,} of them different, {self.near:.1f} % with a near-duplicate; "
            f"median {self.words:g} words, {self.tokens:g} tokens; {self.cut:.1f} % longer than the model reads; "
            f"{self.unknown:.1f} % of the pieces unknown"
        )


def split(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    """Return the texts held out for scores, a fifth and at most `MAX_SCORED`, and those to fit on, both in random
    order by the seed. No text is in both if all are distinct.
    """
    order = np.random.default_rng((seed, SCORED_EVERY)).permutation(len(corpus))
    count = min(MAX_SCORED, len(corpus) // SCORED_EVERY)
    return corpus.take(order[:count]), corpus.take(order[count:])


def text_facts(encoder: Encoder, texts: Sequence[str], rows: int, held: np.ndarray, seed: int) -> TextFacts:
    """Return the facts about distinct texts in random order, of so many rows; `held` (N, d) are the vectors of some.

    Tokens are counted in the first `TOKEN_SAMPLE` texts.
    """
    sample, limit, tokenizer = texts[:TOKEN_SAMPLE], encoder.max_content, encoder.tokenizer
    read = plain_ids(tokenizer, [shortened(text, tokenizer, limit + 1) for text in sample])
    lengths = [len(ids) for ids in read]
    words = [sum(len(spans_within(text, *part.span())) for part in re.finditer(r"\S+", text)) for text in sample]
    numbers = sorted({number for ids in read for number in ids})
    pieces = dict(zip(numbers, tokenizer.convert_ids_to_tokens(numbers), strict=True))

    def percent(counted: Callable[[str], bool]) -> float:
        chosen = {number for number, piece in pieces.items() if counted(piece)}
        shares = [sum(number in chosen for number in ids) / len(ids) for ids in read if ids]
        return round(100 * float(np.mean(shares or [0.0])), 1)

    return TextFacts(
        rows=rows, distinct=len(texts), words=float(np.median(words)),
        tokens=float(np.median(lengths)), cut=round(100 * float(np.mean(np.array(lengths) > limit)), 1),
        unknown=percent(lambda piece: piece == tokenizer.unk_token), letters=percent(_is_letter),
        near=_near_percent(held, seed),
    )  # fmt: skip


def _is_letter(piece: str) -> bool:
    """True for a piece of one letter, ideographs apart, or of a single byte of one, as byte-level vocabularies have."""
    plain = piece.removeprefix("##").lstrip("Ġ▁")
    return len(plain) == 1 and plain.isalpha() and not unicodedata.name(plain, "").startswith(IDEOGRAPH_NAME)


def _near_percent(vectors: np.ndarray, seed: int) -> float:
    """The percent of the texts, by their vectors (N, d), that are in a group of near-duplicates."""
    unit = unit_rows(vectors)

    def search(queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        cosines = queries @ unit.T
        rows = np.argsort(-cosines, axis=1)[:, :k]
        return np.take_along_axis(cosines, rows, axis=1), rows

    near = near_duplicates(unit, search, np.arange(len(unit)), seed)
    groups = groups_of(near.forest.groups(near.advised.cosine))
    return round(100 * sum(map(len, groups)) / max(1, len(unit)), 1)


BATCH_TOKENS, LANGUAGE_STEPS, MLM_RATE = 1024, 75, 5e-5


def learn_language(name: str, texts: Sequence[str], folder: Path, *, steps: int, seed: int) -> None:
    """Continue the masked language modelling of a backbone on texts, as a run of pretraining in `folder`.

    One that was killed is started again. Raises ValueError if the texts are too few word pieces or the backbone cannot
    be pretrained.
    """
    from cse.training.pretraining import pretrain
    from cse.training.pretraining_data import PretrainConfig, PretrainRequest

    corpus = folder.with_suffix(".txt")
    corpus.write_text("\n".join(" ".join(text.split()) for text in texts), encoding="utf-8")
    config = PretrainConfig(tokens=steps * BATCH_TOKENS, batch_tokens=BATCH_TOKENS, learning_rate=MLM_RATE, seed=seed)
    precision = training_precision()
    pretrain(PretrainRequest([corpus], folder, config, name, overwrite=True, eval_every=steps, precision=precision))


def training_precision() -> str:
    """Return the precision of a training: bf16 where the device is fast at it."""
    from cse.encoder.devices import best_device, computes_in_bf16

    return "bf16" if computes_in_bf16("auto", str(best_device())) else "no"


NARROWNESS_SAMPLE = 250  # of the texts, and as many general ones
NARROWNESS_TOKENS = 24  # read of each
NARROW_RATIO = 0.98


def is_narrow(encoder: Encoder, texts: Sequence[str]) -> bool:
    """True if texts are of a narrow domain to the backbone of an encoder.

    False for fewer than `NARROWNESS_SAMPLE` distinct ones, and for the demo corpus, with which they are compared.

    The measure is the effective rank (Roy and Vetterli 2007) of the mean-pooled unit vectors of 250 texts, divided by
    that of 250 sentences of the bundled demo corpus. With the bundled backbone and with all-MiniLM-L6-v2, two samples
    each: Wikipedia lines and sentences of mixed domains 1.02 to 1.07; AG News .87 to .97, Stack Overflow titles .87 to
    .95, Google News .80 to .86. Below .98 texts count as narrow. Mean cosines, and the rank itself, separate these sets
    within one model and not across models.
    """
    distinct, general = sorted(set(texts)), list(general_texts())
    if len(distinct) < NARROWNESS_SAMPLE or distinct == general:
        return False
    plain = encoder.reading_by(replace(UNTRAINED["mean"].reading, prefix=encoder.reading.prefix))
    ranks = []
    for sample in (Random(0).sample(known, NARROWNESS_SAMPLE) for known in (distinct, general)):
        contents = plain.tokenise(sample, [plain.views[0][0]] * NARROWNESS_SAMPLE, NARROWNESS_TOKENS)
        ranks.append(effective_rank(plain.encode_ids(contents).astype(np.float64)))
    return ranks[0] < NARROW_RATIO * ranks[1]


def general_texts() -> tuple[str, ...]:
    """The sentences of the bundled demo corpus."""
    lines = (BUNDLED / "demo" / "corpus.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(sorted({line.split("\t")[1] for line in lines}))
