"""Train and evaluate the rows of a published table, and compare with the published scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cse.commands import cli
from cse.errors import command_line

if TYPE_CHECKING:
    from cse.evaluation.reproduction import Plan
    from cse.evaluation.results import PublishedRow


def main(
    paper: str | None = typer.Argument(None, help="promptbert, dcpcse, conpvp, or published (checkpoints on the hub)."),
    table: str | None = typer.Argument(None, help="A table's number, figure-N, or sts for published; see --list."),
    data: Path | None = cli.option("Folder that contains sts, transfer and clustering."),
    output: Path | None = cli.option("Folder for checkpoints, results, figures and the ledger."),
    train_data: str | None = cli.option("Sentences to train unsupervised rows on."),
    triplets: str | None = cli.option("Triplets to train supervised rows on: premise, entailed, contradicted."),
    backbone: str | None = cli.option("Instead of each row's own: bundled, a folder or a hub id."),
    seeds: list[int] | None = cli.seed_option("Training seed; repeatable; default 42.", "--seed"),
    train_options: str = cli.option("More options of train, in one string.", default=""),
    sentences: Path | None = cli.option("Text for PromptBERT's anisotropy (paper: Wikipedia); default STS-B test."),
    only: str | None = cli.option("Only rows whose name contains this."),
    listed: bool = cli.flag("List every table and figure with its needs.", "--list"),
    dry_run: bool = cli.flag("Print the commands and run nothing."),
    json_output: bool = cli.flag("Print JSON: the rows; of --dry-run their commands, of a listing its lines."),
) -> None:
    """Reproduce a table or figure: per row the published score, the mean and deviation obtained, the difference.

    Finished steps are not repeated, so an interrupted run can be continued.

    Example: cse reproduce promptbert 5 --data DATA --train-data wiki.txt --output runs/reproduce
    """
    from cse.evaluation.reproduction import (
        LIKELIEST_WORDS,
        LISTINGS,
        WORD_SENTENCES,
        Plan,
        check_known,
        likeliest_words,
        markdown,
        reproduce,
        state,
        tables,
    )
    from cse.evaluation.results import BASE, PAPERS

    if listed:
        lines = [f"{name:<11} {number:<10} {state(name, number)}" for name in PAPERS for number in tables(name)]
        cli.print_json(lines) if json_output else typer.echo("\n".join(lines))
        return
    if paper is None or table is None:
        raise typer.BadParameter("give PAPER and TABLE, or --list")
    check_known(paper, table)
    if (paper, table) in LISTINGS or (paper, table) == LIKELIEST_WORDS:
        _check_unused({
            "data": data, "output": output, "train-data": train_data, "triplets": triplets, "seed": seeds, "only": only,
            "train-options": train_options, "sentences": sentences,
            "backbone": backbone if (paper, table) in LISTINGS else None,
        })  # fmt: skip
        if (paper, table) in LISTINGS:
            lines = LISTINGS[paper, table]()
        elif dry_run:
            words = ("tokens", "--model", backbone or BASE, "--pooling", "prompt")
            lines = [command_line(*words, text, *flag) for text in WORD_SENTENCES for flag in (["--no-denoise"], [])]
        else:
            lines = likeliest_words(backbone or BASE)
        cli.print_json(lines) if json_output else typer.echo("\n".join(lines))
        return
    if data is None or output is None:
        raise typer.BadParameter("give --data and --output; only tables of settings and words do without")
    runs = tuple(dict.fromkeys(seeds or (42,)))
    plan = Plan(data, output, train_data, triplets, backbone, runs, train_options, sentences)
    chosen = _rows(paper, table, only, plan)
    if dry_run:
        rows = [
            {"row": row.name, "commands": [command_line(*called) for called in plan.commands(row)]} for row in chosen
        ]
        commands = "\n".join(line for row in rows for line in row["commands"])
        cli.print_json(rows) if json_output else typer.echo(commands)
        return
    entries = reproduce(chosen, plan, cli.log)
    cli.print_json([entry.to_json() for entry in entries]) if json_output else typer.echo("\n".join(markdown(entries)))


def _check_unused(options: Mapping[str, object]) -> None:
    """Raise a usage error for the first option that was given, as a table of settings or words has none of them."""
    if name := next((name for name, value in options.items() if value), None):
        raise typer.BadParameter(f"--{name}: nothing is run for this table; leave it out")


def _rows(paper: str, table: str, only: str | None, plan: Plan) -> list[PublishedRow]:
    """The rows of a table with `only` in their names, for which the plan has text."""
    from cse.evaluation.reproduction import rows

    chosen = [row for row in rows(paper, table) if only is None or only.lower() in row.name.lower()]
    if not chosen:
        raise ValueError(f"{paper} {table} has no row with {only!r} in its name")
    if missing := [row.name for row in chosen if row.method and not row.copied and not plan.source(row)]:
        raise ValueError(f"{', '.join(missing)}: trained rows need --train-data, supervised ones --triplets")
    if not plan.tokenised.is_dir():
        cli.log(f"no {plan.tokenised}: STS is scored on raw text; the papers use SentEval's tokenised text")
    return chosen


app = cli.command(main)
