"""Show the likeliest tokens at [MASK] for a sentence."""

from __future__ import annotations

import re
from typing import Any

import typer

from cse.commands import cli


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
    shown: list[Any] = []
    lines: list[str] = []
    if corpus is not None:
        for row, text in zip(corpus.rows.tolist(), corpus.texts, strict=True):
            before, after = (
                [token for token, _ in encoder.top_tokens(text.strip(), k, denoised, prompt)]
                for denoised in (False, True)
            )
            shown.append({"row": row, "sentence": text, "before": before, "after": after})
            line = re.sub(r"[\t\r\n]+", " ", text)  # a line has three cells
            lines.append(f"{line}\t{' '.join(before)}\t{' '.join(after)}")
    else:
        for text in sentences:
            likeliest = encoder.top_tokens(text, k, denoise, prompt)
            tokens = [{"token": token, "probability": share} for token, share in likeliest]
            shown.append({"sentence": text, "tokens": tokens})
            lines += [text] if sentence == cli.STDIN else []
            lines += [f"{share:.4f}  {token}" for token, share in likeliest]
        shown = shown if sentence == cli.STDIN else shown[0]["tokens"]
    cli.print_json(shown) if json_output else typer.echo("\n".join(lines))


app = cli.command(main)
