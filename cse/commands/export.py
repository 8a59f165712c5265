"""Export a model or an index to a folder that other tools open."""

from __future__ import annotations

from pathlib import Path

import typer

from cse.commands import cli
from cse.models.names import BUNDLED_NAMES
from index.manifest import INDEX_FORMS

MODEL_FORMS = ("sentence-transformers", "peft", "onnx")
FORMS = (*MODEL_FORMS, *INDEX_FORMS)
MAX_MAPPED_SENTENCES = 5_000  # t-SNE of more takes minutes


def main(
    model: str = typer.Argument(
        ...,
        help="A model; an index folder for the last three forms of --to.",
        autocompletion=cli.completing(BUNDLED_NAMES),
    ),
    to: str = cli.option(f"{', '.join(FORMS)}.", default=..., **cli.choices("form", FORMS)),
    output: Path = cli.option("Folder for the export.", default=...),
    pooling: cli.Pooling = None,
    family: cli.Family = None,
    overwrite: bool = cli.flag("Replace an export at --output."),
    json_output: bool = cli.flag("Print model, form, output and its files as JSON."),
) -> None:
    """Export a model for sentence-transformers, peft or ONNX, an index for datasets or as Parquet.

    Example: cse export promptbert --to sentence-transformers --output exports/promptbert

    Example: cse export indexes/mine --to parquet --output exports/atlas
    """
    if to in INDEX_FORMS:
        if pooling or family:
            raise ValueError(f"an index records its model; leave out `{'pooling' if pooling else 'family'}`")
        _export_index(model, to, output, overwrite)
    else:
        if (Path(model) / "manifest.json").is_file():
            raise ValueError(f"{model} is an index; give `to` as one of {', '.join(INDEX_FORMS)}")
        from cse.models.export import check_output, export_model
        from cse.models.loading import open_by_torch
        from cse.models.names import resolve

        check_output(output, overwrite=overwrite)
        export_model(open_by_torch(resolve(model, pooling, family), "cpu"), to, output, overwrite=overwrite)
    cli.log(f"{output}: {model} for {to}; README.md there shows how it is opened")
    if json_output:
        files = sorted(path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file())
        cli.print_json({"model": model, "form": to, "output": str(output), "files": files})


def _export_index(name: str, to: str, output: Path, overwrite: bool) -> None:
    """Export an index; a table has the t-SNE coordinates x and y of at most `MAX_MAPPED_SENTENCES` sentences."""
    from cse.files.writing import write_folder
    from cse.models.export import EXPORT, check_output
    from index import VectorIndex
    from index.export import fill
    from index.stores import folder_of

    check_output(output, overwrite=overwrite)
    index, points = VectorIndex.load(folder_of(name)), None
    if to == "parquet" and len(index) > MAX_MAPPED_SENTENCES:
        cli.log(f"no x and y: a map of more than {MAX_MAPPED_SENTENCES:,} sentences takes too long")
    elif to == "parquet":
        from cse.analysis.maps import project

        *_, maps = project({"": index.contents()[1]}, seed=42)
        points = {name: maps[""][:, column].tolist() for column, name in enumerate("xy")}
    write_folder(output, lambda target: fill(index, to, target, points), EXPORT)


app = cli.command(main)
