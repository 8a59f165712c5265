"""Several commands under one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from cse.commands.cli import Grouped, command


def commands(summary: str, functions: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """A Typer app of several commands by name, each made as by `command`; `summary` is its help."""
    app = typer.Typer(
        help=summary, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    app.callback()(lambda: None)  # without a callback a single command has no name
    for name, function in functions.items():
        (made,) = command(function).registered_commands
        assert made.callback
        app.command(name, cls=Grouped)(made.callback)
    return app
