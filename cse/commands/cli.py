"""Shared by all commands: one-line errors with exit codes, common options, progress on stderr, JSON on stdout."""

from __future__ import annotations

import atexit
import functools
import gc
import inspect
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand
from typer.main import get_command

from cse.errors import as_called
from cse.files.writing import is_utf_8, not_permitted
from cse.methods.catalogue import UNTRAINED
from cse.methods.settings import MAX_SEED
from cse.models.names import BUNDLED_NAMES, FAMILIES
from cse.versions import check_versions

if TYPE_CHECKING:
    from cse.corpus.corpus import Corpus

UNEXPECTED, BAD_DATA, INTERRUPTED = 1, 3, 130
BROKEN_PIPE = 141  # 128 + SIGPIPE
PRECISIONS = ("auto", "no", "bf16")
STORAGES = ("float32", "float16", "delta", "int8")  # of a checkpoint


HELP = {"help_option_names": ["--help", "-h"]}
STDIN, STDIN_NAME = "-", "standard input"
EXAMPLE = "Example: "
MODEL_VARIABLE, CONFIG_VARIABLE = "CSE_MODEL", "CSE_CONFIG"


class Command(TyperCommand):
    """A command that takes defaults from the configuration file; its help calls commands as they are called here."""

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:
        super().__init__(*args, help=as_called(help or ""), **options)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the examples last, each on one line of any length, to be copied."""
        whole, paragraphs = self.help, (self.help or "").split("\n\n")
        examples = [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.startswith(EXAMPLE)]
        self.help = "\n\n".join(paragraph for paragraph in paragraphs if not paragraph.startswith(EXAMPLE))
        super().format_help(ctx, formatter)
        self.help = whole
        typer.echo("\n".join(examples))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context, with the configured options as defaults. A wrong one ends with one line and code 3."""
        # What CSE_CONFIG names, else config.yaml in the user's folder for cse.
        path = Path(os.environ.get(CONFIG_VARIABLE) or Path(typer.get_app_dir("cse")) / "config.yaml")
        try:
            extra["default_map"] = self.configured(path, read_config(path))
            return super().make_context(info_name, args, parent=parent, **extra)
        except typer.BadParameter as error:
            name = str(error.param.name) if error.param else ""
            source = error.ctx.get_parameter_source(name) if error.ctx else None
            if source is None or source.name != "DEFAULT_MAP":
                raise
            value = json.dumps(extra["default_map"][name], ensure_ascii=False)
            stop_with(f"{path}: {self.module}: {name} is {value}: {error.message}", BAD_DATA, error)
        except ValueError as error:
            stop_with(str(error), BAD_DATA, error)

    @property
    def module(self) -> str:
        """The command's name in a configuration file: `build_index`."""
        return str(self.callback.__module__).rpartition(".")[2]

    def configured(self, path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the defaults of this command's options. Raises ValueError for an option or value that it lacks."""
        options = {param.opts[0].lstrip("-"): param for param in self.params if param.param_type_name == "option"}
        section = config.get(self.module, {})
        if not isinstance(section, dict):
            raise ValueError(f"{path}: {self.module} has no options; write them below it, such as pooling: mean")
        if "model" in config and getattr(options.get("model"), "envvar", None) == MODEL_VARIABLE:
            section = {"model": config["model"], **section}
        defaults: dict[str, Any] = {}
        for key, value in section.items():
            param = options.get(key.replace("_", "-"))
            if param is None:
                raise ValueError(f"{path}: {self.module} has no option {key!r}; choose from {', '.join(options)}")
            values = value if isinstance(value, list) and param.multiple else [value]
            if not all(isinstance(item, str) for item in values):
                raise ValueError(f"{path}: {self.module}: {key} is {json.dumps(value)}; give one value")
            defaults[param.name] = values if param.multiple else value
        return defaults


def read_config(path: Path) -> dict[str, Any]:
    """Return a file of `model` and, by command, of options; {} if the user has none. Raises ValueError for another."""
    if not path.exists() and not os.environ.get(CONFIG_VARIABLE):
        return {}
    import yaml

    try:  # every value as text: options read it as a word of the command line
        config = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader) or {}
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: cannot be read as YAML ({' '.join(str(error).split())[:160]})") from error
    commands = [file.stem for file in Path(__file__).parent.glob("[a-z]*.py") if file.stem != "cli"]
    if not isinstance(config, dict) or not isinstance(config.get("model", ""), str):
        raise ValueError(f"{path}: give names and values, such as model: promptbert")
    config = {str(name).replace("-", "_"): section for name, section in config.items()}
    if unknown := sorted(config.keys() - {"model", *commands}):
        raise ValueError(f"{path}: unknown {', '.join(unknown)}; it has model and {', '.join(sorted(commands))}")
    return config


