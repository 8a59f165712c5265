"""OpenVINO graphs of a stored backbone and of heads, and their compilation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from openvino import Core, Model, PartialShape, Type
from openvino import opset13 as op

from cse.encoder.stored_backbone import WORD_EMBEDDINGS
from cse.methods.method import JOINED, LAST_LAYER, LAYERS, Pooling

if TYPE_CHECKING:
    from openvino import CompiledModel

    from cse.encoder.stored_backbone import StoredBackbone

PADDING_SCORE = -1e9  # added to the attention scores of padding
NORM_EPS, UNIT_EPS = 1e-5, 1e-12  # of PyTorch's LayerNorm, and of its normalize
LEVELS = 127  # of an int8, on each side of zero


Arrays = Mapping[str, Any]  # or matrices that are in a graph already


# Graphs are built from the arrays: that takes .3 s with compilation and no PyTorch, a module's conversion 10 s.
def vectors_graph(backbone: StoredBackbone, pooling: Pooling, prefix: np.ndarray | None) -> Model:
    """Return the graph of (B, L) rows' vectors (B, d), before template bias and head.

    Inputs: `words` (B, L, d), the tokens' embeddings (a table in the graph would be held as float32); `positions`;
    `mask`, 1 at a token; `pooled`, the weight in a mean; `at` (B,), the token that is read. `prefix`
    (P, layers * 2 * d) holds keys and values, as `cse.encoder.backbone.run_behind` reads it.
    """
    words = op.parameter(PartialShape([-1, -1, int(backbone.config["hidden_size"])]), Type.f32, name="words")
    positions = op.parameter(PartialShape([-1, -1]), Type.i32, name="positions")
    mask = op.parameter(PartialShape([-1, -1]), Type.f32, name="mask")
    pooled = op.parameter(PartialShape([-1, -1]), Type.f32, name="pooled")
    at = op.parameter(PartialShape([-1]), Type.i32, name="at")
    inputs = [words, positions, mask, pooled, at]
    blocks = backbone.blocks
    kind = _constant(np.ascontiguousarray(blocks["embeddings.token_type_embeddings.weight"][0]))
    placed = op.gather(_constant(blocks["embeddings.position_embeddings.weight"]), positions, 0)
    states = [_norm(op.add(op.add(words, kind), placed), blocks, "embeddings.LayerNorm", backbone.eps)]
    # (B, 1, 1, P + L) numbers to add to attention scores.
    attended = op.multiply(op.subtract(_constant(np.float32(1)), mask), _constant(np.float32(PADDING_SCORE)))
    if prefix is not None:
        attended = op.pad(attended, _ints(0, len(prefix)), _ints(0, 0), "constant", _constant(np.float32(0)))
    attended = op.unsqueeze(attended, _ints(1, 2))
    for layer in range(int(backbone.config["num_hidden_layers"])):
        states.append(_block(backbone, layer, states[-1], attended, prefix))
    layers = LAYERS.get(pooling, LAST_LAYER)
    hidden = states[layers[0]]
    if len(layers) > 1:
        total = reduce(op.add, (states[layer] for layer in layers))
        hidden = op.multiply(total, _constant(np.float32(1 / len(layers))))
    first = op.gather(hidden, at, 1, 1)  # of row b the state at[b]
    if pooling in (Pooling.TOKEN, Pooling.LAST):
        vectors = first
    elif pooling is Pooling.MAX:
        unread = op.unsqueeze(op.subtract(pooled, _constant(np.float32(1))), _ints(2))
        vectors = op.reduce_max(op.add(hidden, op.multiply(unread, _constant(np.float32(1e9)))), _ints(1))
    elif pooling in JOINED:
        readings = {Pooling.TOKEN: first, Pooling.MEAN: _mean(hidden, pooled)}
        vectors = op.concat([readings[part] for part in JOINED[pooling]], 1)
    else:
        vectors = _mean(hidden, pooled)
        if pooling is Pooling.MEAN_SQRT_LEN:
            vectors = op.multiply(vectors, op.sqrt(op.reduce_sum(pooled, _ints(1), True)))
    return Model([vectors], inputs, "vectors")


def head_graph(layers: Sequence[str], arrays: Arrays, eps: float) -> Model:
    """Return the graph of a head (`Reading.head_layers`) from (B, d) to (B, m); no layers: the transform."""
    vectors = hidden = op.parameter(PartialShape([-1, -1]), Type.f32, name="hidden")
    for number, layer in enumerate(layers):
        if layer == "linear":
            vectors = _linear(vectors, arrays, str(number))
        elif layer == "norm":
            vectors = _norm(vectors, arrays, str(number), NORM_EPS)
        else:
            vectors = op.tanh(vectors) if layer == "tanh" else op.normalize_l2(vectors, _ints(1), UNIT_EPS, "max")
    if not layers:
        vectors = _norm(_activated(_linear(hidden, arrays, "dense"), "gelu"), arrays, "norm", eps)
    return Model([vectors], [hidden], "head")


def words_graph(backbone: StoredBackbone) -> Model:
    """Return the graph of the masked-language-model head from states (B, d) to vocabulary logits (B, V)."""
    hidden = op.parameter(PartialShape([-1, -1]), Type.f32, name="hidden")
    activation = "gelu" if backbone.roberta else str(backbone.config.get("hidden_act", "gelu"))
    inner = _activated(_linear(hidden, backbone.head, "dense"), activation)
    inner = _norm(inner, backbone.head, "norm", backbone.eps)
    logits = op.matmul(inner, _constant(backbone.blocks[WORD_EMBEDDINGS]), False, True)
    return Model([op.add(logits, _constant(backbone.head["words.bias"]))], [hidden], "words")


def _block(backbone: StoredBackbone, layer: int, hidden: Any, seen: Any, prefix: np.ndarray | None) -> Any:
    at, blocks, eps = f"encoder.layer.{layer}", backbone.blocks, backbone.eps
    heads = int(backbone.config["num_attention_heads"])
    width = int(backbone.config["hidden_size"])
    split = _ints(0, 0, heads, width // heads)
    query, key, value = (
        op.transpose(op.reshape(_linear(hidden, blocks, f"{at}.attention.self.{part}"), split, True), _ints(0, 2, 1, 3))
        for part in ("query", "key", "value")
    )
    if prefix is not None:
        own = prefix.reshape(len(prefix), -1, 2, heads, width // heads)[:, layer].transpose(1, 2, 0, 3)
        rows = op.gather(op.shape_of(query, "i32"), _ints(0), 0)
        shape = op.concat([rows, op.constant(np.array(own.shape[1:], np.int32))], 0)  # (B, heads, P, d / heads)
        before = (op.broadcast(_constant(np.ascontiguousarray(part)[None]), shape) for part in own)
        key, value = (op.concat([*pair], 2) for pair in zip(before, (key, value), strict=True))
    mixed = op.transpose(op.scaled_dot_product_attention(query, key, value, seen), _ints(0, 2, 1, 3))
    mixed = op.reshape(mixed, _ints(0, 0, width), True)
    hidden = _norm(
        op.add(hidden, _linear(mixed, blocks, f"{at}.attention.output.dense")), blocks,
        f"{at}.attention.output.LayerNorm", eps,
    )  # fmt: skip
    inner = _activated(
        _linear(hidden, blocks, f"{at}.intermediate.dense"), str(backbone.config.get("hidden_act", "gelu"))
    )
    return _norm(op.add(hidden, _linear(inner, blocks, f"{at}.output.dense")), blocks, f"{at}.output.LayerNorm", eps)


def _mean(hidden: Any, mask: Any) -> Any:
    weights = op.unsqueeze(mask, _ints(2))
    count = op.maximum(op.reduce_sum(weights, _ints(1)), _constant(np.float32(1)))
    return op.divide(op.reduce_sum(op.multiply(hidden, weights), _ints(1)), count)


def _linear(hidden: Any, arrays: Arrays, name: str) -> Any:
    return op.add(
        op.matmul(hidden, _constant(arrays[f"{name}.weight"]), False, True), _constant(arrays[f"{name}.bias"])
    )


def _norm(hidden: Any, arrays: Arrays, name: str, eps: float) -> Any:
    normal = op.mvn(hidden, _ints(-1), True, eps, "inside_sqrt")
    return op.add(op.multiply(normal, _constant(arrays[f"{name}.weight"])), _constant(arrays[f"{name}.bias"]))


def _activated(hidden: Any, name: str) -> Any:
    return op.relu(hidden) if name == "relu" else op.gelu(hidden, "erf")


def rounded(matrix: np.ndarray) -> Any:
    """Return a matrix (n, m) of a graph, held as 255 levels (int8) and a float32 scale a row, which is an output."""
    scales = np.maximum(np.abs(matrix).max(1, keepdims=True), np.finfo(np.float32).tiny) / np.float32(LEVELS)
    levels = op.constant(np.rint(matrix / scales).astype(np.int8))
    return op.multiply(op.convert(levels, Type.f32), _constant(scales))


def _constant(values: Any) -> Any:
    if not isinstance(values, np.ndarray | np.float32):
        return values
    constant = op.constant(np.asarray(values), shared_memory=True)
    return op.convert(constant, Type.f32) if values.dtype == np.float16 else constant


def _ints(*values: int) -> Any:
    return op.constant(np.array(values, np.int32))


INT8 = "int8"
MAX_KEPT_SHAPES = 64  # of batches, whose kernels are kept; more cost memory and hardly any time
QUANTISED_GROUP = 32  # numbers of a state that OpenVINO quantises together


CORE = cache(Core)  # made when the first graph is compiled, and once


def compiled(model: Any, precision: str = "f32") -> CompiledModel:
    """Compile a graph for the CPU, with as many threads as OMP_NUM_THREADS says, which PyTorch reads too."""
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32" if precision == INT8 else precision,
        "CPU_RUNTIME_CACHE_CAPACITY": str(MAX_KEPT_SHAPES),
        "ENABLE_CPU_PINNING": False,  # two processes with a thread each would share the first core
    }
    if precision == INT8:
        settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = str(QUANTISED_GROUP)
    if threads := os.environ.get("OMP_NUM_THREADS", ""):
        settings["INFERENCE_NUM_THREADS"] = threads.partition(",")[0]
    return CORE().compile_model(model, "CPU", settings)
