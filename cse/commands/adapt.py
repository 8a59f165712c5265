"""Adapt a model to your own texts."""

from __future__ import annotations

from pathlib import Path

import typer

from cse.commands import cli

PURPOSES = ("groups", "search", "both")  # as `cse.adaptation.choice` has them


def main(
    file: str = typer.Argument(..., help=cli.SOURCE),
    output: Path = cli.option("Folder for the model and the report.", default=...),
    backbone: str = cli.model_option(
        "Start: bundled, or a folder or hub id of a backbone or sentence model.", default="bundled"
    ),
    pooling: cli.Pooling = None,
    column: cli.Column = None,
    label: str | None = cli.option("Column of labels, by which to group; default: none.", "--label", "--labels"),
    titles: str | None = cli.option("Column of titles by which texts are to be found; default: a few of their words."),
    purpose: str = cli.option(
        "What the model is for: groups, search or both.", "--for", default="both", **cli.choices("purpose", PURPOSES)
    ),
    read: cli.Read = None,
    minutes: float = cli.option("Most minutes, above 0; what does not fit is left out.", default=30),
    seed: int = cli.seed_option("Of the held-out texts and of training.", default=42),
    resume: bool = cli.flag("Continue a killed run."),
    overwrite: bool = cli.flag("Replace an adapted model at --output."),
    json_output: bool = cli.flag("Print the report as JSON."),
) -> None:
    """Look at your texts, try a projection and training on them, and write the model that suits them, with a report.

    A model is better at grouping if more of a text's nearest texts have its label, at finding if a text is found more
    often by a short form of it; both on texts that are held out. By default the new model has to be better at one and
    lose no more than a point at the other, --for says otherwise. If none is, the report says to keep your model.
    A first answer comes before training, and Ctrl-C keeps it.

    Example: cse adapt sentences.txt --output adapted

    Example: cse adapt table.csv --column text --label topic --output adapted
    """
    from cse.adaptation.adapt import AdaptRequest, adapt
    from cse.adaptation.choice import START
    from cse.adaptation.report import lines

    request = AdaptRequest(file, backbone, pooling, column, label, minutes, seed, tuple(read or ()), purpose, titles)
    report = adapt(request, output, resume=resume, overwrite=overwrite, note=cli.log)
    if json_output:
        cli.print_json(report)
        return
    for line in lines(report):
        typer.echo(line)
    typer.echo(f"report: {output / 'report.html'}" + ("; no model was written" if report["decision"] == START else ""))


app = cli.command(main)
