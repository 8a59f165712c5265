"""Encode the lines of a file into a NumPy array."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scripts.cli import FAMILY, POOLING, command, log


def main(
    model: Annotated[str, typer.Option(help="simcse, promptbert, dcpcse, conpvp, a checkpoint folder, or a backbone.")],
    input: Annotated[str, typer.Option(help="Text file (.gz, .xz too), table or hub id.")],
    output: Annotated[Path, typer.Option(help="The .npy file to write: (N, d) float32.")],
    pooling: Annotated[str | None, typer.Option(help=POOLING)] = None,
    family: Annotated[str | None, typer.Option(help=FAMILY)] = None,
    column: Annotated[str | None, typer.Option(help="Column of a table that holds the sentences.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale every vector to length 1.")] = False,
) -> None:
    """Encode every non-empty line of a file; row i of the array is line i of these.

    Example: python -m scripts.encode --model promptbert --input sentences.txt --output vectors.npy
    """
    import numpy as np

    import cse
    from cse.data import sentences
    from cse.files import write_file

    if output.suffix != ".npy" or output.is_dir():
        raise ValueError(f"{output}: give --output a file name that ends in .npy")
    encoder = cse.load(model, pooling, family=family)
    texts = list(sentences(input, column))
    if not texts:
        raise ValueError(f"{input}: no sentence in it")
    vectors = encoder.encode(texts, batch_size=batch_size, normalize_embeddings=normalize, show_progress_bar=True)
    write_file(output, lambda fresh: np.save(fresh, vectors))
    log(f"{output}: {vectors.shape[0]} x {vectors.shape[1]} float32")


app = command(main)

if __name__ == "__main__":
    app()
