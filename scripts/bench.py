"""Measure how fast the project is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scripts.cli import check_choice, command, log, print_json

SUBJECTS = ("app",)


def main(
    subject: Annotated[str, typer.Argument(help=f"{', '.join(SUBJECTS)}.")],
    visitors: Annotated[int, typer.Option(min=1, max=64, help="Visitors at once.")] = 16,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of each measurement.")] = 20.0,
    json_output: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Start the app and measure it: its first page, and comparisons of four models by one visitor, many, beside a map.

    Example: python -m scripts.bench app --visitors 16
    """
    check_choice("subject", subject, SUBJECTS)
    from dataclasses import asdict

    from cse.benchmark.app_load import measure, started_app

    with started_app(Path(__file__).resolve().parents[1]) as (url, page):
        log(f"first page after {page:.1f} s")
        loads = measure(url, visitors, seconds)
    if json_output:
        print_json({"first_page": round(page, 2), "loads": [asdict(load) for load in loads]})
        return
    typer.echo(f"first page {page:.1f} s")
    for load in loads:
        figures = f"median {load.median:.3f} s, p95 {load.p95:.3f} s, most {load.worst:.3f} s"
        typer.echo(f"{load.what}: {figures} ({load.count} comparisons)")


app = command(main)

if __name__ == "__main__":
    app()
