"""Options that many commands have: the model, and how it is read and run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cse.commands.cli import completing
from cse.methods.catalogue import UNTRAINED
from cse.methods.settings import MAX_SEED
from cse.models.families import FAMILIES
from cse.models.names import BUNDLED_NAMES

MODEL = "simcse, promptbert, dcpcse, conpvp, a checkpoint folder, or a backbone."
POOLING = f"Pooling of a plain backbone: {', '.join(UNTRAINED)}."
BACKEND = "torch, openvino (CPU only), or auto: openvino on a CPU where it is installed."
FAMILY = f"Family of a published checkpoint, if neither its keys nor its hub id show it: {', '.join(FAMILIES)}."


def option(help_text: str | None, *names: str, panel: str | None = None, **rules: Any) -> Any:
    """An option with its help, in a `panel` of the command's help; `names` replace `--PARAMETER`."""
    return typer.Option(*names, help=help_text, rich_help_panel=panel, **rules)


def seed_option(help_text: str | None, *names: str, **rules: Any) -> Any:
    """An option that takes a seed, or several: whole numbers from 0 to `MOST_SEED`."""
    return option(help_text, *names, min=0, max=MAX_SEED, **rules)


def model_option(help_text: str, **rules: Any) -> Any:
    """An option that takes a model, with its bundled names completed by the shell."""
    return option(help_text, autocompletion=completing(*BUNDLED_NAMES), **rules)


Model = Annotated[str, model_option(MODEL)]
Pooling = Annotated[str | None, option(POOLING)]
Family = Annotated[str | None, option(FAMILY)]
Backend = Annotated[str, option(BACKEND)]
