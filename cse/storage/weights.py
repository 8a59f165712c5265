"""Weight files of models: their tensors and the names of these. No code in a file is executed."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cse.errors import ArtefactError
from cse.storage import hub, parts
from cse.storage.writing import read_json

if TYPE_CHECKING:
    import torch

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = "model-?????-of-?????.safetensors"
SAFE = (INDEX, SINGLE)
ANY = (SINGLE, INDEX, parts.INDEX, "pytorch_model.bin", "pytorch_model.bin.index.json")


def find_weights(model: str, layouts: Sequence[str] = ANY, revision: str | None = None) -> list[Path]:
    """Return the files of the first of `layouts` that a model folder or hub id has; several if stored in shards.

    `revision` is a hub commit. Raises ArtefactError if there is none of them or a shard is missing.
    """
    for layout in layouts:
        path = hub.cached_file(model, layout, revision)
        if path is not None:
            return _shards(model, path, revision) if layout.endswith(".index.json") else [path]
    wanted = layouts[-1] if set(layouts) <= set(SAFE) else "safetensors file or pytorch_model.bin"
    if not Path(model).is_dir():
        raise ArtefactError(f"{model}: no {wanted} on the hub or, offline, in its cache; download it once")
    raise ArtefactError(f"{model}: no {wanted} in it; copy or train it again")


def available(model: str) -> bool:
    """True if a model folder or hub id has a weight file, or the hub is reachable and may have one."""
    return hub.reachable() or any(hub.cached_file(model, layout) is not None for layout in ANY)


def stored_keys(paths: Iterable[Path]) -> frozenset[str]:
    """Return the names of the tensors in weight files; no tensor of a safetensors file is read."""
    return frozenset(parts.whole_name(key) for path in paths for key in _keys(path))


def read_tensors(paths: Iterable[Path]) -> dict[str, torch.Tensor]:
    """Return the tensors of weight files by name, in their stored dtype, on the CPU.

    A pickle is opened only by `torch.load(weights_only=True)`. Raises ArtefactError for a file that is damaged or
    holds anything but named tensors.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    tensors: dict[str, torch.Tensor] = {}
    for path in paths:
        try:
            tensors |= load_file(path) if path.suffix == ".safetensors" else _unpickled(path)
        except SafetensorError as error:
            raise _damaged(path, error) from error
    return parts.join(tensors)


def check_finite(tensors: Mapping[str, torch.Tensor], place: str, cure: str) -> None:
    """Raise ArtefactError, beginning with `place` and ending with `cure`, for the first tensor with NaN or infinity."""
    for name, tensor in tensors.items():
        # A finite sum, the cheaper test, has finite terms; the sum of large finite numbers may be infinite.
        if tensor.is_floating_point() and not tensor.sum().isfinite() and not tensor.isfinite().all():
            raise ArtefactError(f"{place}: {name} holds a number that is not finite; {cure}")


def _shards(model: str, index: Path, revision: str | None) -> list[Path]:
    files = read_json(index).get("weight_map")
    if not isinstance(files, dict):
        raise ArtefactError(f"{index}: damaged (no weight_map); copy or train it again")
    found: list[Path] = []
    for name in sorted({Path(str(name)).name for name in files.values()}):  # `.name` keeps the path inside the folder
        path = hub.cached_file(model, name, revision)
        if path is None:
            raise ArtefactError(f"{model}: no {name}; copy or train it again")
        found.append(path)
    return found


def _keys(path: Path) -> Iterable[str]:
    from safetensors import SafetensorError, safe_open

    if path.suffix != ".safetensors":
        return _unpickled(path).keys()
    try:
        with safe_open(path, framework="numpy") as file:
            return list(file.keys())
    except SafetensorError as error:
        raise _damaged(path, error) from error


def _unpickled(path: Path) -> dict[str, torch.Tensor]:
    import torch

    try:
        # Only the newer, zipped format can be memory-mapped.
        value = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise ArtefactError(
            f"{path}: holds more than tensors, or is damaged, and could run code; give the model in safetensors"
        ) from error
    except Exception as error:  # a damaged pickle can raise anything
        raise _damaged(path, error) from error
    named = isinstance(value, dict) and all(isinstance(key, str) for key in value)
    if not named or not all(isinstance(tensor, torch.Tensor) for tensor in value.values()):
        raise ArtefactError(f"{path}: holds something other than named tensors; give the model in safetensors")
    return dict(value)


def _damaged(path: Path, error: Exception) -> ArtefactError:
    lines = str(error).splitlines() or [type(error).__name__]
    return ArtefactError(f"{path}: damaged ({lines[0][:160]}); copy or train it again")
