"""Hook of MkDocs: the reference pages, made from Typer's commands, docstrings and the table of settings."""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

OBJECTS = (  # of the Python page: a function, or a class with its public methods
    "cse.load", "cse.train", "cse.Encoder", "index.VectorIndex", "index.BuildSettings", "index.Hit",
)  # fmt: skip


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site."""
    from mkdocs.structure.files import File

    for name, lines in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n\n".join(lines())))
    return files


def commands_page() -> Iterator[str]:
    """The blocks of the page of commands: help, then arguments and options as a table."""
    from typer.main import get_command

    from cse.commands.__main__ import FOLDER, NO_COMMANDS, command_name

    yield "# Commands\n\n`python -m scripts.NAME` in a clone is `cse NAME` where the project is installed."
    for stem in sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NO_COMMANDS):
        command = get_command(import_module(f"cse.commands.{stem}").app)
        context = command.context_class(command, info_name=command_name(stem))
        yield f"## {command_name(stem)}"
        yield prose(command.help or "")
        rows = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
        yield table(("option", "meaning"), [(f"`{cell(name)}`", cell(meaning)) for name, meaning in rows])


def python_page() -> Iterator[str]:
    """The blocks of the page of Python: a signature and a docstring each."""
    yield "# Python"
    for name in OBJECTS:
        module, _, attribute = name.rpartition(".")
        found = getattr(import_module(module), attribute)
        yield f"## {name}"
        yield from described(attribute, found)
        for method, member in inspect.getmembers(found) if inspect.isclass(found) else ():
            if not method.startswith("_") and inspect.getdoc(member) and own(found, method):
                yield f"### {attribute}.{method}"
                yield from described(method, member)


def settings_page() -> Iterator[str]:
    """The blocks of the page of settings: the table that options, recipes and `cse.train` read."""
    from dataclasses import fields

    from cse.methods.settings import SETTINGS, TrainConfig

    defaults = {declared.name: declared.default for declared in fields(TrainConfig)}  # of the method's own: None
    yield (
        "# Settings of a training run\n\nOptions of `train`, keys of a recipe and arguments of `cse.train` have these "
        "names. A method's preset for the backbone replaces the default."
    )
    yield table(
        ("setting", "type", "default", "bounds", "meaning"),
        [(f"`{name}`", each.kind.__name__, f"`{defaults.get(name)}`", bounds(each), cell(each.help))
         for name, each in SETTINGS.items()],
    )  # fmt: skip


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands_page, "python": python_page, "settings": settings_page
}  # fmt: skip


def own(owner: type, name: str) -> bool:
    """True for a method or property that this project defines."""
    found = inspect.getattr_static(owner, name)
    ours = any(name in vars(each) and each.__module__.startswith(("cse", "index")) for each in owner.__mro__)
    return ours and (isinstance(found, property) or callable(getattr(owner, name)))


def described(name: str, found: Any) -> Iterator[str]:
    """The signature, if there is one, and the docstring."""
    if callable(found):
        with suppress(ValueError):  # a class without a signature
            yield f"```python\n{name}{inspect.signature(found)}\n```"
    yield prose(inspect.getdoc(found) or "")


def bounds(setting: Any) -> str:
    """The values that a setting takes, in words."""
    if setting.choices:
        return ", ".join(setting.choices)
    parts = [f"{word} {value:g}" for word, value in (("from", setting.least), ("to", setting.most))
             if not math.isinf(value)]  # fmt: skip
    return " ".join(parts)


def prose(text: str) -> str:
    """A docstring or a help as Markdown: its examples become code."""
    return re.sub(r"^Example: (.*)$", r"```bash\n\1\n```", text.replace("<", "&lt;"), flags=re.MULTILINE)


def cell(text: str) -> str:
    """A text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))
