"""A checkpoint's own start: its method on its backbone before the first training step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cse.errors import ArtefactError
from cse.models.checkpoint import CURE, open_on_backbone, read_checkpoint_config
from cse.models.names import location
from cse.models.pipeline import copy_learned

if TYPE_CHECKING:
    import numpy as np

    from cse.encoding.encoder import Encoder
    from cse.models.config import CheckpointConfig

    Engine = TypeVar("Engine", bound=Encoder)


def load_start(folder: Path, name: str, engine: type[Engine]) -> Engine:
    """Open the encoder that a checkpoint's training began with: its backbone, with the prefix, slots and head drawn.

    Raises ArtefactError if the backbone is missing or has changed, or if the checkpoint records no seed.
    """
    config = read_checkpoint_config(folder)
    encoder = open_on_backbone(folder, config, name, engine)
    copy_learned(_drawn(folder, config), encoder, str(folder), CURE)
    return encoder


def _drawn(folder: Path, config: CheckpointConfig) -> dict[str, np.ndarray]:
    """Return the arrays that training draws by its seed once the backbone is open (`cse.training.run.prepare`)."""
    import torch

    from cse.backbones.backbone import as_arrays, load_backbone
    from cse.engines.torch_encoder import TorchEncoder

    seed = config.training.get("settings", {}).get("seed")
    if seed is None:
        raise ArtefactError(f"{folder}: records no seed, so its start cannot be drawn again; train it again")
    opened = load_backbone(location(config.backbone.place(folder)), config.backbone.revision)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = TorchEncoder(*opened, config.method, name=config.method.name)
    return {key: array for key, array in as_arrays(encoder.learned()).items() if not key.startswith("backbone.")}
