"""Weight files of models: their tensors as numpy arrays, and the names of these. No code in a file is executed."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.errors import ArtefactError, first_line
from cse.files import hub
from cse.files.writing import read_json, unreadable

if TYPE_CHECKING:
    import numpy as np

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = "model-?????-of-?????.safetensors"
SAFE = (INDEX, SINGLE)
ANY = (SINGLE, INDEX, "pytorch_model.bin", "pytorch_model.bin.index.json")


def find_weights(model: str, layouts: Sequence[str] = ANY, revision: str | None = None) -> list[Path]:
    """Return the files of the first of `layouts` that a model folder or hub id has; several if stored in shards.

    `revision` is a hub commit. Raises ArtefactError if there is none of them or a shard is missing.
    """
    for layout in layouts:
        path = hub.cached_file(model, layout, revision)
        if path is not None:
            return _shards(model, path, revision) if layout.endswith(".index.json") else [path]
    missing = layouts[-1] if set(layouts) <= set(SAFE) else "safetensors file or pytorch_model.bin"
    if not Path(model).is_dir():
        raise ArtefactError(f"{model}: no {missing} on the hub or, offline, in its cache; download it once")
    raise ArtefactError(f"{model}: no {missing} in it; copy or train it again")


def available(model: str) -> bool:
    """True if a model folder or hub id has a weight file, or the hub is reachable and may have one."""
    return hub.reachable() or any(hub.cached_file(model, layout) is not None for layout in ANY)


def stored_keys(paths: Iterable[Path]) -> frozenset[str]:
    """Return the names of the tensors in weight files; no tensor of a safetensors file is read."""
    keys: set[str] = set()
    for path in paths:
        if path.suffix == ".safetensors":
            with _opened(path) as file:
                keys |= {*file.keys()}
        else:
            keys |= _unpickled(path).keys()
    return frozenset(keys)


def read_arrays(paths: Iterable[Path]) -> dict[str, np.ndarray]:
    """Return the tensors of weight files by name, in their stored dtype; bfloat16, which numpy lacks, as float32.

    A pickle is opened only by `torch.load(weights_only=True)`. Raises ArtefactError for a file that is damaged or
    holds anything but named tensors.
    """
    arrays: dict[str, np.ndarray] = {}
    for path in paths:
        arrays |= _stored(path) if path.suffix == ".safetensors" else _unpickled(path)
    return arrays


def check_finite(arrays: Mapping[str, np.ndarray], source: str, cure: str) -> None:
    """Raise ArtefactError, beginning with `source` and ending with `cure`, for the first array with NaN or infinity."""
    import numpy as np

    for name, array in arrays.items():
        # A finite sum, the cheaper test, has finite terms; the sum of large finite numbers may be infinite.
        with np.errstate(invalid="ignore", over="ignore"):
            is_sum_finite = array.dtype.kind != "f" or np.isfinite(array.sum(dtype=np.float32))
        if not is_sum_finite and not np.isfinite(array).all():
            raise ArtefactError(f"{source}: {name} holds a number that is not finite; {cure}")


def _shards(model: str, index: Path, revision: str | None) -> list[Path]:
    files = read_json(index).get("weight_map")
    if not isinstance(files, dict):
        raise ArtefactError(f"{index}: damaged (no weight_map); copy or train it again")
    paths: list[Path] = []
    for name in sorted({Path(str(name)).name for name in files.values()}):  # `.name` keeps the path inside the folder
        path = hub.cached_file(model, name, revision)
        if path is None:
            raise ArtefactError(f"{model}: no {name}; copy or train it again")
        paths.append(path)
    return paths


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a safetensors file in the block, whose errors become one line."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except OSError:
        raise
    except Exception as error:  # a damaged header, or a type of number that numpy lacks
        raise _damaged(path, error) from error


def _stored(path: Path) -> dict[str, np.ndarray]:
    import numpy as np
    from safetensors import deserialize

    with _opened(path) as file:
        halves = {name for name in file.keys() if file.get_slice(name).get_dtype() == "BF16"}  # noqa: SIM118
        arrays = {name: file.get_tensor(name) for name in file.keys() if name not in halves}  # noqa: SIM118
        for name, stored in deserialize(path.read_bytes()) if halves else ():
            if name in halves:  # the upper half of a float32
                whole = np.frombuffer(stored["data"], np.uint16).astype(np.uint32) << 16
                arrays[name] = whole.view(np.float32).reshape(stored["shape"])
        return arrays


def _unpickled(path: Path) -> dict[str, np.ndarray]:
    import torch

    try:
        # Only the newer, zipped format can be memory-mapped.
        value = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise unreadable(path, "holds more than tensors and could run code; give it in safetensors") from error
    except Exception as error:  # a damaged pickle can raise anything
        raise _damaged(path, error) from error
    named = isinstance(value, dict) and all(isinstance(key, str) for key in value)
    if not named or not all(isinstance(tensor, torch.Tensor) for tensor in value.values()):
        raise ArtefactError(f"{path}: holds something other than named tensors; give the model in safetensors")
    plain = {name: tensor.detach() for name, tensor in value.items()}
    return {
        name: (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy() for name, tensor in plain.items()
    }


def _damaged(path: Path, error: Exception) -> ArtefactError:
    return unreadable(path, f"damaged ({first_line(error)}); copy or train it again")
