"""Upload a checkpoint or an index to the model hub, with its card."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse.commands.cli import command, log, print_json

if TYPE_CHECKING:
    from cse.models.card import CardFacts
    from cse.publishing.upload import Repository, Uploaded


def main(
    folder: Annotated[Path, typer.Argument(help="A checkpoint folder, or an index folder of scripts.build_index.")],
    name: Annotated[
        str, typer.Argument(metavar="OWNER/NAME", help="Model repository, or data set for an index; created if new.")
    ],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    revision: Annotated[str | None, typer.Option(help="Branch to write, created if new; default main.")] = None,
    licence: Annotated[
        str | None,
        typer.Option(help="Licence of the upload, as a hub id; default apache-2.0 on the bundled backbone."),
    ] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Hub id of the training data; repeatable.")] = None,
    model: Annotated[str | None, typer.Option(help="Hub id of an index's model, if that was a local folder.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print address and commit as JSON.")] = False,
) -> None:
    """Upload FOLDER to the hub; `cse.load` and `scripts.search` then open it by NAME or NAME@COMMIT.

    Example: python -m scripts.push runs/mine me/my-checkpoint --private

    Example: python -m scripts.push indexes/mine me/my-index --model me/my-checkpoint
    """
    from cse.models.card import CardFacts
    from cse.publishing.upload import Repository, check_access, check_name
    from index.manifest import MANIFEST_FILE

    check_name(name)
    check_access()
    facts = CardFacts(name, licence, tuple(dataset or ()))
    repository = Repository(name, private=private, revision=revision)
    if (folder / MANIFEST_FILE).is_file():
        done = _push_index(folder, replace(repository, kind="dataset"), facts, model)
    else:
        if model:
            raise typer.BadParameter("--model is for an index; a checkpoint records its backbone")
        done = _push_checkpoint(folder, repository, facts)
    if json_output:
        print_json({"url": done.url, "commit": done.commit})
    else:
        typer.echo(f"{done.url}\nthis version: {name}@{done.commit}")


def _push_checkpoint(folder: Path, repository: Repository, facts: CardFacts) -> Uploaded:
    from cse.publishing.checkpoints import push_checkpoint

    return push_checkpoint(folder, repository, facts)


def _push_index(folder: Path, repository: Repository, facts: CardFacts, model: str | None) -> Uploaded:
    from cse.models.card import index_card
    from cse.publishing.upload import upload
    from index.export import copy_index
    from index.folder import FILES
    from index.manifest import read_manifest

    built = read_manifest(folder).model
    if Path(built).is_absolute() and not model:
        raise ValueError(f"{folder}: built by the local {built}; push that and give its id as `model`")
    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary) / "index"
        manifest = copy_index(folder, staged, model)
        log(f"uploading {manifest.count} sentences")
        card = index_card(facts, manifest.model, manifest.count, manifest.factory)
        (staged / "README.md").write_text(card, encoding="utf-8")
        return upload(staged, repository, f"Push the index {folder.resolve().name}", owned=FILES)


app = command(main)

if __name__ == "__main__":
    app()
