"""Commands called as from a shell, and their refusals."""

import importlib

from typer.testing import CliRunner, Result


def run(name: str, *arguments: object) -> Result:
    app = importlib.import_module("tests.bench.__main__" if name == "bench" else f"scripts.{name}").app
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(result: Result, code: int, *words: str) -> None:
    """Assert one clear line on stderr that names the value and the cure, and nothing on stdout."""
    assert result.exit_code == code, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error")] if code != 2 else [result.stderr]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.output
    assert all(word in lines[0] for word in words), lines[0]
