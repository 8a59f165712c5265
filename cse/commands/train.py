"""Train a method on a backbone and your own text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cse.commands import cli
from cse.encoder.processes import together
from cse.errors import command_line
from cse.methods.catalogue import METHODS
from cse.methods.presets import BUNDLED_ROW, preset
from cse.methods.settings import METHOD_SETTINGS, SETTINGS
from cse.models.names import BUNDLED_NAMES
from cse.training.tracking import TRACKERS, main_process

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.training.run import Run

SAMPLED_EXAMPLES = 1_000  # examples whose domain is looked at
DATA, METHOD, RUN = "Data", "Method", "Run"
PUBLISHED = "Settings, by default those published for the backbone"


def setting(name: str) -> Any:
    """The option of a setting, with the help, bounds and choices that `cse/methods/settings.py` declares."""
    declared = SETTINGS[name]
    panel = METHOD if name in METHOD_SETTINGS else PUBLISHED
    least, most = (None if math.isinf(bound) else bound for bound in (declared.least, declared.most))
    chosen = {"metavar": "|".join(declared.choices), **cli.choices(name, declared.choices)} if declared.choices else {}
    return cli.option(declared.help, panel=panel, min=least, max=most, **chosen)


def main(
    data: str = cli.option(cli.SOURCE, default=..., panel=DATA),
    output: Path = cli.option("The checkpoint folder to write.", default=..., panel=RUN),
    method: str | None = typer.Argument(
        None, help=f"{', '.join(METHODS)}; default: the recipe's.", **cli.choices("method", METHODS)
    ),
    recipe: str | None = cli.option(
        "Repeat the settings of a JSON or YAML file, a checkpoint folder or a bundled name; options override them.",
        metavar="FILE_OR_CHECKPOINT",
        autocompletion=cli.completing(BUNDLED_NAMES),
        panel=METHOD,
    ),
    backbone: str | None = cli.option("A masked language model; default: the recipe's or bundled.", panel=METHOD),
    dev: str = cli.option(
        "A file of scored pairs (score and two sentences) to select on; or auto: hold out texts, end a run that "
        "collapses and keep the best of a score without labels, which is no proof of a better model; or none.",
        default="none",
        metavar="FILE|auto|none",
        panel=DATA,
    ),
    column: str | None = cli.option(
        f"{cli.COLUMN} With --supervised: ANCHOR,POSITIVE[,NEGATIVE or LABEL].", metavar="NAME", panel=DATA
    ),
    read: list[str] | None = cli.option(cli.READ, metavar="KEY=VALUE", panel=DATA),
    supervised: bool = cli.flag("Data has pairs, with hard negatives or labels if any.", panel=METHOD),
    limit: int | None = cli.option("Use the first N examples; default: all.", min=1, panel=DATA),
    storage: str | None = cli.option(
        "float32 (default), float16, or differences from the backbone: delta (float16) or int8 (smallest).",
        **cli.choices("storage", cli.STORAGES),
        panel=RUN,
    ),
    precision: str | None = cli.option(
        "auto (default), no or bf16.", **cli.choices("precision", cli.PRECISIONS), panel=RUN
    ),
    report_to: list[str] | None = cli.option(
        "Send scores to tensorboard, wandb or trackio; repeatable.",
        autocompletion=cli.completing(TRACKERS),
        metavar="NAME",
        panel=RUN,
    ),
    resume: bool = cli.flag("Continue a killed run.", panel=RUN),
    overwrite: bool = cli.flag("Replace an existing checkpoint.", panel=RUN),
    dry_run: bool = cli.flag("Show tokens, settings, parameter counts and steps; train nothing.", panel=RUN),
    push_to_hub: str | None = cli.option(
        "Upload the checkpoint to the hub as push does.", metavar="OWNER/NAME", panel=RUN
    ),
    json_output: bool = cli.flag("Print the summary as JSON.", panel=RUN),
    batch_size: int | None = setting("batch_size"),
    learning_rate: float | None = setting("learning_rate"),
    epochs: int | None = setting("epochs"),
    max_steps: int | None = setting("max_steps"),
    max_length: int | None = setting("max_length"),
    temperature: float | None = setting("temperature"),
    eval_every: int | None = setting("eval_every"),
    dropout: float | None = setting("dropout"),
    freeze_embeddings: bool | None = setting("freeze_embeddings"),
    start_share: float | None = setting("start_share"),
    hinge: float | None = setting("hinge"),
    chunk: int | None = setting("chunk"),
    compile: str | None = setting("compile"),
    seed: int | None = setting("seed"),
    prefix: int | None = setting("prefix"),
    mlm_weight: float | None = setting("mlm_weight"),
    pooling: str | None = setting("pooling"),
    head: bool | None = setting("head"),
) -> None:
    """Train METHOD on your sentences. Options default to the recipe, or else to the published preset of the backbone.

    Example: cse train promptbert --data sentences.txt --dev sts-dev.tsv --output runs/mine

    Example: cse train --recipe runs/mine --seed 43 --data sentences.txt --output runs/second
    """
    settings = {name: value for name, value in locals().items() if name in SETTINGS}
    from cse.training.api import JobOptions, assemble, run_job

    with _usage_errors():
        if method:
            form, _ = preset(method, BUNDLED_ROW, supervised)
            form.changed(**{name: settings[name] for name in METHOD_SETTINGS})
    for tracker in report_to or ():
        cli.check_choice("tracker", tracker, TRACKERS)
    options = JobOptions(output, resume, overwrite, storage, precision, report_to or ())
    with together():
        options.check()  # fail before anything is read
        if push_to_hub and main_process() and not dry_run:
            from cse.models.push import check_access, check_name

            check_name(push_to_hub)
            check_access()
        from cse.corpus.formats import Options
        from cse.models.names import BACKBONE
        from cse.training.loop import plan
        from cse.training.recipe import chosen_recipe, read_recipe
        from cse.training.run import TrainRequest

        source = None if recipe is None else read_recipe(recipe)
        with _usage_errors():
            repeated = chosen_recipe(method, source)
        request = TrainRequest(
            repeated.name, data, BACKBONE, supervised, None if dev == "none" else dev, column, limit, settings,
            Options.of(read or []),
        )  # fmt: skip
        encoder, run = assemble(request, repeated, backbone, cli.log)
        if main_process() and recipe is None and not (supervised or resume or dry_run):
            _warn_if_narrow(encoder, run, settings)
    if dry_run:
        shown = plan(encoder, run)
    else:
        shown = run_job(encoder, run, options, repeated, note=cli.log).known()
        if push_to_hub and main_process():
            from cse.models.config import CardFacts
            from cse.models.push import Repository, push_checkpoint

            done = push_checkpoint(output, Repository(push_to_hub), CardFacts())
            shown["pushed"] = f"{push_to_hub}@{done.commit}"
    if main_process():
        cli.print_json(shown) if json_output else _show(shown)


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Turn a ValueError about options into a usage error."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(cli.with_flags(str(error), app)) from error


def _warn_if_narrow(encoder: Encoder, run: Run, settings: Mapping[str, Any]) -> None:
    """Print a line if the published rate and temperature meet texts of a narrow domain."""
    import numpy as np

    from cse.adaptation.facts import is_narrow

    if any(settings.get(name) is not None for name in ("learning_rate", "temperature")):
        return
    count = len(run.examples)
    rows = np.random.default_rng(0).permutation(count)[:SAMPLED_EXAMPLES]
    if is_narrow(encoder, run.examples[sorted(rows.tolist())]["0"]):
        cli.log(
            f"these texts are of a narrow domain, and the settings of {encoder.method.name} were published for general "
            f"text: they often make such texts worse; {command_line('adapt')} tries what suits them"
        )


def _show(value: dict[str, Any]) -> None:
    for key, item in value.items():
        if isinstance(item, list):
            for line in item:
                typer.echo(f"  {line['text']}\n    {line['tokens']}")
        elif isinstance(item, dict):
            typer.echo("\n".join([f"{key}:", *(f"  {name}: {value}" for name, value in item.items())]))
        else:
            typer.echo(f"{key}: {item:,}" if isinstance(item, int) else f"{key}: {item}")


app = cli.command(main)

if __name__ == "__main__":
    app()
