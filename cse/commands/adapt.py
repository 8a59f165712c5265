"""Adapt a model to your own texts."""

from __future__ import annotations

from pathlib import Path

import typer

from cse.commands import cli

PURPOSES = ("groups", "search", "both")  # as `cse.adaptation.choice` has them


OF_TEXTS = (  # options that a model is not turned with
    "backbone", "pooling", "column", "label", "titles", "purpose", "read", "minutes", "seed", "resume", "json_output",
)  # fmt: skip


def main(
    context: typer.Context,
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
    dial: float | None = cli.option(
        "In place of texts give an adapted model: write it anew for finding (below 0) or grouping (above), -1 to 1."
    ),
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

    Example: cse adapt adapted --dial -0.25 --output finds-more
    """
    from cse.adaptation.adapt import AdaptRequest, adapt, turn
    from cse.adaptation.choice import START
    from cse.adaptation.report import lines

    if dial is not None:
        cli.refuse(context, "--dial turns a model that is adapted", *OF_TEXTS)
        turn(Path(file), dial, output, overwrite=overwrite)
        cli.log(f"{output}: {file} at dial {dial:g}")
        return
    request = AdaptRequest(file, backbone, pooling, column, label, minutes, seed, tuple(read or ()), purpose, titles)
    report = adapt(request, output, resume=resume, overwrite=overwrite, note=cli.log)
    if json_output:
        cli.print_json(report)
        return
    for line in lines(report):
        typer.echo(line)
    typer.echo(f"report: {output / 'report.html'}" + ("; no model was written" if report["decision"] == START else ""))


app = cli.command(main)
