"""Pretrain a small BERT with masked language modelling on text files, or continue from an existing model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from cse.commands import cli

HEAD_SIZE = 64  # numbers of an attention head
START, SHAPE, LEARNING, RUN = "Start", "Shape", "Learning", "Run"


def main(
    corpus: list[Path] = typer.Argument(..., help="Text files, a sentence a line, or tables (packed too), or hub ids."),
    output: Path = cli.option("Folder for the tokenised text, the state and the model.", default=..., panel=RUN),
    init: str | None = cli.option("Continue from a model folder, a hub id or bundled.", panel=START),
    vocabulary: int | None = cli.option("Word pieces of a new model, default 12,000.", panel=START, min=30),
    column: str | None = cli.option(cli.COLUMN, panel=START),
    read: list[str] | None = cli.option(cli.READ, metavar="KEY=VALUE", panel=START),
    limit: int | None = cli.option("Use the first N lines or rows of each.", panel=START, min=1),
    layers: int = cli.option(None, default=4, panel=SHAPE, min=1),
    hidden: int = cli.option(
        "A multiple of 64, one head per 64, or less with one head.", default=256, panel=SHAPE, min=16
    ),
    tokens: int = cli.option("Tokens seen in the whole run.", default=30_000_000, panel=LEARNING, min=1),
    batch_tokens: int = cli.option(None, default=4096, panel=LEARNING, min=16),
    accumulate: int = cli.option("Micro-batches per step.", default=1, panel=LEARNING, min=1),
    learning_rate: float = cli.option(None, default=1e-3, panel=LEARNING, min=1e-7),
    frozen_layers: int = cli.option(
        "With --init: freeze the embeddings and so many layers.", default=0, panel=START, min=0
    ),
    blend: str | None = cli.option("With --init: an encoder of the same shape, averaged with it first.", panel=START),
    blend_share: str = cli.option(
        "Weight of --blend in that average; or one for the embeddings and one for each layer, by commas.",
        default="0.5",
        panel=START,
        metavar="SHARE[,SHARE...]",
    ),
    start_share: float = cli.option(
        "With --init: its weight in the average that is saved.", default=0.0, panel=START, min=0, max=1
    ),
    untied: bool = cli.flag("Do not tie the decoder to the embeddings (PromptBERT's Table 12).", panel=SHAPE),
    eval_every: int = cli.option("Steps between evaluations and saved states.", default=500, panel=RUN, min=1),
    precision: str = cli.option(
        "auto, no or bf16.", default="auto", **cli.choices("precision", cli.PRECISIONS), panel=LEARNING
    ),
    seed: int = cli.seed_option(None, default=42, panel=LEARNING),
    resume: bool = cli.flag("Continue from the last saved state.", panel=RUN),
    overwrite: bool = cli.flag("Replace an earlier run.", panel=RUN),
    json_output: bool = cli.flag("Print the recipe and curve as JSON.", panel=RUN),
) -> None:
    """Pretrain a small uncased BERT on text files with masked language modelling.

    Example: cse pretrain corpus.txt.xz --output runs/backbone --tokens 30000000
    """
    from cse.corpus.formats import Options
    from cse.training.pretraining import pretrain
    from cse.training.pretraining_data import PretrainConfig, PretrainRequest

    if hidden > HEAD_SIZE and hidden % HEAD_SIZE:
        raise typer.BadParameter(f"--hidden is {hidden}; give a multiple of {HEAD_SIZE}, or less than {HEAD_SIZE}")
    config = PretrainConfig(
        vocabulary=vocabulary, layers=layers, hidden=hidden, heads=max(1, hidden // HEAD_SIZE), tokens=tokens,
        batch_tokens=batch_tokens, accumulate=accumulate, learning_rate=learning_rate, frozen_layers=frozen_layers,
        blend_share=_shares(blend_share), start_share=start_share, untied=untied, seed=seed,
    )  # fmt: skip
    request = PretrainRequest(
        corpus, output, config,
        init=init, blend=blend, resume=resume, overwrite=overwrite, eval_every=eval_every, precision=precision,
        column=column, options=Options.of(read or []), limit=limit,
    )  # fmt: skip

    def report(entry: dict[str, Any]) -> None:
        scores = "  ".join(f"{name} {value}" for name, value in entry.items() if name != "step")
        cli.log(entry["note"] if "note" in entry else f"{entry['step']:>7}/{config.steps} steps  {scores}")

    record = pretrain(request, report)
    if json_output:
        cli.print_json(record)
    else:
        last = record.get("averaged", record["curve"][-1])
        typer.echo(f"{output / 'model'}: held-out loss {last['held_out_loss']}, accuracy {last['held_out_accuracy']}")


def _shares(text: str) -> float | tuple[float, ...]:
    try:
        shares = tuple(map(float, text.split(",")))
    except ValueError:
        raise typer.BadParameter(f"--blend-share is {text!r}; give a number, or numbers separated by commas") from None
    return shares if len(shares) > 1 else shares[0]


app = cli.command(main)
