"""Put the app on a Hugging Face Space, with models and indexes of your own."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cse.commands import cli

if TYPE_CHECKING:
    from cse.models.space import SpaceRequest

HARDWARE = ("zero-gpu", "cpu", "gpu")


def main(
    name: str = typer.Argument(..., metavar="OWNER/NAME", help="The Space; created if it does not exist."),
    hardware: str = cli.option(
        "zero-gpu (free; ZeroGPU's torch, faiss-cpu), cpu (both for the CPU) or gpu (requirements.txt unchanged).",
        default="zero-gpu",
        **cli.choices("hardware", HARDWARE),
    ),
    model: list[str] | None = cli.option("A further column: a model folder, which is uploaded, or a hub id."),
    index: list[str] | None = cli.option("An index folder of build-index to search, which is uploaded."),
    output: Path | None = cli.option("Keep the staged folder here; default with --dry-run: ./NAME."),
    private: bool = cli.flag("Make a new Space private."),
    dry_run: bool = cli.flag("Write the folder and upload nothing."),
    json_output: bool = cli.flag("Print the result as JSON."),
) -> None:
    """Stage the files that a Space needs in a folder and upload it.

    Example: cse deploy me/embeddings --hardware cpu --dry-run --output space

    Example: cse deploy me/embeddings --model runs/mine --index indexes/mine
    """
    from cse.files.writing import write_folder
    from cse.models.push import Repository, check_access, check_name, upload
    from cse.models.space import MACHINES, OWNED, Hardware, SpaceRequest

    check_name(name)
    kept_folder = output or (Path(name.rpartition("/")[2]) if dry_run else None)
    if kept_folder is not None and kept_folder.exists():
        raise ValueError(f"{kept_folder} exists; delete it or give another `output`")
    if not dry_run:
        check_access()  # before copying
    request = SpaceRequest(name, Hardware(hardware), model or ())
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept_folder or Path(temporary) / "space"
        write_folder(folder, lambda fresh: _fill(request, index or (), fresh))
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        files, megabytes = len(sizes), round(sum(sizes) / 1e6, 1)
        done = {"space": name, "hardware": hardware, "files": files, "megabytes": megabytes}
        done |= {"folder": str(kept_folder)} if kept_folder else {}
        if not dry_run:
            cli.log(f"uploading {files} files, {megabytes} MB")
            machine = None if hardware == "gpu" else MACHINES[request.hardware]  # users choose paid hardware themselves
            repository = Repository(name, "space", private=private, hardware=machine)
            uploaded = upload(folder, repository, f"Deploy the app for {hardware}", owned=OWNED)
            done |= {"url": uploaded.url, "commit": uploaded.commit}
    if json_output:
        cli.print_json(done)
        return
    where = f" in {kept_folder}" if kept_folder else ""
    typer.echo(f"{name} for {hardware}: {files} files, {megabytes} MB{where}")
    if dry_run:
        typer.echo("nothing was uploaded; python space.py in that folder starts the app")
        return
    typer.echo(f"uploaded to {done['url']} as {done['commit']}")
    if hardware == "gpu":
        typer.echo("choose its GPU in the Space's settings")


def _fill(request: SpaceRequest, indexes: Sequence[str], folder: Path) -> None:
    from cse.models.space import INDEXES, stage
    from index.export import copy_index
    from index.manifest import read_manifest
    from index.stores import folder_of

    sources = [folder_of(index) for index in indexes]
    names = [source.resolve().name for source in sources]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two index folders are named {twice}; rename one")
    staged = stage(replace(request, indexes=names), folder)
    for source, name in zip(sources, names, strict=True):
        model = staged.get(built := read_manifest(source).model)
        if model is None and Path(built).is_absolute():
            raise ValueError(f"{source}: built by {built}; give that folder as a `model`, too")
        copy_index(source, folder / INDEXES / name, model)


app = cli.command(main)
