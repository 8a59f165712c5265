"""Commands called as from a shell, and their refusals."""

import importlib
import re
from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner, Result


def run(name: str, *arguments: object, stdin: str | bytes | None = None) -> Result:
    app = importlib.import_module("tests.bench.__main__" if name == "bench" else f"scripts.{name}").app
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def ran(name: str, *arguments: object, stdin: str | bytes | None = None) -> Result:
    """The result of a command, which succeeds."""
    done = run(name, *arguments, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done


def exit_code(name: str, arguments: Sequence[str]) -> int:
    """The exit code of a command that writes to the test's own streams."""
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f"cse.commands.{name}").app(arguments)
    return int(end.value.code or 0)


def options_of(*words: str) -> Any:
    """The options that `cse app` with these words would serve with."""
    served: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cse.commands.app.run", served.append)
        assert exit_code("app", words) == 0
    return served[0]


def unboxed(shown: str) -> str:
    """The text in the boxes of a help or a usage error, on one line."""
    return " ".join(re.sub("[╭─╮│╰╯]+", " ", shown).split())


def refused(result: Result, code: int, *words: str) -> None:
    """Assert one clear line on stderr that names the value and the cure, and nothing on stdout."""
    assert result.exit_code == code, result.output
    shown = [line for line in result.stderr.splitlines() if line.startswith("Error")]
    lines = [unboxed(result.stderr)] if code == 2 else shown
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.output
    assert all(word in lines[0] for word in words), lines[0]
