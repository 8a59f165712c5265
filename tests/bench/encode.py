"""How fast an encoder is: sentences and tokens a second, its share of the matrix rate, and sentence-transformers' same.

The peer is given what the encoder has, the same weights, tokenizer, sentences and pooling, and its own defaults; both
give the same vectors, which is checked.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

from cse.encoding.encoder import Encoder
from cse.encoding.packed import read_in
from cse.encoding.precision import computes_in_bf16, in_precision
from cse.evaluation.classification import labelled_rows
from cse.methods.method import Pooling, When
from cse.methods.templates import PLAIN
from cse.models.names import BUNDLED
from cse.text.sentences import sentences as sentences_of
from tests.bench.flops import encoding_flops, matrix_rate
from tests.bench.timing import ROUNDS, Clock, Timing, interleaved, ratio

SENTENCE_TRANSFORMERS = "sentence-transformers"
PEERS = (SENTENCE_TRANSFORMERS,)
OURS, OURS_BF16 = "cse", "cse, bf16"
SAME = 1e-4  # numbers of vectors from the same float32 model that were added in another order
NO_MATCH = "sentence-transformers has no such method; give a model read by mean or cls, without prefix or head"

Encode = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class EncodingSpeed:
    """Figures of each work by its name, and how many times faster `cse` is than it: median, least, most.

    `tokens` are those of all rows, specials and template included; `matrix_rate` is in FLOP/s of float32 products. The
    share of a work in bf16 is that of the rate of products in bf16.
    """

    model: str
    sentences: int
    tokens: int
    matrix_rate: float
    works: dict[str, dict[str, Any]]
    times_faster: dict[str, tuple[float, float, float]]


def texts_of(source: str | None, column: str | None, most: int) -> list[str]:
    """At most so many sentences of a file, table or hub id, or of the demo corpus."""
    if source is None:
        return [text for _, text in labelled_rows(BUNDLED / "demo" / "corpus.tsv")][:most]
    return list(islice(sentences_of(source, column), most))


def measure_encoding(
    encoder: Encoder,
    sentences: Sequence[str],
    *,
    against: str | None = None,
    precision: str = "no",
    passes: str = "padded",
    rounds: int = ROUNDS,
    clock: Clock = time.perf_counter,
) -> EncodingSpeed:
    """The speed of an encoder over sentences in turn with copies in bf16, where `precision` means that, and `passes`.

    With `against` sentence-transformers takes its turn too. Raises ValueError for a peer that is unknown, not installed
    or without such a method, or whose vectors are others, and where `cse.encoding.packed.read_in` does.
    """
    texts, copies = list(sentences), _copies(encoder, precision, passes)
    works: dict[str, Encode] = {name: copy.encode for name, copy in copies.items()}
    if against is not None:
        works[against] = _peer(encoder, against)
        if not np.allclose(encoder.encode(texts[:64]), works[against](texts[:64]), atol=SAME):
            raise ValueError(f"{encoder.name}: {against} gives other vectors, so it does other work; {NO_MATCH}")
    types = {name: copies[name].model.dtype if name in copies else torch.float32 for name in works}
    before = {each: matrix_rate(encoder.device, each, clock) for each in set(types.values())}
    timings = interleaved({name: partial(encode, texts) for name, encode in works.items()}, rounds, clock)
    rates = {each: max(rate, matrix_rate(encoder.device, each, clock)) for each, rate in before.items()}
    template = encoder.views[0][0]
    lengths = [template.length + len(ids) for ids in encoder.tokenise(texts, [template] * len(texts))]
    flops = encoding_flops(encoder.model, lengths, encoder.method.prefix)

    def figures(name: str, timing: Timing) -> dict[str, Any]:
        return {
            **timing.figures(len(texts)), "tokens": sum(lengths) / timing.median,
            "share": flops / rates[types[name]] / timing.median,
        }  # fmt: skip

    return EncodingSpeed(
        encoder.name, len(texts), sum(lengths), rates[torch.float32],
        {name: figures(name, timing) for name, timing in timings.items()},
        {name: ratio(timings[OURS], timings[name]) for name in timings if name != OURS},
    )  # fmt: skip


def _copies(encoder: Encoder, precision: str, passes: str) -> dict[str, Encoder]:
    """The encoder and its copies by name: in bf16 where `precision` means that, and each of them in such `passes`."""
    found = {OURS: encoder}
    if computes_in_bf16(precision, encoder.device):
        found[OURS_BF16] = in_precision(deepcopy(encoder), "bf16")
    if passes != "padded":
        others = {f"{name}, {passes}": deepcopy(copy) for name, copy in found.items()}
        for copy in others.values():
            read_in(copy.model, passes)
        found |= others
    return found


def _peer(encoder: Encoder, name: str) -> Encode:
    """`encode` of a `SentenceTransformer` made of an encoder's weights."""
    method = encoder.method
    pooling = {Pooling.MEAN: "mean", Pooling.TOKEN: "cls"}.get(method.pooling)
    beside = method.prefix or When.ALWAYS in (method.denoise, method.head_when)
    if name not in PEERS:
        raise ValueError(f"`against` is {name!r}; choose from {', '.join(PEERS)}")
    if pooling is None or beside or method.template != PLAIN:
        raise ValueError(f"{encoder.name}: {NO_MATCH}")
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling as PeerPooling
        from sentence_transformers.sentence_transformer.modules import Transformer
    except ImportError as error:
        raise ValueError(f"{name} is not installed; install it or leave out `against`") from error
    with tempfile.TemporaryDirectory() as folder:
        encoder.model.base_model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        backbone = Transformer(folder, max_seq_length=encoder.max_seq_length)
        peer = SentenceTransformer(modules=[backbone, PeerPooling(encoder.dim, pooling)], device=str(encoder.device))
    return lambda texts: peer.encode(texts, show_progress_bar=False)


def lines(speed: EncodingSpeed) -> list[str]:
    """The figures as lines of text."""
    shown = [
        f"{speed.model}: {speed.sentences} sentences, {speed.tokens} tokens; "
        f"matrix rate {speed.matrix_rate / 1e9:.0f} GFLOP/s"
    ]
    for name, work in speed.works.items():
        faster = speed.times_faster.get(name)
        beside = "" if faster is None else f"; cse is {faster[0]:.2f} x as fast ({faster[1]:.2f} to {faster[2]:.2f})"
        peak = "" if work["peak_mb"] is None else f", peak {work['peak_mb']} MB"
        shown.append(
            f"{name}: {work['rate']:.0f} sentences/s ({work['slowest']:.0f} to {work['fastest']:.0f}), "
            f"{work['tokens']:.0f} tokens/s, {work['share']:.0%} of the matrix rate{peak}{beside}"
        )
    return shown
