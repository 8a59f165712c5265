"""Kill the project's commands, damage their files, fill the disk; count what was lost or wrong in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cse.commands.cli import command, log, print_json


def main(
    quick: Annotated[bool, typer.Option("--quick", help="51 cases instead of 1,760.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Draws what is tried.")] = 42,
    processes: Annotated[int | None, typer.Option(min=1, help="At once; as many as there are cores.")] = None,
    json_output: Annotated[Path | None, typer.Option("--json", help="File for seeds, counts and outcomes.")] = None,
) -> None:
    """Disturb train, pretrain, build_index, encode and evaluate, on tiny models, in every way that a machine may.

    Example: python -m tests.campaign --quick --json campaign.json
    """
    import os

    from cse.files.writing import write_json
    from tests.campaign.loop import QUICK, Plan, campaign

    found = campaign(replace(QUICK if quick else Plan(), seed=seed, processes=processes or os.cpu_count() or 1))
    for failure in found["failures"]:
        log(f"{failure['part']}: {failure['what']}: {failure['reason']}")
    if json_output:
        write_json(json_output, found)
    print_json({name: {"tried": part["tried"], "failed": part["failed"]} for name, part in found["parts"].items()})
    if found["failures"]:
        raise ValueError(f"{len(found['failures'])} cases failed")


app = command(main)

if __name__ == "__main__":
    app()
