"""All commands under one name: `cse NAME`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import cse
from cse.commands.cli import HELP, App
from cse.encoder.processes import end_with_parent

FOLDER = Path(__file__).parent
NO_COMMANDS = ("__init__", "__main__", "cli")


class Deferred(TyperCommand):
    """The command of `cse/commands/NAME.py`, imported when it is called; lists one line of help until then."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the real command and return its context."""
        module = importlib.import_module(f"cse.commands.{str(self.name).replace('-', '_')}")
        return get_command(module.app).make_context(info_name, args, parent=parent, **extra)


class Commands(TyperGroup):
    """All command modules of this folder."""

    def __init__(self, *, commands: Any = None, **options: Any) -> None:
        modules = [path for path in FOLDER.glob("*.py") if path.stem not in NO_COMMANDS]
        deferred: dict[str, Any] = {}
        for path in sorted(modules):
            line = path.read_text(encoding="utf-8").split('"""', 2)[1].partition("\n")[0]  # without importing it
            deferred[command_name(path.stem)] = Deferred(command_name(path.stem), short_help=line)
        super().__init__(commands=deferred, **options)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; `build_index` is `build-index`."""
        return super().get_command(ctx, command_name(cmd_name))


def command_name(module: str) -> str:
    """The command of a module: `build-index`."""
    return module.replace("_", "-")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"cse {cse.__version__}")
        raise typer.Exit


app = App(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train, understand and compare contrastive sentence embeddings; `cse NAME --help` has each command's examples."""


if __name__ == "__main__":
    end_with_parent()
    app()
