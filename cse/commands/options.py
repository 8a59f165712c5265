"""Options that many commands have: the model, and how it is read and run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cse.commands.cli import completing
from cse.methods.catalogue import UNTRAINED
from cse.models.families import FAMILIES
from cse.models.names import BUNDLED_NAMES

MODEL = "simcse, promptbert, dcpcse, conpvp, a checkpoint folder, or a backbone."
POOLING = f"Pooling of a plain backbone: {', '.join(UNTRAINED)}."
BACKEND = "torch, openvino (CPU only), or auto: openvino on a CPU where it is installed."
FAMILY = f"Family of a published checkpoint, if neither its keys nor its hub id show it: {', '.join(FAMILIES)}."


def model_option(help_text: str, **options: Any) -> Any:
    """An option that takes a model, with its bundled names completed by the shell."""
    return typer.Option(help=help_text, autocompletion=completing(*BUNDLED_NAMES), **options)


Model = Annotated[str, model_option(MODEL)]
Pooling = Annotated[str | None, typer.Option(help=POOLING)]
Family = Annotated[str | None, typer.Option(help=FAMILY)]
Backend = Annotated[str, typer.Option(help=BACKEND)]
