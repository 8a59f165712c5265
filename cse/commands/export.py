"""Export a model or an index to a folder that other tools open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse.commands.cli import Family, Pooling, choices, command, completing, log, option, print_json
from cse.models.names import BUNDLED_NAMES
from index.manifest import INDEX_FORMS

if TYPE_CHECKING:
    from index.faiss_index import VectorIndex

MODEL_FORMS = ("sentence-transformers", "peft", "onnx")
FORMS = (*MODEL_FORMS, *INDEX_FORMS)
MAX_MAPPED_SENTENCES = 5_000  # t-SNE of more takes minutes


def main(
    model: Annotated[
        str,
        typer.Argument(
            help="A model; an index folder for the last three forms of --to.", autocompletion=completing(BUNDLED_NAMES)
        ),
    ],
    to: Annotated[str, option(f"{', '.join(FORMS)}.", **choices("form", FORMS))],
    output: Annotated[Path, option("Folder for the export.")],
    pooling: Pooling = None,
    family: Family = None,
    overwrite: Annotated[bool, option("Replace an export at --output.", "--overwrite")] = False,
    json_output: Annotated[bool, option("Print model, form, output and its files as JSON.", "--json")] = False,
) -> None:
    """Export a model for sentence-transformers, peft or ONNX, an index for datasets, Parquet or the projector.

    Example: cse export promptbert --to sentence-transformers --output exports/promptbert

    Example: cse export indexes/mine --to parquet --output exports/atlas
    """
    if to in INDEX_FORMS:
        if pooling or family:
            raise ValueError(f"an index records its model; leave out `{'pooling' if pooling else 'family'}`")
        _export_index(Path(model), to, output, overwrite)
    else:
        if (Path(model) / "manifest.json").is_file():
            raise ValueError(f"{model} is an index; give `to` as one of {', '.join(INDEX_FORMS)}")
        from cse.models.export import check_output, export_model
        from cse.models.loading import open_by_torch
        from cse.models.names import resolve

        check_output(output, overwrite=overwrite)
        export_model(open_by_torch(resolve(model, pooling, family), "cpu"), to, output, overwrite=overwrite)
    log(f"{output}: {model} for {to}; README.md there shows how it is opened")
    if json_output:
        files = sorted(path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file())
        print_json({"model": model, "form": to, "output": str(output), "files": files})


def _export_index(folder: Path, to: str, output: Path, overwrite: bool) -> None:
    from cse.files.writing import write_folder
    from cse.models.export import EXPORT, check_output
    from index import VectorIndex
    from index.export import fill

    check_output(output, overwrite=overwrite)
    index = VectorIndex.load(folder, device="cpu")
    points = _map(index) if to == "parquet" else None
    write_folder(output, lambda target: fill(index, to, target, points), EXPORT)


def _map(index: VectorIndex) -> dict[str, list[float]] | None:
    """The t-SNE coordinates x and y of an index's sentences; None for more than `MAX_MAPPED_SENTENCES`."""
    from cse.analysis.maps import project
    from index.export import contents

    if len(index) > MAX_MAPPED_SENTENCES:
        log(f"no x and y: a map of more than {MAX_MAPPED_SENTENCES:,} sentences takes too long")
        return None
    *_, maps = project({"": contents(index).vectors}, seed=42)
    return {name: maps[""][:, column].tolist() for column, name in enumerate("xy")}


app = command(main)
