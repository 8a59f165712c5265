"""Resumable state of an optimisation: tensors in safetensors, everything else in JSON, swapped in atomically.

No random state is kept: both loops reseed from (seed, step) at every step, so a step is a function of the
tensors and its number, and a resumed run repeats the uninterrupted one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from cse.encoder.devices import bound_kernels, gpu_has_bf16
from cse.errors import ArtefactError
from cse.files.checksums import check_checksums, write_checksums
from cse.files.replace import recover
from cse.files.weights import check_finite
from cse.files.writing import replacing
from cse.training.records import STATE_FOLDER

if TYPE_CHECKING:
    from accelerate import Accelerator


def start_accelerator(precision: str) -> Accelerator:
    """An accelerator computing in `precision` (no, bf16, or auto: bf16 on a GPU that has it).

    Accelerate keeps one precision per process, so that of an earlier run is reset.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    if precision == "auto":
        precision = "bf16" if gpu_has_bf16() else "no"
    AcceleratorState._reset_state()
    bound_kernels(256)
    return Accelerator(mixed_precision=precision)


def save_state(
    output: Path, tensors: Mapping[str, torch.Tensor], optimizer: torch.optim.Optimizer, meta: Mapping[str, object]
) -> None:
    """Write the learned tensors, AdamW's moments and `meta` (step, recipe, history) to `output/state`."""
    names = {id(tensor): name for name, tensor in tensors.items()}
    moments = {
        f"{names[id(parameter)]}|{key}": value.detach().cpu().contiguous()
        for parameter, entries in optimizer.state.items()
        for key, value in entries.items()
    }

    learned = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(Path(output) / STATE_FOLDER) as folder:
        save_file(learned, folder / "learned.safetensors")
        save_file(moments, folder / "optimizer.safetensors")
        (folder / "meta.json").write_text(json.dumps(meta))
        write_checksums(folder)


def check_resume(folder: Path, begun: bool, note: Callable[[str], object] = lambda line: None) -> bool:
    """True if the run to resume in `folder` has a saved state; otherwise it starts again, and `note` gets a line.

    Raises ArtefactError unless a run was `begun`.
    """
    if not begun:
        raise ArtefactError(f"{folder}: nothing to resume; run once without `resume`")
    recover(folder / STATE_FOLDER)
    saved = (folder / STATE_FOLDER).is_dir()
    if not saved:
        note(f"{folder}: no saved state; the run starts again")
    return saved


def load_state(
    output: Path, tensors: Mapping[str, torch.Tensor], optimizer: torch.optim.Optimizer, recipe: Mapping[str, object]
) -> dict[str, Any]:
    """Load a saved state into `tensors` and `optimizer` in place and return its `meta`.

    Raises ArtefactError when the state is damaged or belongs to another recipe.
    """
    folder = Path(output) / STATE_FOLDER
    check_checksums(folder, "delete it and start again")
    try:
        meta = json.loads((folder / "meta.json").read_text())
        learned = load_file(folder / "learned.safetensors")
        moments = load_file(folder / "optimizer.safetensors")
    except (FileNotFoundError, SafetensorError, json.JSONDecodeError) as error:
        raise ArtefactError(f"{folder}: damaged state ({error}); delete it and start again") from error
    for stored in (learned, moments):
        arrays = {name: tensor.numpy() for name, tensor in stored.items()}
        check_finite(arrays, f"{folder}: damaged state", "delete it and start again")
    different = sorted(key for key in {*recipe, *meta["recipe"]} if recipe.get(key) != meta["recipe"].get(key))
    if different:
        shown = ", ".join(f"{key}: {meta['recipe'].get(key)} there, {recipe.get(key)} here" for key in different)
        raise ArtefactError(f"{folder}: made by another recipe ({shown}); repeat its settings or give another `output`")
    if learned.keys() != tensors.keys():
        raise ArtefactError(f"{folder}: holds other tensors than this model; give another `output`")
    fused = optimizer.defaults.get("fused")  # fused AdamW counts its steps on the device
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(learned[name])
            entries = {key.split("|")[1]: value for key, value in moments.items() if key.split("|")[0] == name}
            if entries:
                optimizer.state[tensor] = {
                    key: value.to(tensor.device) if key != "step" or fused else value for key, value in entries.items()
                }
    return meta
