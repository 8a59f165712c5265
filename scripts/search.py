"""Find the sentences of an index that mean most nearly the same as a query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scripts.cli import command, print_json


def main(
    folder: Annotated[Path, typer.Argument(metavar="INDEX_DIR", help="Folder made by scripts.build_index.")],
    query: Annotated[str, typer.Argument(help="A sentence.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers.")] = 5,
    model: Annotated[
        str | None, typer.Option(help="Default: the model that built the index; another is refused.")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(help="mean, cls, first-last, static or prompt, for a backbone --model.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print query, model and results as JSON.")] = False,
) -> None:
    """Print the best answers of an index to a query: rank, cosine, sentence.

    Example: python -m scripts.search indexes/demo "A man is playing a guitar." -k 5
    """
    from cse.loading import open_model
    from cse.model_names import lasting_name, resolve
    from index import VectorIndex
    from index.manifest import read_manifest

    if not query.strip():
        raise ValueError("the query is blank; give a sentence")
    manifest = read_manifest(folder)
    if pooling is None and (model is None or lasting_name(model) == manifest.model):
        pooling = manifest.pooling
    encoder = open_model(resolve(model or manifest.model, pooling))
    index = VectorIndex.load(folder, encoder.fingerprint, model=encoder.name)
    scores, rows = (found[0] for found in index.search(encoder.encode([query], normalize_embeddings=False), k))
    rows = rows[rows >= 0]
    results = [
        {"rank": rank, "score": float(score), "row": int(row), "text": text}
        for rank, (score, row, text) in enumerate(zip(scores, rows, index.texts(rows), strict=False), start=1)
    ]
    if json_output:
        print_json({"query": query, "model": manifest.model, "results": results})
        return
    for result in results:
        typer.echo(f"{result['rank']:>3}  {result['score']:.4f}  {result['text']}")


app = command(main)

if __name__ == "__main__":
    app()
