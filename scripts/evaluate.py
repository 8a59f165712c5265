"""Score models on evaluation tasks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scripts.cli import check_choice, command, log, print_json

TASKS = ("sts",)


def main(
    task: Annotated[str, typer.Argument(help="sts: the seven tasks, Spearman x 100, subsets concatenated.")],
    model: Annotated[list[str], typer.Option(help="A model; repeat for several.")],
    data: Annotated[Path, typer.Option(help="Folder with STS12 … STS16, STSB and SICK.")],
    pooling: Annotated[
        str | None, typer.Option(help="mean, cls, first-last, static or prompt, for a backbone.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 128,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score models on the seven STS tasks of the papers.

    Example: python -m scripts.evaluate sts --model promptbert --model simcse --data STS_FOLDER
    """
    import cse
    from cse.evaluation.sts import evaluate

    check_choice("task", task, TASKS)
    results: dict[str, dict[str, float]] = {}
    for name in model:
        encoder = cse.load(name, pooling)
        log(f"{encoder.name} ({encoder.fingerprint})")
        results[name if encoder.name in results else encoder.name] = evaluate(
            partial(encoder.encode, batch_size=batch_size), data, log
        )
    if json_output:
        print_json(results)
        return
    width = max(map(len, results))
    typer.echo(" " * width + "".join(f"{column:>9}" for column in next(iter(results.values()))))
    for name, scores in results.items():
        typer.echo(f"{name:<{width}}" + "".join(f"{score:9.2f}" for score in scores.values()))


app = command(main)

if __name__ == "__main__":
    app()
