"""Show the likeliest tokens at [MASK] for a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from cse.commands import cli

if TYPE_CHECKING:
    from cse.corpus.corpus import Corpus


def main(
    model: str = cli.model_option(default=..., envvar=cli.MODEL_VARIABLE),
    sentence: str | None = typer.Argument(None, help="The sentence to read; - reads one a line of standard input."),
    file: str | None = cli.option(
        "Read every text of a file or hub id, before and after denoising; see --column, --read."
    ),
    column: cli.Column = None,
    read: cli.Read = None,
    k: int = cli.option("Number of tokens.", "-k", default=5, min=1),
    pooling: cli.Pooling = None,
    family: cli.Family = None,
    backend: cli.Backend = "auto",
    template: str | None = cli.option("Another prompt: text with [X] for the sentence and [MASK] for the token."),
    denoise: bool = cli.option("Subtract the template's bias.", default=True),
    json_output: bool = cli.flag("Print JSON."),
) -> None:
    """Print the k likeliest tokens at [MASK] with their probabilities, the template's bias subtracted.

    With --file: one tab-separated line per text, with its tokens before and after denoising; --json has its row.

    Example: cse tokens --model promptbert "The cat sat by the fire." -k 5

    Example: cse tokens --model promptbert - --json < sentences.txt
    """
    import cse
    from cse.methods.templates import Template

    if (sentence is None) == (file is None):
        raise ValueError("give either a sentence or --file")
    if file is None and (column or read):
        raise typer.BadParameter("--column and --read are for --file; leave them out")
    if file is not None and not denoise:
        raise typer.BadParameter("--file shows tokens before and after denoising; leave out --no-denoise")
    if file is None and not (sentence or "").strip():
        raise ValueError("the sentence is empty; give some words")
    corpus = None if file is None else cli.read_corpus(file, column, read=read)
    if corpus is not None and not len(corpus):
        raise ValueError(f"{file}: no text in it")
    sentences = cli.stdin_sentences() if sentence == cli.STDIN else [sentence or ""]
    prompt = None if template is None else Template(template)
    encoder = cse.load(model, pooling, family=family, backend=backend)
    if corpus is not None:
        _table(lambda text, denoise: encoder.top_tokens(text, k, denoise, prompt), corpus, json_output)
        return
    answers = [
        [{"token": token, "probability": share} for token, share in encoder.top_tokens(text, k, denoise, prompt)]
        for text in sentences
    ]
    if json_output and sentence == cli.STDIN:
        cli.print_json([{"sentence": text, "tokens": tokens} for text, tokens in zip(sentences, answers, strict=True)])
        return
    if json_output:
        cli.print_json(answers[0])
        return
    for text, tokens in zip(sentences, answers, strict=True):
        lines = [text] if sentence == cli.STDIN else []
        typer.echo("\n".join([*lines, *(f"{row['probability']:.4f}  {row['token']}" for row in tokens)]))


def _table(top_tokens: Callable[[str, bool], list[tuple[str, float]]], corpus: Corpus, json_output: bool) -> None:
    def words(text: str, denoise: bool) -> list[str]:
        return [token for token, _ in top_tokens(text.strip(), denoise)]

    rows = [
        {"row": row, "sentence": text, "before": words(text, False), "after": words(text, True)}
        for row, text in zip(corpus.rows.tolist(), corpus.texts, strict=True)
    ]
    if json_output:
        cli.print_json(rows)
        return
    for row in rows:
        line = re.sub(r"[\t\r\n]+", " ", row["sentence"])  # a line has three cells
        typer.echo(f"{line}\t{' '.join(row['before'])}\t{' '.join(row['after'])}")


app = cli.command(main)
