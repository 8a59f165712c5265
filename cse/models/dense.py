"""The linear layer (`Dense`) of a sentence-transformers model, read as a head."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cse.errors import ArtefactError
from cse.methods.method import Head
from cse.storage import hub
from cse.storage.weights import SINGLE, check_finite, find_weights, read_arrays

if TYPE_CHECKING:
    import numpy as np

WEIGHT, BIAS = "linear.weight", "linear.bias"  # (m, n) and (m,)
ACTIVATIONS = {"Identity": Head.LINEAR, "Tanh": Head.TANH}  # classes of torch.nn
CURE = "copy it again"


@dataclass(frozen=True)
class RecordedDense:
    """A linear layer from `inputs` to `outputs` numbers in the folder `path` of a model, with its activation."""

    path: str
    inputs: int
    outputs: int
    head: Head
    bias: bool


def recorded_dense(name: str, path: str) -> RecordedDense:
    """Return the configuration of the `Dense` in the folder `path` of a model.

    Raises ArtefactError for one that is damaged or has another activation than Identity and Tanh.
    """
    value = read_part(name, f"{path}/config.json")
    try:
        called = str(value.get("activation_function", "torch.nn.Tanh"))  # the package's default
        inputs, outputs = int(value["in_features"]), int(value["out_features"])
        bias = bool(value.get("bias", True))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtefactError(f"{name}: {path}/config.json is missing or damaged ({error!r}); {CURE}") from error
    activation = called.rsplit(".", 1)[-1]
    if not called.startswith("torch.nn.") or activation not in ACTIVATIONS:
        raise ArtefactError(
            f"{name}: its {path} has the activation {called}, which is not supported; give `pooling` to read the "
            "backbone alone"
        )
    return RecordedDense(path, inputs, outputs, ACTIVATIONS[activation], bias)


def dense_arrays(name: str, dense: RecordedDense, width: int) -> dict[str, np.ndarray]:
    """Return the layer's float32 arrays by the names of a head, for a pooled vector of `width` numbers.

    Raises ArtefactError for arrays that are missing, not finite, or of other sizes than the configuration says.
    """
    import numpy as np

    stored = read_arrays(find_weights(name, [f"{dense.path}/{file}" for file in (SINGLE, "pytorch_model.bin")]))
    if dense.inputs != width:
        raise ArtefactError(
            f"{name}: its {dense.path} reads {dense.inputs} numbers, its backbone gives {width}; {CURE}"
        )
    wanted = {WEIGHT: (dense.outputs, dense.inputs)} | ({BIAS: (dense.outputs,)} if dense.bias else {})
    found = {key: array.shape for key, array in stored.items()}
    if found != wanted:
        raise ArtefactError(f"{name}: its {dense.path} holds {found}, not {wanted}; {CURE}")
    check_finite(stored, f"{name}: {dense.path}", CURE)
    bias = stored[BIAS] if dense.bias else np.zeros(dense.outputs, np.float32)
    return {
        "0.weight": np.ascontiguousarray(stored[WEIGHT], np.float32), "0.bias": np.ascontiguousarray(bias, np.float32)
    }  # fmt: skip


def read_part(name: str, file: str) -> Any:
    """Return the JSON value in a file of a model; None if it has no such file. Raises ArtefactError if damaged."""
    path = hub.cached_file(name, file)
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArtefactError(f"{name}: {file} is damaged ({error})") from error
