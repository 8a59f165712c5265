"""Train a method on a backbone and your own text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse.methods import METHODS, SUPERVISED
from scripts.cli import PRECISIONS, STORAGES, check_choice, command, log, main_process, print_json, progress_options

if TYPE_CHECKING:
    from cse.encoder import Encoder
    from cse.training import TrainingSummary
    from cse.training_run import Run


def main(
    method: Annotated[str, typer.Argument(help=f"{', '.join(METHODS)}.")],
    data: Annotated[str, typer.Option(help="Text file (.gz, .xz too), .csv .tsv .jsonl .parquet, or a hub id.")],
    output: Annotated[Path, typer.Option(help="The checkpoint folder to write.")],
    backbone: Annotated[str, typer.Option(help="Folder or hub id of a masked language model.")] = "bundled",
    dev: Annotated[
        Path | None, typer.Option(help="Scored pairs (score, sentence, sentence; tab-separated) to select on.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column of a table that holds the sentences.")] = None,
    supervised: Annotated[bool, typer.Option("--supervised", help="Premise, entailed, contradicted columns.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Use the first N examples.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1)] = None,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Stop after N batches, drawn from all the data.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=2)] = None,
    learning_rate: Annotated[float | None, typer.Option(min=0.0)] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens kept of a sentence, its specials among them where no prompt stands around it."
        ),
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=1e-4)] = None,
    eval_every: Annotated[int | None, typer.Option(min=1, help="Steps between evaluations and saved states.")] = None,
    dropout: Annotated[
        float | None, typer.Option(min=0.0, max=0.9, help="Rate of every dropout, instead of the backbone's own.")
    ] = None,
    prefix: Annotated[int | None, typer.Option(min=1, help="Prompt length of dcpcse.")] = None,
    mlm_weight: Annotated[float | None, typer.Option(min=0.0, help="Start of the decaying masked-LM term.")] = None,
    hinge: Annotated[
        float | None,
        typer.Option(min=0.0, help="Weight of PromCSE's energy-based hinge (10 there); supervised dcpcse."),
    ] = None,
    freeze_embeddings: Annotated[bool | None, typer.Option(help="Leave the word embeddings as they are.")] = None,
    storage: Annotated[
        str, typer.Option(help="float32, float16, or int8 differences from the backbone: a quarter of the size.")
    ] = "float32",
    precision: Annotated[str, typer.Option(help="auto, no or bf16.")] = "auto",
    seed: Annotated[int, typer.Option(min=0)] = 42,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a killed run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing checkpoint.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show tokens, parameter counts and steps; train nothing.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Train METHOD on your sentences; options left out take the published preset of the backbone.

    Example: python -m scripts.train promptbert --data sentences.txt --dev sts-dev.tsv --output runs/mine
    """
    from dataclasses import asdict

    from cse.training_output import check_output

    _check_choices(method, supervised, prefix, precision, storage)
    if not dry_run and main_process():
        check_output(output, resume=resume, overwrite=overwrite)  # before anything is read
    settings = {
        "epochs": epochs, "max_steps": max_steps, "batch_size": batch_size, "learning_rate": learning_rate,
        "max_length": max_length, "temperature": temperature, "eval_every": eval_every, "dropout": dropout,
        "freeze_embeddings": freeze_embeddings, "seed": seed, "prefix": prefix, "mlm_weight": mlm_weight,
        "hinge": hinge,
    }  # fmt: skip

    from cse.storage import Storage
    from cse.training_plan import plan
    from cse.training_run import TrainRequest, prepare

    encoder, run = prepare(TrainRequest(method, data, backbone, supervised, dev, column, limit, settings), log)
    if dry_run:
        shown = asdict(plan(encoder, run))
    else:
        options = {"resume": resume, "overwrite": overwrite, "storage": Storage(storage), "precision": precision}
        shown = dict(_train(encoder, run, output, **options))
    if main_process():
        print_json(shown) if json_output else _show(shown)


def _check_choices(method: str, supervised: bool, prefix: int | None, precision: str, storage: str) -> None:
    check_choice("method", method, METHODS)
    check_choice("precision", precision, PRECISIONS)
    check_choice("storage", storage, STORAGES)
    if supervised and method not in SUPERVISED:
        raise typer.BadParameter(f"{method} has no supervised form; choose from {', '.join(SUPERVISED)}")
    if prefix is not None and not METHODS[method].prefix:
        raise typer.BadParameter(f"{method} has no prefix; --prefix is for dcpcse")


def _train(encoder: Encoder, run: Run, output: Path, **options: Any) -> TrainingSummary:
    from tqdm import tqdm

    from cse.training import LogEntry, train

    if not run.dev:
        log("no --dev: trains to the end and selects nothing")
    with tqdm(total=run.steps, unit="step", desc=encoder.name, **progress_options()) as bar:

        def report(entry: LogEntry) -> None:
            if "note" in entry:
                bar.clear()
                log(entry["note"])
                return
            shown = {"loss": f"{entry['loss']:.4f}", "sentences/s": entry["sentences_per_second"]}
            bar.set_postfix({**shown, "best_dev": entry["best"]}, refresh=False)
            bar.update(entry["step"] - bar.n)

        summary = train(encoder, run, output, report=report, **options)
    if run.dev and summary["best"] <= summary["start"]:
        log("no evaluation beat the untrained start: lower --learning-rate or give more text")
    return summary


def _show(value: dict[str, Any]) -> None:
    for key, item in value.items():
        if isinstance(item, list):
            for line in item:
                typer.echo(f"  {line['text']}\n    {line['tokens']}")
        else:
            typer.echo(f"{key}: {item:,}" if isinstance(item, int) else f"{key}: {item}")


app = command(main)

if __name__ == "__main__":
    app()
