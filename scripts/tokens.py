"""Show what a sentence vector says: the likeliest tokens at [MASK]."""

from __future__ import annotations

from typing import Annotated

import typer

from scripts.cli import command, print_json


def main(
    sentence: Annotated[str, typer.Argument(help="The sentence to ask about.")],
    model: Annotated[str, typer.Option(help="simcse, promptbert, dcpcse, conpvp, a checkpoint folder, or a backbone.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many tokens.")] = 5,
    pooling: Annotated[
        str | None, typer.Option(help="mean, cls, first-last, static or prompt, for a backbone.")
    ] = None,
    denoise: Annotated[bool, typer.Option(help="Subtract what the template alone says.")] = True,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the k likeliest tokens at [MASK] with their probability, the template's own bias removed.

    Example: python -m scripts.tokens --model promptbert "The cat sat by the fire." -k 5
    """
    import cse

    if not sentence.strip():
        raise ValueError("the sentence is empty; give some words")
    found = cse.load(model, pooling).top_tokens(sentence, k, denoise)
    if json_output:
        print_json([{"token": token, "probability": probability} for token, probability in found])
        return
    for token, probability in found:
        typer.echo(f"{probability:.4f}  {token}")


app = command(main)

if __name__ == "__main__":
    app()
