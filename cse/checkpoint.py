"""Checkpoints: exactly the learned tensors and a configuration.

A folder holds `config.json`, `model.safetensors` (in shards where it is large) and a model card. The backbone is
referred to by id or folder and by the fingerprint it had.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from cse.backbone import load_backbone
from cse.encoder import Encoder
from cse.errors import ArtefactError
from cse.files import FolderKind, write_folder
from cse.methods import from_json, to_json
from cse.model_names import CONFIG, location, read_config, read_json

FORMAT = 1
INDEX = "model.safetensors.index.json"
LOG = "train_log.jsonl"  # a JSON line per training step
CHECKPOINT = FolderKind(
    "a checkpoint", CONFIG, ("method", "format"), (CONFIG, "model*.safetensors", INDEX, "README.md", LOG)
)


def save(
    encoder: Encoder, folder: Path, info: Mapping[str, Any], *, half: bool = False, max_shard_size: str = "2GB"
) -> None:
    """Write a checkpoint folder, replacing an earlier one at once; `info` (settings, scores) goes into its config.

    `half` stores float16, which is computed in float32 again once loaded. Raises ValueError where `folder` holds
    anything but a checkpoint.
    """
    from huggingface_hub import save_torch_state_dict

    CHECKPOINT.check_replaceable(Path(folder))
    dtype = torch.float16 if half else torch.float32
    tensors = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in encoder.learned().items()}
    config = {
        "format": FORMAT,
        "method": to_json(encoder.method),
        "backbone": {
            "name": encoder.backbone,
            "revision": getattr(encoder.model.config, "_commit_hash", None),  # of a hub model
            "fingerprint": encoder.backbone_fingerprint,
        },
        "frozen_embeddings": encoder.freeze_embeddings,
        "learned_numbers": sum(tensor.numel() for tensor in tensors.values()),
        **info,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "transformers")},
        },
    }

    def fill(target: Path) -> None:
        save_torch_state_dict(tensors, target, max_shard_size=max_shard_size)
        (target / CONFIG).write_text(json.dumps(config, indent=1))
        (target / "README.md").write_text(model_card(config))

    write_folder(folder, fill)


def model_card(config: Mapping[str, Any]) -> str:
    """A short model card in the hub's form."""
    method, scores = config["method"], config.get("dev") or {}
    lines = [f"{key}: {value}" for key, value in {**config.get("settings", {}), **scores}.items()]
    return "\n".join(
        [
            "---", "pipeline_tag: sentence-similarity", "library_name: cse", "---",
            f"# {method['name']}{' (supervised)' if method['supervised'] else ''}", "",
            f"{method['summary']} ({method['citation']}).", "",
            f"Backbone: {config['backbone']['name']} ({config['backbone']['fingerprint']}). "
            f"Learned numbers in this folder: {config['learned_numbers']:,}.", "",
            "```python", "import cse", "", 'vectors = cse.load("THIS_FOLDER").encode(["A sentence."])', "```", "",
            "Settings and STS-B dev scores (Spearman x 100):", "", *(f"- {line}" for line in lines), "",
        ]
    )  # fmt: skip


def load_checkpoint(folder: Path, name: str) -> Encoder:
    """The encoder of a checkpoint folder, its tensors checked strictly against what its method learns."""
    config = read_config(folder)
    try:
        if config["format"] != FORMAT:
            raise ArtefactError(f"{folder}: checkpoint format {config['format']}, this version reads {FORMAT}")
        method = from_json(config["method"])
        origin = config["backbone"]
        reference, expected, revision = str(origin["name"]), origin["fingerprint"], origin.get("revision")
    except ArtefactError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtefactError(
            f"{folder}: not a checkpoint of this project ({CONFIG}: {error}); train it again"
        ) from error
    tensors = _read_tensors(folder)
    backbone = load_backbone(location(reference), revision=revision)
    encoder = Encoder(*backbone, method, name=name, backbone=reference)
    if (found := encoder.backbone_fingerprint) != expected:
        raise ArtefactError(
            f"{folder}: trained on {reference} {expected}, but that is now {found}; restore that backbone"
        )
    encoder.select_learned(freeze_embeddings=bool(config.get("frozen_embeddings")))
    learned = encoder.learned()
    if tensors.keys() != learned.keys():
        odd = sorted(tensors.keys() ^ learned.keys())[0]
        raise ArtefactError(f"{folder}: tensors do not fit {method.name}, first {odd!r}; train it again")
    with torch.no_grad():
        for key, tensor in learned.items():
            if tensor.shape != tensors[key].shape:
                raise ArtefactError(f"{folder}: {key} is {tuple(tensors[key].shape)}, not {tuple(tensor.shape)}")
            tensor.copy_(tensors[key])
    return encoder


def _read_tensors(folder: Path) -> dict[str, torch.Tensor]:
    index = folder / INDEX
    names = ["model.safetensors"]
    if index.is_file():
        parts = read_json(index).get("weight_map")
        if not isinstance(parts, dict):
            raise ArtefactError(f"{index}: damaged (no weight_map); copy or train it again")
        names = sorted({str(name) for name in parts.values()})
    tensors: dict[str, torch.Tensor] = {}
    for name in names:
        path = folder / Path(name).name  # a name in a file stays inside the folder
        try:
            tensors |= load_file(path)
        except FileNotFoundError as error:
            raise ArtefactError(f"{folder}: no {path.name}; copy or train it again") from error
        except SafetensorError as error:
            raise ArtefactError(f"{path}: damaged ({error}); copy or train it again") from error
    return tensors
