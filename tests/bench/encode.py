"""How fast an encoder is: sentences and tokens a second, its share of the matrix rate, and those of its peers.

A peer is given the same weights, tokenizer, sentences and pooling. sentence-transformers has its own defaults; OpenVINO
and ONNX Runtime run the exported graph over the same length-sorted batches. All vectors must be the same.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cse.corpus import Corpus
from cse.encoder.devices import computes_in_bf16, in_precision
from cse.encoder.encoder import Encoder
from cse.encoder.rows import plan_batches
from cse.encoder.torch_encoder import TorchEncoder
from cse.evaluation.transfer import labelled_rows
from cse.methods.method import Pooling, When
from cse.methods.templates import PLAIN
from cse.models.export import export_model
from cse.models.loading import on_torch
from cse.models.names import BUNDLED
from tests.bench.flops import encoding_flops, matrix_rate
from tests.bench.timing import ROUNDS, Clock, Timing, interleaved, ratio

OURS, OURS_BF16, OURS_TORCH = "cse", "cse, bf16", "cse, torch"
ALONE = 100  # sentences that are encoded one by one
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


def texts_of(source: str | None, most: int) -> list[str]:
    """At most so many sentences of a file, table or hub id, or of the demo corpus."""
    if source is None:
        return [text for _, text in labelled_rows(BUNDLED / "demo" / "corpus.tsv")][:most]
    return list(islice(Corpus.read(source).sentences, most))


def measure_encoding(
    encoder: Encoder,
    sentences: Sequence[str],
    *,
    against: Sequence[str] = (),
    precision: str = "no",
    rounds: int = ROUNDS,
    clock: Clock = time.perf_counter,
) -> EncodingSpeed:
    """Measure an encoder over sentences in turn with a copy in bf16, if `precision` means that, and with peers.

    An encoder on OpenVINO also takes its turn on PyTorch. Raises ValueError for a peer that is unknown, not installed
    or without such a method, or whose vectors differ.
    """
    texts, ours = list(sentences), on_torch(encoder)
    works: dict[str, Encode] = {OURS: encoder.encode}
    if computes_in_bf16(precision, str(encoder.device)):
        works[OURS_BF16] = in_precision(deepcopy(encoder), "bf16").encode
    if ours is not encoder:
        works[OURS_TORCH] = ours.encode
    for name in against:
        works[name] = _peer(ours, name)
        if not np.allclose(encoder.encode(texts[:64]), works[name](texts[:64]), atol=SAME):
            raise ValueError(f"{encoder.name}: {name} gives other vectors, so it does other work; {NO_MATCH}")
    types = {name: torch.bfloat16 if name == OURS_BF16 else torch.float32 for name in works}
    before = {each: matrix_rate(ours.device, each, clock) for each in set(types.values())}
    timings = interleaved({name: partial(encode, texts) for name, encode in works.items()}, rounds, clock)
    rates = {each: max(rate, matrix_rate(ours.device, each, clock)) for each, rate in before.items()}
    template = encoder.views[0][0]
    lengths = [template.length + len(ids) for ids in encoder.tokenise(texts, [template] * len(texts))]
    flops = encoding_flops(ours.model, lengths, encoder.reading.prefix)

    def figures(name: str, timing: Timing) -> dict[str, Any]:
        return {
            **timing.figures(len(texts)), "tokens": sum(lengths) / timing.median,
            "share": flops / rates[types[name]] / timing.median, **latency(works[name], texts[:ALONE], clock),
        }  # fmt: skip

    return EncodingSpeed(
        encoder.name, len(texts), sum(lengths), rates[torch.float32],
        {name: figures(name, timing) for name, timing in timings.items()},
        {name: ratio(timings[OURS], timings[name]) for name in timings if name != OURS},
    )  # fmt: skip


def latency(encode: Encode, texts: Sequence[str], clock: Clock) -> dict[str, float]:
    """Return the median and the 95th percentile of the milliseconds that one sentence takes alone."""
    took = []
    for text in texts:
        begun = clock()
        encode([text])
        took.append(1000 * (clock() - begun))
    return {"p50_ms": float(np.percentile(took, 50)), "p95_ms": float(np.percentile(took, 95))}


def _peer(encoder: TorchEncoder, name: str) -> Encode:
    """Return `encode` of a peer with an encoder's weights."""
    if name not in PEERS:
        raise ValueError(f"`against` is {name!r}; choose from {', '.join(PEERS)}")
    try:
        return PEERS[name](encoder)
    except ImportError as error:
        raise ValueError(f"{name} is not installed; install it or leave out `against`") from error


def _sentence_transformers(encoder: TorchEncoder) -> Encode:
    reading = encoder.reading
    pooling = {Pooling.MEAN: "mean", Pooling.TOKEN: "cls"}.get(reading.pooling)
    beside = reading.prefix or When.ALWAYS in (reading.denoise, reading.head_when)
    if pooling is None or beside or reading.template != PLAIN:
        raise ValueError(f"{encoder.name}: {NO_MATCH}")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling as PeerPooling
    from sentence_transformers.sentence_transformer.modules import Transformer

    with tempfile.TemporaryDirectory() as folder:
        encoder.model.base_model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        backbone = Transformer(folder, max_seq_length=encoder.max_seq_length)
        peer = SentenceTransformer(modules=[backbone, PeerPooling(encoder.dim, pooling)], device=str(encoder.device))
    return lambda texts: peer.encode(texts, show_progress_bar=False)


def _plain_openvino(encoder: TorchEncoder) -> Encode:
    import openvino

    with exported(encoder) as file:
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        if "OMP_NUM_THREADS" in os.environ:  # which PyTorch reads
            settings["INFERENCE_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
        request = openvino.Core().compile_model(str(file), "CPU", settings).create_infer_request()
    return _sorted_batches(encoder, lambda ids, mask: request.infer([ids, mask])[0])


def _onnxruntime(encoder: TorchEncoder) -> Encode:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", 0))
    with exported(encoder) as file:
        session = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
    return _sorted_batches(encoder, lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0])


@contextmanager
def exported(encoder: TorchEncoder) -> Iterator[Path]:
    """Yield the ONNX file of an encoder."""
    with tempfile.TemporaryDirectory() as folder:
        export_model(encoder, "onnx", Path(folder))
        yield Path(folder) / "onnx" / "model.onnx"


def _sorted_batches(encoder: TorchEncoder, run: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Encode:
    """Return an `encode` that gives a graph batches of the lengths that `cse` gives its own."""
    template = encoder.views[0][0]

    def encode(texts: list[str]) -> np.ndarray:
        rows = encoder.rows_of(texts, [template] * len(texts))
        vectors = np.empty((len(texts), encoder.dim), np.float32)
        for chosen in plan_batches(rows.sizes, "cpu"):
            (ids, _, _, mask, _), _ = rows[chosen].tables(encoder.tokenizer.pad_token_id)
            vectors[chosen] = run(ids, mask)
        return vectors

    return encode


PEERS: dict[str, Callable[[TorchEncoder], Encode]] = {
    "sentence-transformers": _sentence_transformers, "openvino": _plain_openvino, "onnxruntime": _onnxruntime,
}  # fmt: skip
