"""Find the sentences of an index that are most similar to a query."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cse.commands.cli import (
    Backend,
    Family,
    Pooling,
    command,
    log,
    model_option,
    option,
    print_json,
    shortened,
    with_flags,
)
from cse.errors import command_line

SHOWN_CHARACTERS = 300  # of a hit
EXPAND_HELP = (
    "Mix the query half and half with its K nearest sentences (0: off). Default: as build_index --smooth set it."
)
PROBE_HELP = "Cells of an IVF index to search, or candidates of HNSW; more find more. Default: as build_index chose."


def main(
    index: Annotated[
        str,
        typer.Argument(metavar="INDEX_DIR", help="Folder of build-index, or an index on the hub; not with --store."),
    ],
    query: Annotated[str | None, typer.Argument(help="A sentence.", show_default=False)] = None,
    store: Annotated[str | None, option("Instead of INDEX_DIR: milvus://HOST:PORT/COLLECTION of build-index.")] = None,
    k: Annotated[int, option("Number of answers.", "-k", min=1)] = 5,
    model: Annotated[str | None, model_option("Default: the model that built the index; others are refused.")] = None,
    pooling: Pooling = None,
    family: Family = None,
    backend: Backend = "auto",
    expand: Annotated[int | None, option(EXPAND_HELP, min=0, show_default=False)] = None,
    probe: Annotated[int | None, option(PROBE_HELP, min=1, show_default=False)] = None,
    verify: Annotated[bool, option("Verify the checksums of a large index again.", "--verify")] = False,
    json_output: Annotated[bool, option("Print query, model and results as JSON.", "--json")] = False,
) -> None:
    """Print the best answers of an index to a query: rank, cosine, sentence.

    Example: cse search indexes/demo "A man is playing a guitar." -k 5

    Example: cse search --store milvus://127.0.0.1:19530/demo "A man is playing a guitar."
    """
    from cse.models.names import RecordedModel
    from index.stores import location_of, manifest_at, open_at, store_of

    if (query is None) == (store is None):
        raise typer.BadParameter("give INDEX_DIR and QUERY, or --store and QUERY")
    name, sentence = (index, query or "") if store is None else (store, index)
    if not sentence.strip():
        raise ValueError("the query is blank; give a sentence")
    location = location_of(name)
    kind = store_of(location)
    for flag, unknown in {"--expand": expand and not kind.smooths, "--verify": verify and not kind.on_disk}.items():
        if unknown:
            raise typer.BadParameter(f"{flag} is for indexes in folders; leave it out")
    location = kind.downloaded(location)
    manifest = manifest_at(location)
    recorded = RecordedModel(manifest.model, manifest.pooling, manifest.family)
    reference = recorded.resolve(model, pooling, family)

    from cse.models.loading import open_model

    encoder = open_model(reference, backend=backend)
    opened = open_at(location, encoder.fingerprint, model=encoder.name, verify=verify)
    prompts = {manifest.query_prompt, manifest.document_prompt}
    if note := encoder.prompt_note("queries", manifest.query_prompt):
        log(note)
    elif prompts == {None} != {encoder.query_prompt, encoder.document_prompt}:
        log(
            f"{name}: built without the model's prompts, so the query has none; {command_line('build_index')} uses them"
        )
    vector = encoder.encode(sentence, prompt=manifest.query_prompt, normalize_embeddings=False)
    hits = opened.hits(vector, k, expand=expand, probe=probe, quiet=True)
    if note := opened.shortfall(len(hits), min(k, len(opened)), probe):
        log(with_flags(note, app))
    if json_output:
        print_json({"query": sentence, "model": manifest.model, "results": [asdict(hit) for hit in hits]})
        return
    for hit in hits:
        typer.echo(f"{hit.rank:>3}  {hit.score:.4f}  {shortened(hit.text, SHOWN_CHARACTERS)}")


app = command(main)

if __name__ == "__main__":
    app()
