"""Train a method on a backbone and your own text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scripts.cli import PRECISIONS, check_choice, command, log, main_process, print_json, progress_options

if TYPE_CHECKING:
    from cse.encoder import Encoder
    from cse.training import Run

SHOWN_LINES = 3


def main(
    method: Annotated[
        str, typer.Argument(help="simcse, promptbert, dcpcse, conpvp, optiprompt, scpcse or a ConPVP ablation.")
    ],
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
    max_length: Annotated[int | None, typer.Option(min=1, help="Tokens kept of a sentence.")] = None,
    temperature: Annotated[float | None, typer.Option(min=1e-4)] = None,
    eval_every: Annotated[int | None, typer.Option(min=1, help="Steps between evaluations and saved states.")] = None,
    dropout: Annotated[
        float | None, typer.Option(min=0.0, max=0.9, help="Rate of every dropout, instead of the backbone's own.")
    ] = None,
    prefix: Annotated[int | None, typer.Option(min=1, help="Prompt length of dcpcse.")] = None,
    mlm_weight: Annotated[float | None, typer.Option(min=0.0, help="Start of the decaying masked-LM term.")] = None,
    freeze_embeddings: Annotated[bool | None, typer.Option(help="Leave the word embeddings as they are.")] = None,
    half: Annotated[bool, typer.Option("--half", help="Store float16.")] = False,
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
    from cse.training import check_output, train

    _check_choices(method, supervised, precision)
    if not dry_run and main_process():
        check_output(output, resume=resume, overwrite=overwrite)  # before anything is read
    changes = {
        "epochs": epochs, "max_steps": max_steps, "batch_size": batch_size, "learning_rate": learning_rate,
        "max_length": max_length, "temperature": temperature, "eval_every": eval_every, "dropout": dropout,
        "freeze_embeddings": freeze_embeddings, "seed": seed,
    }  # fmt: skip
    encoder, run = _prepare(
        method, backbone, supervised,
        config_changes=changes, method_changes={"prefix": prefix, "mlm_weight": mlm_weight},
        source=(data, column, limit), dev=dev,
    )  # fmt: skip
    if dry_run:
        shown = _plan(encoder, run)
    else:
        if not run.dev:
            log("no --dev: trains to the end and selects nothing")
        options = {"resume": resume, "overwrite": overwrite, "half": half, "precision": precision}
        shown = _with_progress(train, encoder, run, output, **options)
        if run.dev and shown["best"] <= shown["start"]:
            log("no evaluation beat the untrained start: lower --learning-rate or give more text")
    if main_process():
        print_json(shown) if json_output else _show(shown)


def _check_choices(method: str, supervised: bool, precision: str) -> None:
    from cse.methods import METHODS, SUPERVISED

    check_choice("method", method, METHODS)
    check_choice("precision", precision, PRECISIONS)
    if supervised and method not in SUPERVISED:
        raise typer.BadParameter(f"{method} has no supervised form; choose from {', '.join(SUPERVISED)}")


def _prepare(
    method: str, backbone: str, supervised: bool, *, config_changes: dict[str, Any], method_changes: dict[str, Any],
    source: tuple[str, str | None, int | None], dev: Path | None,
) -> tuple[Encoder, Run]:  # fmt: skip
    import torch

    from cse.backbone import load_backbone
    from cse.data import load_examples, scored_pairs
    from cse.encoder import Encoder
    from cse.model_names import lasting_name, location
    from cse.presets import backbone_key, preset
    from cse.training import Run

    data, column, limit = source
    examples = load_examples(data, column, supervised, limit)
    pairs = scored_pairs(dev) if dev else None
    reference = lasting_name(backbone)
    model, tokenizer = load_backbone(location(reference))
    value, config = preset(method, backbone_key(model.config.model_type, model.config.hidden_size), supervised)
    if method_changes["prefix"] and not value.prefix:
        raise typer.BadParameter(f"{method} has no prefix; --prefix is for dcpcse")
    value = replace(value, **{key: change for key, change in method_changes.items() if change is not None})
    config = replace(config, **{key: change for key, change in config_changes.items() if change is not None})
    if len(examples) < 2:
        raise ValueError(f"{data}: one example has nothing to be told from; give at least two")
    if len(examples) < config.batch_size:
        config = replace(config, batch_size=max(2, len(examples)))
        log(f"only {len(examples)} examples: batch size {config.batch_size}")
    torch.manual_seed(config.seed)  # the new head, prefix and slots
    encoder = Encoder(model, tokenizer, value, name=method, backbone=reference)
    encoder.select_learned(config.freeze_embeddings)
    return encoder, Run(config, examples, pairs, data)


def _plan(encoder: Encoder, run: Run) -> dict[str, Any]:
    from cse.training import step_inputs, view_texts

    config = replace(run.config, batch_size=min(SHOWN_LINES, len(run.examples)))
    batch = run.examples[list(range(config.batch_size))]
    contents, templates = step_inputs(encoder, batch, config, 0)
    tokens = encoder.tokenizer.convert_ids_to_tokens
    lines = [
        {"text": text, "tokens": " ".join(tokens(list(template.row(ids).ids)))}
        for view in zip(view_texts(encoder, batch), contents, templates, strict=True)
        for text, ids, template in zip(*view, strict=True)
    ]
    learned = sum(tensor.numel() for tensor in encoder.learned(training=True).values())
    return {
        "method": encoder.method.name, "views": len(contents), "lines": lines, "examples": len(run.examples),
        "batch_size": run.config.batch_size, "learning_rate": run.config.learning_rate, "steps": run.steps,
        "parameters_total": sum(tensor.numel() for tensor in encoder.parameters()),
        "parameters_learned": learned,
        "parameters_stored": sum(tensor.numel() for tensor in encoder.learned().values()),
    }  # fmt: skip


def _with_progress(train: Any, encoder: Encoder, run: Run, output: Path, **options: Any) -> dict[str, Any]:
    from tqdm import tqdm

    with tqdm(total=run.steps, unit="step", desc=encoder.name, **progress_options()) as bar:

        def report(entry: dict[str, Any]) -> None:
            if "note" in entry:
                bar.clear()
                log(entry["note"])
                return
            values = {
                "loss": f"{entry['loss']:.4f}",
                "sentences/s": entry["sentences_per_second"],
                "best_dev": entry["best"],
            }
            bar.set_postfix(values, refresh=False)
            bar.update(entry["step"] - bar.n)

        return train(encoder, run, output, report=report, **options)


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
