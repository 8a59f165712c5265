"""The error types of this project, and how their cures call a command."""

import re
import shlex
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent
FACES = "scripts"  # the package of a clone that calls the commands


class ArtefactError(ValueError):
    """A model, checkpoint or saved state is missing, damaged or of another kind."""

    exit_code = 4


class IndexFolderError(ValueError):
    """An index folder is missing, damaged, of another format, or built by another model."""

    exit_code = 4


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, cut to 200 characters, or the name of its type if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def command_line(name: str, *words: str) -> str:
    """The line that calls a command here: `python -m` and its module in a clone, `cse NAME` where cse is installed."""
    name = name.replace("-", "_")
    clone = PACKAGE.parent
    # A folder beside an installed package may belong to another project.
    in_clone = (clone / "pyproject.toml").is_file() and (clone / FACES / f"{name}.py").is_file()
    if in_clone and Path(sys.argv[0]).stem != "cse":
        return shlex.join(["python", "-m", f"{FACES}.{name}", *words])
    return shlex.join(["cse", name.replace("_", "-"), *words])


def as_called(text: str) -> str:
    """`text` with each command in it called as here."""
    pattern = rf"(?:\bcse |\bpython -m {FACES}\.)([a-z]+(?:[-_][a-z]+)*)\b"
    modules = {path.stem for path in (PACKAGE / "commands").glob("*.py")}
    return re.sub(
        pattern, lambda match: command_line(match[1]) if match[1].replace("-", "_") in modules else match[0], text
    )
