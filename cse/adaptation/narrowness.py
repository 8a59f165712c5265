"""The narrowness of texts: how few directions a model's vectors of them take, compared with general sentences.

The presets of contrastive training were published for general text. In a narrow domain most negatives of a batch are
neighbours, and a preset's rate and temperature push them apart: all made the five nearest neighbours worse, by up to 37
points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np

from cse.encoding.encoder import Encoder
from cse.evaluation.isotropy import effective_rank
from cse.methods.catalogue import UNTRAINED
from cse.models.names import BUNDLED

SAMPLE = 250  # of the texts, and as many general ones
TOKENS = 24  # read of each
NARROW = 0.98


def is_narrow(encoder: Encoder, texts: Sequence[str]) -> bool:
    """True if texts are of a narrow domain to the backbone of an encoder.

    False for fewer than `SAMPLE` distinct ones, and for the demo corpus, with which they are compared.

    The measure is the effective rank (Roy and Vetterli 2007) of the mean-pooled unit vectors of 250 texts, divided by
    that of 250 sentences of the bundled demo corpus. With the bundled backbone and with all-MiniLM-L6-v2, two samples
    each: Wikipedia lines and sentences of mixed domains 1.02 to 1.07; AG News .87 to .97, Stack Overflow titles .87 to
    .95, Google News .80 to .86. Below .98 texts count as narrow. Mean cosines, and the rank itself, separate these sets
    within one model and not across models.
    """
    distinct, general = sorted(set(texts)), list(general_texts())
    if len(distinct) < SAMPLE or distinct == general:
        return False
    plain = encoder.reading_by(replace(UNTRAINED["mean"].reading, prefix=encoder.reading.prefix))
    own, reference = (_rank(plain, Random(0).sample(each, SAMPLE)) for each in (distinct, general))
    return bool(own < NARROW * reference)


@cache
def general_texts() -> tuple[str, ...]:
    """The sentences of the bundled demo corpus."""
    lines = (BUNDLED / "demo" / "corpus.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(sorted({line.split("\t")[1] for line in lines}))


def _rank(encoder: Encoder, texts: Sequence[str]) -> float:
    """The effective rank of the vectors of texts, read to a few tokens."""
    contents = encoder.tokenise(texts, [encoder.views[0][0]] * len(texts), TOKENS)
    return effective_rank(encoder.encode_ids(contents).astype(np.float64))