def stop_with(line: str, code: int, error: BaseException) -> NoReturn:
    """Print an error in one line and end with an exit code."""
    typer.secho(f"Error: {' '.join(line.split())}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code) from error


class App(typer.Typer):
    """A Typer app that names packages that are too old, among them Typer itself, before it reads a word."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command, or end with one line and exit code 3."""
        try:
            check_versions()
        except ValueError as error:
            typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
            sys.exit(BAD_DATA)
        return super().__call__(*args, **kwargs)


atexit.register(gc.freeze)  # no collection of a million imported objects at exit


def command(function: Callable[..., None]) -> typer.Typer:
    """A Typer app whose one command is `function`, its errors turned into one line on stderr and an exit code.

    ValueError and OSError give their `exit_code` attribute (4 for artefacts) or 3; anything else gives 1, and its
    traceback if CSE_DEBUG is set. Parameters that an error names in backticks are shown as the command's flags.
    If the reader of stdout has closed it, the command ends without an error message.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    app = App(add_completion=False, pretty_exceptions_enable=False, context_settings=HELP)
    _name_flags(function)

    def stop(error: BaseException, code: int, message: str | None = None) -> None:
        stop_with(with_flags(message or str(error) or type(error).__name__, app), code, error)

    @app.command(cls=Command)
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            _check_words(kwargs.values())
            function(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except PermissionError as error:
            stop(error, BAD_DATA, not_permitted(error.filename) if error.filename else None)
        except (ValueError, OSError) as error:
            if isinstance(error, BrokenPipeError):  # the reader of stdout has closed it, as `| head` does
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(BROKEN_PIPE) from error
            stop(error, getattr(error, "exit_code", BAD_DATA))
        except KeyboardInterrupt as error:
            stop(error, INTERRUPTED, "interrupted")
        except Exception as error:
            if "CSE_DEBUG" in os.environ:
                raise
            stop(error, UNEXPECTED, f"unexpected {type(error).__name__}: {error} (CSE_DEBUG=1 shows where)")

    return app


def _name_flags(function: Callable[..., None]) -> None:
    for name, parameter in inspect.signature(function).parameters.items():
        if getattr(parameter.default, "default", None) is False and not parameter.default.param_decls:
            parameter.default.param_decls = (f"--{name.removesuffix('_output').replace('_', '-')}",)


def _check_words(values: Iterable[Any]) -> None:
    """Raise ValueError for a word of the command line that is not UTF-8: JSON files cannot hold it.

    And for a path from ~, and for an address where a path on this machine is read or written: they would be folders
    called `~` and `s3:`.
    """
    for value in values:
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str | Path) and not is_utf_8(str(word)):
                shown = os.fsencode(word)
                raise ValueError(f"{shown!r} is not UTF-8; rename the file, or write the text in UTF-8")
            if isinstance(word, str | Path) and re.fullmatch(r"~[/\\]\S*", str(word)):
                raise ValueError(f"{word}: the shell did not write out ~ here; write the whole path")
            if isinstance(word, Path) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(word)):
                raise ValueError(f"{word}: is an address; give a path on this machine here, and copy what is there")


def with_flags(message: str, app: typer.Typer) -> str:
    """`message` with the parameters of `app`'s command that it names in backticks as the user types them."""
    for param in get_command(app).params:
        flag = param.opts[0] if param.param_type_name == "option" else getattr(param, "metavar", None)
        message = message.replace(f"`{param.name}`", flag or str(param.name).upper())
    return message


def completing(values: Iterable[str]) -> Callable[[str], list[str]]:
    """A completion for the shell, which offers files where no value begins with the word typed so far."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


def choices(what: str, values: Iterable[str]) -> dict[str, Any]:
    """Rules of an option or argument that takes one of `values`: completion, and a refusal that lists them."""

    def check(value: str | None) -> str | None:
        check_choice(what, value, values)
        return value

    return {"autocompletion": completing(values), "callback": check}


def check_choice(what: str, value: str | None, values: Iterable[str]) -> None:
    """Raise a usage error that lists the choices for a value that is none of them; None is allowed."""
    if value is not None and value not in values:
        raise typer.BadParameter(f"unknown {what} {value!r}; choose from {', '.join(values)}")


def is_given(context: typer.Context, parameter: str) -> bool:
    """True if a parameter is on the command line."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def refuse(context: typer.Context, why: str, *parameters: str) -> None:
    """Raise a usage error for an option that is on the command line."""
    for option in context.command.params:
        if option.name in parameters and is_given(context, option.name):
            raise typer.BadParameter(f"{why}; leave out {option.opts[0]}")


def check_outputs(source: str, **outputs: Path | None) -> None:
    """Raise ValueError for an output, by its parameter, that is the file of the `source` or another output.

    Paths name one file by any spelling, and by links. None is no output.
    """
    known = {os.path.realpath(source): "the file that is read"}
    for name, path in outputs.items():
        if path is None:
            continue
        if what := known.get(os.path.realpath(path)):
            raise ValueError(f"{path}: is {what}; give `{name}` another file")
        known[os.path.realpath(path)] = f"the file of `{name}`, too"


def shortened(text: str, width: int) -> str:
    """Return a text on one line, at most `width` characters; the last one is an ellipsis if it was cut."""
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def log(message: str) -> None:
    """Print one line on stderr."""
    typer.echo(message, err=True)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


MODEL = "simcse, promptbert, dcpcse, conpvp, a checkpoint folder, or a backbone."
POOLING = f"Pooling of a plain backbone: {', '.join(UNTRAINED)}."
BACKEND = "torch, openvino (CPU only), or auto: openvino on a CPU where it is installed."
FAMILY = f"Family of a published checkpoint, if neither its keys nor its hub id show it: {', '.join(FAMILIES)}."


def option(help_text: str | None, *names: str, default: Any = None, panel: str | None = None, **rules: Any) -> Any:
    """An option, required if its default is `...`, in a `panel` of the help; `names` replace `--PARAMETER`."""
    return typer.Option(default, *names, help=help_text, rich_help_panel=panel, **rules)


def flag(help_text: str, *names: str, **rules: Any) -> Any:
    """An option that is true if it is there; `command` calls it `--PARAMETER`, without `--no-PARAMETER`."""
    return option(help_text, *names, default=False, **rules)


def seed_option(help_text: str | None, *names: str, **rules: Any) -> Any:
    """An option that takes a seed, or several: whole numbers from 0 to `MAX_SEED`."""
    return option(help_text, *names, min=0, max=MAX_SEED, **rules)


def model_option(help_text: str = MODEL, **rules: Any) -> Any:
    """An option that takes a model, with its bundled names completed by the shell."""
    return option(help_text, autocompletion=completing(BUNDLED_NAMES), **rules)


Pooling = Annotated[str | None, typer.Option(help=POOLING)]
Family = Annotated[str | None, typer.Option(help=FAMILY)]
Backend = Annotated[str, typer.Option(help=BACKEND)]
SOURCE = "A file (text, table, JSON, .xlsx, .parquet; packed too) or hub id."
TEXTS = f"{SOURCE} - reads standard input."
COLUMN = "Column of the texts: its name, a.b for a nested value, its number without a header."
READ = (
    "How to read it where the guess is wrong: delimiter=tab, encoding=cp1252, header=no, quotes=no, sheet=NAME, "
    "skip=2 (lines above the table), "
    "format=text; repeat it for more."
)
Column = Annotated[str | None, typer.Option(help=COLUMN)]
Read = Annotated[list[str] | None, typer.Option(help=READ, metavar="KEY=VALUE")]
FOR_SPREADSHEETS = "Put an apostrophe before cells that begin as a formula, for people."


def read_corpus(
    source: str, column: str | None, labels: str | None = None, read: list[str] | None = None, *, quiet: bool = False
) -> Corpus:
    """Return the corpus of a source, "-" for standard input; unless `quiet`, stderr has how it was understood."""
    from cse.corpus.corpus import Corpus
    from cse.corpus.formats import Options

    options = Options.of(read or [])
    if source == STDIN:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / STDIN_NAME
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            try:
                corpus = replace(Corpus.read(path, column, labels, options=options), name=STDIN_NAME)
            except ValueError as error:
                raise ValueError(str(error).replace(str(path), STDIN_NAME)) from error
    else:
        corpus = Corpus.read(source, column, labels, options=options)
    if not quiet:
        log(corpus.understood())
    return corpus


def stdin_sentences() -> list[str]:
    """Return the lines of standard input that are not blank. Raises ValueError if there are none."""
    sentences = read_corpus(STDIN, None, read=["format=text"]).sentences
    if not sentences:
        raise ValueError(f"{STDIN_NAME}: no text in it; give a sentence a line")
    return sentences
