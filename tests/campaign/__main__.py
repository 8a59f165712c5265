"""Kill the project's commands and damage their files; count what was lost, or wrong in silence."""

from __future__ import annotations

from typing import Annotated

import typer

from cse.commands.cli import command, print_json


def main(
    kills: Annotated[int, typer.Option(min=1, help="Of each command, before drawn changes of a file.")] = 1,
    damages: Annotated[int, typer.Option(min=1, help="Of each kind of output: a byte of a drawn file.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Draws what is tried.")] = 42,
) -> None:
    """Disturb train, pretrain, build_index, encode and evaluate on tiny models: the outcomes by command and output.

    Example: python -m tests.campaign --kills 20 --damages 20
    """
    import os
    import tempfile
    from pathlib import Path

    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    from tests.campaign.disturbances import campaign

    with tempfile.TemporaryDirectory() as folder:
        outcomes = campaign(Path(folder), kills, damages, seed)
    print_json(outcomes)
    failures = [f"{name}: {what}" for name, tried in outcomes.items() for what in tried if what.startswith("failed")]
    if failures:
        raise ValueError("; ".join(failures))


app = command(main)

if __name__ == "__main__":
    app()
