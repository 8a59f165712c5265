"""Find the sentences of an index that mean most nearly the same as a query."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from scripts.cli import FAMILY, POOLING, command, print_json


def main(
    folder: Annotated[Path, typer.Argument(metavar="INDEX_DIR", help="Folder made by scripts.build_index.")],
    query: Annotated[str, typer.Argument(help="A sentence.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers.")] = 5,
    model: Annotated[
        str | None, typer.Option(help="Default: the model that built the index; another is refused.")
    ] = None,
    pooling: Annotated[str | None, typer.Option(help=POOLING)] = None,
    family: Annotated[str | None, typer.Option(help=FAMILY)] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print query, model and results as JSON.")] = False,
) -> None:
    """Print the best answers of an index to a query: rank, cosine, sentence.

    Example: python -m scripts.search indexes/demo "A man is playing a guitar." -k 5
    """
    from cse.loading import open_model
    from cse.model_names import RecordedModel, resolve_again
    from index import VectorIndex
    from index.manifest import read_manifest

    if not query.strip():
        raise ValueError("the query is blank; give a sentence")
    manifest = read_manifest(folder)
    recorded = RecordedModel(manifest.model, manifest.pooling, manifest.family)
    encoder = open_model(resolve_again(recorded, model, pooling, family))
    index = VectorIndex.load(folder, encoder.fingerprint, model=encoder.name)
    hits = index.hits(encoder.encode(query, normalize_embeddings=False), k)
    if json_output:
        print_json({"query": query, "model": manifest.model, "results": [asdict(hit) for hit in hits]})
        return
    for hit in hits:
        typer.echo(f"{hit.rank:>3}  {hit.score:.4f}  {hit.text}")


app = command(main)

if __name__ == "__main__":
    app()
