"""Show the likeliest tokens at [MASK] for a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cse.commands.cli import Backend, Column, Family, Model, Pooling, Read, command, option, print_json, read_corpus


def main(
    model: Model,
    sentence: Annotated[str | None, typer.Argument(help="The sentence to read.")] = None,
    file: Annotated[Path | None, option("Read every text of a file, before and after denoising.")] = None,
    column: Column = None,
    read: Read = None,
    k: Annotated[int, option("Number of tokens.", "-k", min=1)] = 5,
    pooling: Pooling = None,
    family: Family = None,
    backend: Backend = "auto",
    template: Annotated[
        str | None, option("Another prompt: text with [X] for the sentence and [MASK] for the token.")
    ] = None,
    denoise: Annotated[bool, option("Subtract the template's bias.")] = True,
    json_output: Annotated[bool, option("Print JSON.", "--json")] = False,
) -> None:
    """Print the k likeliest tokens at [MASK] with their probabilities, the template's bias subtracted.

    With --file: one tab-separated line per sentence, with its tokens before and after denoising.

    Example: cse tokens --model promptbert "The cat sat by the fire." -k 5
    """
    import cse
    from cse.methods.templates import Template

    if (sentence is None) == (file is None):
        raise ValueError("give either a sentence or --file")
    texts = [sentence or ""] if file is None else read_corpus(str(file), column, read=read).sentences
    if not any(text.strip() for text in texts):
        raise ValueError("the sentence is empty; give some words")
    prompt = None if template is None else Template(template)
    encoder = cse.load(model, pooling, family=family, backend=backend)
    if file is None:
        _one(encoder.top_tokens(texts[0], k, denoise, prompt), json_output)
    else:
        _table(lambda text, denoise: encoder.top_tokens(text, k, denoise, prompt), texts, json_output)


def _one(tokens: list[tuple[str, float]], json_output: bool) -> None:
    if json_output:
        print_json([{"token": token, "probability": probability} for token, probability in tokens])
        return
    for token, probability in tokens:
        typer.echo(f"{probability:.4f}  {token}")


def _table(top_tokens: Callable[[str, bool], list[tuple[str, float]]], texts: list[str], json_output: bool) -> None:
    def words(text: str, denoise: bool) -> list[str]:
        return [token for token, _ in top_tokens(text, denoise)]

    rows = [{"sentence": text, "before": words(text, False), "after": words(text, True)} for text in texts]
    if json_output:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['sentence']}\t{' '.join(row['before'])}\t{' '.join(row['after'])}")


app = command(main)

if __name__ == "__main__":
    app()
