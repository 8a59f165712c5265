"""Upload a checkpoint or an index to the model hub, with its card."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from cse.commands import cli


def main(
    folder: Path = typer.Argument(..., help="A checkpoint folder, or an index folder of build-index."),
    name: str = typer.Argument(..., metavar="OWNER/NAME", help="Model repository, or data set of an index."),
    private: bool = cli.flag("Make a new repository private."),
    revision: str | None = cli.option("Branch to write, created if new; default main."),
    licence: str | None = cli.option("Its licence, as a hub id; default apache-2.0 on the bundled backbone."),
    dataset: list[str] | None = cli.option("Hub id of the training data; repeatable."),
    model: str | None = cli.option("Hub id of an index's model, if that was a local folder."),
    dry_run: bool = cli.flag("List the files that would be uploaded; needs no hub and no token."),
    json_output: bool = cli.flag("Print address and commit as JSON."),
) -> None:
    """Upload FOLDER to the hub; `cse.load` and `cse search` then open it by NAME or NAME@COMMIT.

    Example: cse push runs/mine me/my-checkpoint --private

    Example: cse push indexes/mine me/my-index --model me/my-checkpoint
    """
    from cse.models.config import CardFacts, index_card
    from cse.models.push import Repository, check_access, check_name, push_checkpoint, stage_checkpoint, upload
    from index.export import copy_index
    from index.folder import FILES
    from index.manifest import MANIFEST_FILE, read_manifest

    check_name(name)
    if not dry_run:
        check_access()
    is_index = (folder / MANIFEST_FILE).is_file()
    if model and not is_index:
        raise typer.BadParameter("--model is for an index; a checkpoint records its backbone")
    facts = CardFacts(name, licence, tuple(dataset or ()))
    repository = Repository(name, "dataset" if is_index else "model", private=private, revision=revision)
    if not is_index and not dry_run:
        done = push_checkpoint(folder, repository, facts)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            staged = Path(temporary) / "staged"
            if is_index:
                built = read_manifest(folder).model
                if Path(built).is_absolute() and not model:
                    raise ValueError(f"{folder}: built by the local {built}; push that and give its id as `model`")
                manifest = copy_index(folder, staged, model)
                card = index_card(facts, manifest.model, manifest.count, manifest.factory)
                (staged / "README.md").write_text(card, encoding="utf-8")
            else:
                stage_checkpoint(folder, staged, facts)
            if dry_run:
                paths = sorted(path for path in staged.rglob("*") if path.is_file())
                files = {path.relative_to(staged).as_posix(): path.stat().st_size for path in paths}
                total = f"{len(files)} files, {sum(files.values()) / 1e6:.1f} MB for the {repository.kind} {name}"
                lines = [*(f"{size:>12,}  {path}" for path, size in files.items()), f"{total}; nothing was uploaded"]
                value = {"name": name, "kind": repository.kind, "files": files}
                cli.print_json(value) if json_output else typer.echo("\n".join(lines))
                return
            cli.log(f"uploading {manifest.count} sentences")  # a checkpoint is uploaded above
            done = upload(staged, repository, f"Push the index {folder.resolve().name}", owned=FILES)
    if json_output:
        cli.print_json({"url": done.url, "commit": done.commit})
    else:
        typer.echo(f"{done.url}\nthis version: {name}@{done.commit}")


app = cli.command(main)
