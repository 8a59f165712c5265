"""Upload a checkpoint or an index to the model hub, with its card."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse.commands.cli import command, log, option, print_json

if TYPE_CHECKING:
    from cse.models.config import CardFacts
    from cse.models.push import Repository, Uploaded


def main(
    folder: Annotated[Path, typer.Argument(help="A checkpoint folder, or an index folder of build-index.")],
    name: Annotated[
        str, typer.Argument(metavar="OWNER/NAME", help="Model repository, or data set for an index; created if new.")
    ],
    private: Annotated[bool, option("Make a new repository private.", "--private")] = False,
    revision: Annotated[str | None, option("Branch to write, created if new; default main.")] = None,
    licence: Annotated[
        str | None, option("Licence of the upload, as a hub id; default apache-2.0 on the bundled backbone.")
    ] = None,
    dataset: Annotated[list[str] | None, option("Hub id of the training data; repeatable.")] = None,
    model: Annotated[str | None, option("Hub id of an index's model, if that was a local folder.")] = None,
    dry_run: Annotated[
        bool, option("List the files that would be uploaded; needs no hub and no token.", "--dry-run")
    ] = False,
    json_output: Annotated[bool, option("Print address and commit as JSON.", "--json")] = False,
) -> None:
    """Upload FOLDER to the hub; `cse.load` and `cse search` then open it by NAME or NAME@COMMIT.

    Example: cse push runs/mine me/my-checkpoint --private

    Example: cse push indexes/mine me/my-index --model me/my-checkpoint
    """
    from cse.models.config import CardFacts
    from cse.models.push import Repository, check_access, check_name
    from index.manifest import MANIFEST_FILE

    check_name(name)
    if not dry_run:
        check_access()
    facts = CardFacts(name, licence, tuple(dataset or ()))
    repository = Repository(name, private=private, revision=revision)
    is_index = (folder / MANIFEST_FILE).is_file()
    if model and not is_index:
        raise typer.BadParameter("--model is for an index; a checkpoint records its backbone")
    repository = replace(repository, kind="dataset" if is_index else "model")
    if dry_run:
        _show_files(_staged_files(folder, facts, model, is_index), repository, json_output)
        return
    if is_index:
        done = _push_index(folder, repository, facts, model)
    else:
        from cse.models.push import push_checkpoint

        done = push_checkpoint(folder, repository, facts)
    if json_output:
        print_json({"url": done.url, "commit": done.commit})
    else:
        typer.echo(f"{done.url}\nthis version: {name}@{done.commit}")


def _push_index(folder: Path, repository: Repository, facts: CardFacts, model: str | None) -> Uploaded:
    from cse.models.push import upload
    from index.folder import FILES

    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary) / "index"
        log(f"uploading {_stage_index(folder, staged, facts, model)} sentences")
        return upload(staged, repository, f"Push the index {folder.resolve().name}", owned=FILES)


def _stage_index(folder: Path, staged: Path, facts: CardFacts, model: str | None) -> int:
    """Write an index that opens on any machine, with its card; return the number of its sentences."""
    from cse.models.config import index_card
    from index.export import copy_index
    from index.manifest import read_manifest

    built = read_manifest(folder).model
    if Path(built).is_absolute() and not model:
        raise ValueError(f"{folder}: built by the local {built}; push that and give its id as `model`")
    manifest = copy_index(folder, staged, model)
    card = index_card(facts, manifest.model, manifest.count, manifest.factory)
    (staged / "README.md").write_text(card, encoding="utf-8")
    return manifest.count


def _staged_files(folder: Path, facts: CardFacts, model: str | None, is_index: bool) -> dict[str, int]:
    """The files that an upload consists of, and their sizes in bytes."""
    from cse.models.push import stage_checkpoint

    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary) / "staged"
        if is_index:
            _stage_index(folder, staged, facts, model)
        else:
            stage_checkpoint(folder, staged, facts)
        files = sorted(path for path in staged.rglob("*") if path.is_file())
        return {path.relative_to(staged).as_posix(): path.stat().st_size for path in files}


def _show_files(files: dict[str, int], repository: Repository, json_output: bool) -> None:
    if json_output:
        print_json({"name": repository.name, "kind": repository.kind, "files": files})
        return
    for name, size in files.items():
        typer.echo(f"{size:>12,}  {name}")
    megabytes = sum(files.values()) / 1e6
    typer.echo(
        f"{len(files)} files, {megabytes:.1f} MB for the {repository.kind} {repository.name}; nothing was uploaded"
    )


app = command(main)

if __name__ == "__main__":
    app()
