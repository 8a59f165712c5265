"""Errors on the command line: parameters in backticks become the command's flags."""

import errno
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from command_line import refused, run
from conftest import ROOT
from typer.testing import CliRunner

from cse.commands.cli import command


def refuse(
    folder: Annotated[Path, typer.Argument(metavar="INDEX_DIR")],
    words: Annotated[str | None, typer.Argument()] = None,
    output: Annotated[Path | None, typer.Option()] = None,
    k: Annotated[int, typer.Option("-k")] = 5,
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False,
) -> None:
    """Raise the words as a library's error."""
    raise ValueError(words)


APP = command(refuse)


def test_the_error_of_a_library_is_one_line_with_flags():
    done = CliRunner().invoke(APP, ["x", "y: `output` is there;\ngive another `output` or pass `overwrite` k `none`"])
    assert done.exit_code == 3
    assert done.stdout == ""
    assert done.stderr == "Error: y: --output is there; give another --output or pass --overwrite k `none`\n"


@pytest.mark.skipif(os.name != "posix", reason="words are Unicode elsewhere (2026-11)")
def test_a_word_that_is_no_utf_8_is_refused_before_the_command_runs():
    done = CliRunner().invoke(APP, ["x", "y\udcff"])
    assert done.exit_code == 3
    assert done.stderr.startswith(r"Error: b'y\xff' is not UTF-8; rename the file")


def test_a_path_from_home_that_the_shell_left_is_refused() -> None:
    done = CliRunner().invoke(APP, ["x", "y", "--output", "~/z"])
    assert done.exit_code == 3
    assert "the shell did not write out ~ here; write the whole path" in done.stderr


TALKATIVE = """
import typer
from cse.commands.cli import command, print_json
def talk(json_output: bool = False):
    if json_output:
        print_json(["word"] * 100_000)
    for _ in range(100_000):
        typer.echo("word")
command(talk)()
"""


@pytest.mark.skipif(os.name != "posix", reason="pipes (2026-11)")
@pytest.mark.parametrize("words", [[], ["--json-output"]])
def test_a_reader_that_leaves_ends_a_command_quietly(words):
    command = [sys.executable, "-c", TALKATIVE, *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE  # what a shell shows of head's other neighbours


def test_a_file_that_may_not_be_read_is_named_with_the_cure():
    def ask() -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "texts.txt")

    done = CliRunner().invoke(command(ask), [])
    said = "Error: texts.txt: permission denied; change its permissions, or give another\n"
    assert (done.exit_code, done.stderr) == (3, said)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train --backb", "--backbone"),
        ("train prom", "promptbert promptbert-same promptbert-no-denoising"),
        ("build-index corpus.txt --model d", "dcpcse"),
        ("encode --model ./runs", ""),  # the shell then offers files
    ],
)
def test_the_installed_command_completes_commands_options_methods_tasks_and_models(
    words, expected, monkeypatch, capsys
):
    asked = {"_CSE_COMPLETE": "complete_bash", "COMP_WORDS": f"cse {words}", "COMP_CWORD": str(len(words.split()))}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as end:
        importlib.import_module("cse.commands.__main__").app(prog_name="cse")
    assert end.value.code in (0, None)
    assert capsys.readouterr().out.split() == expected.split()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CSE_CONFIG", str(tmp_path / "config.yaml"))
    return tmp_path / "config.yaml"


def test_a_configuration_file_gives_defaults_below_variable_and_option(config, bert_folder, monkeypatch):
    config.write_text(f"model: {bert_folder}\ntokens:\n  k: 2\n  denoise: no\n  pooling: prompt\n")
    bare = run("tokens", "--model", bert_folder, "the dog", "-k", 2, "--no-denoise", "--pooling", "prompt").stdout
    assert run("tokens", "the dog").stdout == bare
    assert len(bare.splitlines()) == 2
    assert len(run("tokens", "the dog", "-k", 3).stdout.splitlines()) == 3
    assert run("__main__", "tokens", "the dog").stdout == bare
    monkeypatch.setenv("CSE_MODEL", "nowhere")
    refused(run("tokens", "the dog"), 4, "no model 'nowhere'")
    config.write_text(f"tokens: {{model: {bert_folder}}}\n")
    refused(run("tokens", "the dog"), 4, "no model 'nowhere'")
    assert run("tokens", "the dog", "--model", bert_folder).exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tokens: {colour: red}", ("tokens has no option 'colour'", "template")),
        ("tokns: {k: 2}", ("unknown tokns", "tokens")), ("pooling: cls", ("unknown pooling",)),
        ("tokens: {k: many}", ('tokens: k is "many": ',)),
        ("tokens: prompt", ("tokens has no options",)),
        ("- tokens", ("give names and values",)), ("a: b: c", ("cannot be read as YAML",)),
    ],
)  # fmt: skip
def test_a_configuration_that_is_not_understood_is_refused(config, text, words):
    config.write_text(text)
    refused(run("tokens", "--model", "simcse", "the dog"), 3, str(config), *words)
