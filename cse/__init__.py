"""Train, understand and compare contrastive sentence embeddings. Nothing heavy is imported until it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.training.api import train
    from index.faiss_index import VectorIndex
    from index.manifest import BuildSettings

__all__ = ["BuildSettings", "Encoder", "VectorIndex", "load", "train"]
__version__ = "0.2.0"


def load(
    model: str,
    pooling: str | None = None,
    device: str | None = None,
    family: str | None = None,
    backend: str = "auto",
    start: bool = False,
) -> Encoder:
    """Open the `Encoder` of a bundled name, a checkpoint folder, or a Hugging Face folder or id.

    `pooling` (mean, cls, prompt or another of `cse.methods.catalogue.UNTRAINED`; default mean) is that of a plain
    Hugging Face model. A published checkpoint of SimCSE, ESimCSE, PromptBERT, PromCSE, ConPVP or OptiPrompt is read by
    its family; give `family` (of `cse.models.names.FAMILIES`) if neither its keys nor its hub id identify it.
    `backend` is torch, openvino (CPU inference without PyTorch), or auto: openvino on a CPU where it is installed.
    `start` opens a checkpoint of this project as it was before its first training step.
    Raises `cse.errors.ArtefactError`, with the choices, for anything that cannot be opened.
    """
    from cse.models.loading import load as load_model

    return load_model(model, pooling=pooling, device=device, family=family, backend=backend, start=start)


def __getattr__(name: str) -> Any:
    """Import a name of `__all__` at its first use."""
    if name == "Encoder":
        from cse.encoder.encoder import Encoder

        globals()[name] = Encoder
    elif name in ("BuildSettings", "VectorIndex"):
        from cse.own_index import import_index

        globals()[name] = getattr(import_index("manifest" if name == "BuildSettings" else "faiss_index"), name)
    elif name == "train":
        from cse.training.api import train

        globals()[name] = train
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    """The names of the module, those imported at their first use among them."""
    return sorted({*globals(), *__all__})
